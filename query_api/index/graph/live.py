"""The graph view kept up to date: a base built from a snapshot, and the changes that the graph topic had after it."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from schemas.contributions import Contribution
from schemas.ids import DocumentKey

if TYPE_CHECKING:
    from query_api.index.graph.view import GraphView


class GraphChange(NamedTuple):
    """One record of the graph topic: a document's whole contribution, or None when it is withdrawn."""

    offset: int
    key: DocumentKey
    contribution: Contribution | None


class LiveGraph:
    """The newest graph view. `apply` and `rebase` may be called from any thread, at any time, with anything already
    applied: the view's position never goes back.

    It remembers the newest change of each document since the base, so that the next base can be caught up without
    asking the log again.
    """

    def __init__(self, base: "GraphView") -> None:
        self._lock = threading.Lock()
        self._view = base
        self._base_position = base.position
        self._since_base: dict[DocumentKey, GraphChange] = {}

    @property
    def view(self) -> "GraphView":
        return self._view

    @property
    def base_position(self) -> int:
        """The position of the snapshot the view is built on."""
        return self._base_position

    @property
    def changes_since_base(self) -> int:
        return len(self._since_base)

    def apply(self, changes: Sequence[GraphChange], reached: int) -> bool:
        """Apply changes in offset order, up to and including offset `reached`; True when the view is another one."""
        with self._lock:
            if reached <= self._view.position:
                return False
            newest = {change.key: change for change in changes if change.offset > self._view.position}
            self._view = self._view.with_changes(_pairs(newest), reached)
            self._since_base |= newest
            return True

    def rebase(self, build: Callable[[], "GraphView"]) -> None:
        """Build a newer base, without holding up `apply`, and catch it up with what was applied meanwhile."""
        base = build()
        with self._lock:
            if base.position <= self._base_position:
                return
            later = {key: change for key, change in self._since_base.items() if change.offset > base.position}
            reached = max(base.position, self._view.position)
            self._view = base.with_changes(_pairs(later), reached) if reached > base.position else base
            self._base_position = base.position
            self._since_base = later


def _pairs(changes: dict[DocumentKey, GraphChange]) -> list[tuple[DocumentKey, Contribution | None]]:
    return [(change.key, change.contribution) for change in changes.values()]
