"""A limit on the bytes of all request bodies that are held at once.

Bytes count as they arrive, not as a request announces them: who announces much and sends little keeps nobody out.
"""

from types import TracebackType
from typing import Self


class OverBudget(Exception):
    """There is no room for these bytes now; there will be when others have been answered."""


class BodyBudget:
    """At most `limit_bytes` of bodies at once. For one event loop."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0

    def share(self) -> "BodyShare":
        """The share of one request, empty at first. It is given back at the end of its `with` block, or before."""
        return BodyShare(self)

    def has_room(self, size: int) -> bool:
        return self.held_bytes + size <= self.limit_bytes


class BodyShare:
    """What one request holds of the budget."""

    def __init__(self, budget: BodyBudget) -> None:
        self.budget = budget
        self._bytes = 0

    def take(self, size: int) -> None:
        """Raises OverBudget, and takes nothing then."""
        if not self.budget.has_room(size):
            raise OverBudget
        self.budget.held_bytes += size
        self._bytes += size

    def give_back(self) -> None:
        """May be called more than once."""
        self.budget.held_bytes -= self._bytes
        self._bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.give_back()
