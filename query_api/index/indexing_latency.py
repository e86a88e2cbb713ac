"""How long documents take to become searchable here: from their receipts, and from when snapshots first showed them.

A canary document would measure the same with a record of its own; every real document is one.
"""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemas.receipts import Outcome, Receipt

SEARCHES_CHANGED: frozenset["Outcome"] = frozenset({"indexed", "deleted"})
REMEMBERED_SNAPSHOTS = 256
MOST_WAITING = 10_000


class IndexFreshness:
    """Gives `observe` the seconds from a record's produce time until a snapshot showed it, once for each record.

    A receipt may come before the snapshot that shows its record, or after it. What the eldest snapshot remembered shows
    is left out: since when is not known. Clocks that differ between producer and service are in the seconds.
    """

    def __init__(self, observe: Callable[[float], None], now_seconds: Callable[[], float] = time.time) -> None:
        self._observe = observe
        self._now_seconds = now_seconds
        self._shown: list[tuple[float, Mapping[int, int]]] = []
        self._waiting: deque[Receipt] = deque(maxlen=MOST_WAITING)
        self._told: dict[int, int] = {}

    def shows(self, positions: Mapping[int, int]) -> None:
        """Searches read a snapshot from now on that shows these offsets, by partition: never lower ones than before."""
        if self._shown and self._shown[-1][1] == positions:
            return
        self._shown = [*self._shown[1 - REMEMBERED_SNAPSHOTS :], (self._now_seconds(), positions)]
        self._waiting = deque((each for each in self._waiting if not self._measured(each)), MOST_WAITING)

    def begin_anew(self) -> None:
        """Another generation is read from now on, which may have come less far."""
        self._shown = []

    def told(self, receipt: "Receipt") -> None:
        """A receipt came; one that comes again is passed over."""
        if receipt.offset <= self._told.get(receipt.partition, -1):
            return
        self._told[receipt.partition] = receipt.offset
        is_news = receipt.outcome in SEARCHES_CHANGED and receipt.produced_at_ms
        if is_news and not self._measured(receipt):
            self._waiting.append(receipt)

    def _measured(self, receipt: "Receipt") -> bool:
        """Whether nothing is left to wait for."""
        first = bisect_left(self._shown, receipt.offset, key=lambda shown: shown[1].get(receipt.partition, -1))
        if first == len(self._shown):
            return False
        if first:
            self._observe(max(0.0, self._shown[first][0] - receipt.produced_at_ms / 1000))
        return True
