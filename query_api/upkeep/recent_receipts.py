"""The receipts of the last while: what became of a record, before and beside what the stores show."""

from collections import OrderedDict
from collections.abc import Mapping

from schemas.receipts import Receipt

REMEMBERED_DOCUMENTS = 20_000


class RecentReceipts:
    """The newest receipt of each of the last documents, and how far receipts have come in each partition."""

    def __init__(self, capacity: int = REMEMBERED_DOCUMENTS) -> None:
        self._capacity = capacity
        self._by_key: OrderedDict[str, Receipt] = OrderedDict()
        self._reached: dict[int, int] = {}

    @property
    def reached(self) -> Mapping[int, int]:
        """The highest offset of the documents topic that a receipt has told of, by partition."""
        return self._reached

    def add(self, receipt: Receipt) -> None:
        known = self._by_key.get(receipt.key)
        if known is None or (receipt.partition, receipt.offset) >= (known.partition, known.offset):
            self._by_key[receipt.key] = receipt
            self._by_key.move_to_end(receipt.key)
        if len(self._by_key) > self._capacity:
            self._by_key.popitem(last=False)
        self._reached[receipt.partition] = max(self._reached.get(receipt.partition, -1), receipt.offset)

    def newest(self, key: str) -> Receipt | None:
        """`key` is the record key, `<collection>/<document id>`."""
        return self._by_key.get(key)
