"""The receipts of the last while: what became of records, and how long they took to become searchable."""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping

from cachetools import FIFOCache

from schemas.ids import Position
from schemas.receipts import Outcome, Receipt

MAX_DOCUMENTS = 20_000
MAX_SNAPSHOTS = 256
MAX_WAITING_RECEIPTS = 10_000
SEARCHABLE_OUTCOMES: frozenset[Outcome] = frozenset({"indexed", "deleted"})


class RecentReceipts:
    """The newest receipt of each of the last documents, the receipts of the last records that left nothing in the
    stores, and how far receipts have come in each partition."""

    def __init__(self, capacity: int = MAX_DOCUMENTS) -> None:
        self._by_key: FIFOCache[str, Receipt] = FIFOCache(capacity)
        self._without_effect: FIFOCache[Position, Receipt] = FIFOCache(capacity)
        self._reached: dict[int, int] = {}

    @property
    def reached(self) -> Mapping[int, int]:
        """The highest offset of the documents topic with a receipt, by partition."""
        return self._reached

    def add(self, receipt: Receipt) -> None:
        position = Position(receipt.partition, receipt.offset)
        self._reached[receipt.partition] = max(self._reached.get(receipt.partition, -1), receipt.offset)
        refused_before = self._without_effect.get(position)
        if receipt.outcome == "superseded" and refused_before and refused_before.outcome == "dead_lettered":
            return  # read again, it is not parsed again: the first receipt says why it was refused
        if receipt.outcome in ("superseded", "dead_lettered"):
            self._without_effect[position] = receipt
        else:
            self._without_effect.pop(position, None)  # read again after the stores were lost, it did have an effect
        known = self._by_key.get(receipt.key)
        if known is None or position >= (known.partition, known.offset):
            self._by_key[receipt.key] = receipt

    def newest(self, key: str) -> Receipt | None:
        """`key` is the record key, `<collection>/<document id>`."""
        return self._by_key.get(key)

    def without_effect(self, key: str, asked: Mapping[int, int]) -> Receipt | None:
        """The receipt of the document's record at one of the asked positions, {partition: offset}, where it was
        superseded or refused and that is remembered."""
        for position in asked.items():
            receipt = self._without_effect.get(Position(*position))
            if receipt is not None and receipt.key == key:
                return receipt
        return None


class IndexFreshness:
    """Gives `observe` the seconds from a record's produce time until a snapshot showed it, once for each record.

    A receipt may come before the snapshot that shows its record, or after it. What the eldest remembered snapshot shows
    is left out: since when is not known. Differences between the clocks of producer and service are in the seconds.
    """

    def __init__(self, observe: Callable[[float], None], now_seconds: Callable[[], float] = time.time) -> None:
        self._observe = observe
        self._now_seconds = now_seconds
        self._snapshots: deque[tuple[float, Mapping[int, int]]] = deque(maxlen=MAX_SNAPSHOTS)
        self._waiting: deque[Receipt] = deque(maxlen=MAX_WAITING_RECEIPTS)
        self._newest_offsets: dict[int, int] = {}

    def add_snapshot(self, positions: Mapping[int, int]) -> None:
        """Searches read a snapshot from now on that shows these offsets, by partition: never lower than before."""
        if self._snapshots and self._snapshots[-1][1] == positions:
            return
        self._snapshots.append((self._now_seconds(), positions))
        self._waiting = deque((each for each in self._waiting if not self._measured(each)), MAX_WAITING_RECEIPTS)

    def reset(self) -> None:
        """Another generation is read from now on, which may have reached less."""
        self._snapshots.clear()

    def add_receipt(self, receipt: Receipt) -> None:
        """One that comes again is ignored."""
        if receipt.offset <= self._newest_offsets.get(receipt.partition, -1):
            return
        self._newest_offsets[receipt.partition] = receipt.offset
        measurable = receipt.outcome in SEARCHABLE_OUTCOMES and receipt.produced_at_ms
        if measurable and not self._measured(receipt):
            self._waiting.append(receipt)

    def _measured(self, receipt: Receipt) -> bool:
        """Whether nothing is left to wait for."""
        first = bisect_left(self._snapshots, receipt.offset, key=lambda each: each[1].get(receipt.partition, -1))
        if first == len(self._snapshots):
            return False
        if first:
            self._observe(max(0.0, self._snapshots[first][0] - receipt.produced_at_ms / 1000))
        return True
