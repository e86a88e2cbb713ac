"""What this service wrote of nodes and edges, until its snapshots show it: the next write is checked against it too."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping
from weakref import WeakValueDictionary

from schemas.ids import DocumentKey

Positions = Mapping[int, int]


class OwnWrites:
    def __init__(self) -> None:
        self._positions: dict[DocumentKey, Positions] = {}
        self._locks: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()
        self.checked: Counter[Hashable] = Counter()
        """How many writes a check of each name has let through: one that saw fewer is to be made again."""
        self.waited_with: object = None
        """The snapshot with which one was waited for in vain: while nothing newer comes, waiting again is of no use."""

    def add(self, key: DocumentKey, positions: Positions) -> None:
        """`positions` are those of its newest record, {partition: offset}."""
        self._positions[key] = positions

    def one_at_a_time(self, name: Hashable) -> asyncio.Lock:
        """Held from a check that what is being written under this name may change until it is written."""
        return self._locks.setdefault(name, asyncio.Lock())

    def newest(self, key: DocumentKey) -> Positions:
        """Of its newest record; empty where that was shown before."""
        return self._positions.get(key, {})

    def unseen(self, is_shown: Callable[[Positions], bool], document_ids: Collection[str] = ()) -> dict[int, int]:
        """The positions of what is not shown yet of documents of these ids, or of all; what is shown is forgotten."""
        self._positions = {key: each for key, each in self._positions.items() if not is_shown(each)}
        found: dict[int, int] = {}
        for key, positions in self._positions.items():
            if not document_ids or key.document_id in document_ids:
                for partition, offset in positions.items():
                    found[partition] = max(found.get(partition, -1), offset)
        return found
