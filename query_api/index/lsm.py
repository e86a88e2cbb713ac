"""A log-structured merge in memory (O'Neil et al. 1996): each change makes a small part, parts of like size are merged,
and what is deleted is dropped with a merge or when it is most of its part. So k changes end in about log2 k parts.
"""

from collections.abc import Iterable
from typing import Protocol, Self, TypeVar

MAX_MERGED_ROWS = 50_000  # larger parts are only rewritten when half of their rows are deleted
MERGE_RATIO = 2


class Part(Protocol):
    """Immutable rows, of which some are deleted."""

    @property
    def size(self) -> int: ...  # rows, live or deleted
    @property
    def live_count(self) -> int: ...
    def compacted(self) -> Self:
        """The live rows alone."""
        ...

    def merged(self, newer: Self) -> Self:
        """The live rows of both, these first."""
        ...


P = TypeVar("P", bound=Part)


def settled(parts: Iterable[P]) -> list[P]:
    """Few parts with the live rows of these, which are in the order in which they came; none of them mostly deleted."""
    stack: list[P] = []
    for part in parts:
        if not part.live_count:
            continue
        stack.append(part.compacted() if part.live_count * 2 < part.size else part)
        while len(stack) > 1 and _worth_merging(stack[-2], stack[-1]):
            newer = stack.pop()
            stack.append(stack.pop().merged(newer))
    return stack


def _worth_merging(older: Part, newer: Part) -> bool:
    rows = older.live_count + newer.live_count
    return older.live_count < MERGE_RATIO * newer.live_count and rows <= MAX_MERGED_ROWS
