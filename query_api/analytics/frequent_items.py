"""Counting many different things in bounded memory: the frequent ones exactly, or nearly so when there are too many."""

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

MOST_COUNTED = 100_000


class Counted(Protocol):
    """What is added up for one thing; `count` says how often it came."""

    count: int


C = TypeVar("C", bound=Counted)


class Tally(Generic[C]):
    """One `C` for each key. When there are too many, the rarer half is forgotten: what comes often stays, and loses at
    most what was forgotten of it before (in the manner of lossy counting: Manku, Motwani 2002). `approximate` says
    that this has happened."""

    def __init__(self, new: Callable[[], C], most: int = MOST_COUNTED) -> None:
        self.approximate = False
        self._new = new
        self._most = most
        self._counted: dict[str, C] = {}

    def of(self, key: str) -> C:
        """What is added up for the key so far, to add to."""
        found = self._counted.get(key)
        if found is None:
            if len(self._counted) >= self._most:
                self._forget()
            found = self._counted[key] = self._new()
        return found

    def items(self) -> Iterator[tuple[str, C]]:
        """The most frequent first, ties by key."""
        yield from sorted(self._counted.items(), key=lambda item: (-item[1].count, item[0]))

    def _forget(self) -> None:
        self.approximate = True
        frequent = sorted(self._counted.items(), key=lambda item: -item[1].count)
        self._counted = dict(frequent[: self._most // 2])
