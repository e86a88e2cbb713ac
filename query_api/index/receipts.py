"""The receipts of the last while: what became of a record, before and beside what the stores show."""

from collections import OrderedDict
from collections.abc import Mapping

from schemas.ids import Position
from schemas.receipts import Receipt

REMEMBERED_DOCUMENTS = 20_000


class RecentReceipts:
    """The newest receipt of each of the last documents, the receipts of the last records that left nothing in the
    stores, and how far receipts have come in each partition."""

    def __init__(self, capacity: int = REMEMBERED_DOCUMENTS) -> None:
        self._capacity = capacity
        self._by_key: OrderedDict[str, Receipt] = OrderedDict()
        self._without_effect: OrderedDict[Position, Receipt] = OrderedDict()
        self._reached: dict[int, int] = {}

    @property
    def reached(self) -> Mapping[int, int]:
        """The highest offset of the documents topic that a receipt has told of, by partition."""
        return self._reached

    def add(self, receipt: Receipt) -> None:
        position = Position(receipt.partition, receipt.offset)
        self._reached[receipt.partition] = max(self._reached.get(receipt.partition, -1), receipt.offset)
        refused_before = self._without_effect.get(position)
        if receipt.outcome == "superseded" and refused_before and refused_before.outcome == "dead_lettered":
            return  # read again, it is not parsed again: why it was refused stands in the first receipt
        if receipt.outcome in ("superseded", "dead_lettered"):
            self._without_effect[position] = receipt
            if len(self._without_effect) > self._capacity:
                self._without_effect.popitem(last=False)
        else:
            self._without_effect.pop(position, None)  # read again after the stores were lost, it did have an effect
        known = self._by_key.get(receipt.key)
        if known is None or position >= (known.partition, known.offset):
            self._by_key[receipt.key] = receipt
            self._by_key.move_to_end(receipt.key)
        if len(self._by_key) > self._capacity:
            self._by_key.popitem(last=False)

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
