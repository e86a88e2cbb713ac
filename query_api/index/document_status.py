"""Receipts of the last while, and the status of a document's last write by the tables, the graph and its receipt."""

import time
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from cachetools import FIFOCache

from schemas.api import DocumentStatus
from schemas.ids import DocumentKey, Position, format_positions
from schemas.receipts import Outcome, Receipt
from schemas.refusals import explanation_fields

if TYPE_CHECKING:
    from indexer.schema import DocumentRow
    from query_api.index.search_snapshot import Snapshot

MAX_DOCUMENTS = 20_000
MAX_SNAPSHOTS = 256
MAX_WAITING_RECEIPTS = 10_000
SEARCHABLE_OUTCOMES: frozenset[Outcome] = frozenset({"indexed", "deleted"})


class RecentReceipts:
    """The newest receipt of each of the last documents, the receipts of the last records that left nothing in the
    stores, and the position of receipts in each partition."""

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
        self.newest: tuple[float, float] | None = None  # seconds, and when they were measured
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
            shown_at = self._snapshots[first][0]
            self.newest = max(0.0, shown_at - receipt.produced_at_ms / 1000), shown_at
            self._observe(self.newest[0])
        return True


def document_status(
    key: DocumentKey,
    asked: Mapping[int, int],
    snapshot: "Snapshot",
    row: "DocumentRow | None",
    receipts: RecentReceipts,
) -> DocumentStatus:
    """`asked` is the token of the write that is asked about, empty for whatever is known of the document now.

    `row` is the document's row in the snapshot's tables.
    """
    here: dict[str, Any] = {"id": key.document_id, "collection": key.collection} | _indexed_state(snapshot, row)
    pending = _pending(asked, snapshot, row, receipts)
    if pending is not None:
        return DocumentStatus(**here, status="pending", message=pending)
    receipt = receipts.newest(str(key))
    lost = receipts.without_effect(str(key), asked)
    if lost is None and receipt is not None and _refused_since(receipt, asked, row):
        lost = receipt
    if lost is not None:
        return _without_effect(here, lost)
    if row is None:
        return DocumentStatus(**here, status="unknown", message="No record of this document has been indexed.")
    if row.live:
        of_row = receipt is not None and (receipt.partition, receipt.offset) == (row.partition, row.offset)
        notes = list(receipt.notes) if receipt is not None and of_row else []
        return DocumentStatus(**here, status="indexed", final=here["in_graph"], notes=notes)
    return DocumentStatus(**here, status="deleted", final=_graph_shows(snapshot, row))


def _refused_since(newest: Receipt, asked: Mapping[int, int], row: "DocumentRow | None") -> bool:
    """Whether the newest record became a dead letter, after what is shown and not after what is asked about."""
    if newest.outcome != "dead_lettered" or (row is not None and newest.offset <= row.offset):
        return False
    return not asked or newest.offset <= asked.get(newest.partition, -1)


def _without_effect(here: dict[str, Any], receipt: Receipt) -> DocumentStatus:
    """Of a record that left nothing in the stores; `here` is what they show of the document all the same."""
    here = here | {"position": f"{receipt.partition}:{receipt.offset}", "final": True}
    if receipt.outcome == "dead_lettered":
        reason = receipt.reason or "unknown"
        here |= explanation_fields(reason)
        return DocumentStatus(**here, status="dead_lettered", message=receipt.message or reason)
    here["version"] = receipt.version
    message = (
        "It was read again and passed over: when it was first read it became a dead letter, or another record won."
        if receipt.superseded_by is None
        else f"The record at {receipt.superseded_by} won: it has a higher version, or came later."
    )
    return DocumentStatus(**here, status="superseded", message=message)


def _pending(
    asked: Mapping[int, int], snapshot: "Snapshot", row: "DocumentRow | None", receipts: RecentReceipts
) -> str | None:
    """What of the asked write is still to come; None for nothing.

    The tables move on before the receipts arrive: between the two, a record that left no row may yet turn out to be a
    dead letter. Of a batch's token only the partition counts that the document's row is of: others hold none of it.
    """
    if row is not None and row.partition in asked:
        asked = {row.partition: asked[row.partition]}
    positions = snapshot.text.positions
    late = {at: offset for at, offset in asked.items() if at not in positions or positions[at].offset < offset}
    if late:
        return f"The record at {format_positions(late)} is not indexed yet."
    unconfirmed = {at: offset for at, offset in asked.items() if receipts.reached.get(at, -1) < offset}
    if row is not None and row.offset >= unconfirmed.get(row.partition, -1):
        unconfirmed.pop(row.partition, None)
    return f"The receipt of the record at {format_positions(unconfirmed)} has not come yet." if unconfirmed else None


def _indexed_state(snapshot: "Snapshot", row: "DocumentRow | None") -> dict[str, Any]:
    """What searches show of the document now, whatever is on its way."""
    if row is None:
        return {}
    shown = row.live and snapshot.graph.document(row.key) is not None
    return {
        "position": f"{row.partition}:{row.offset}",
        "version": row.version,
        "chunks": row.chunks,
        "searchable": row.live,
        "in_graph": shown and _graph_shows(snapshot, row),
    }


def _graph_shows(snapshot: "Snapshot", row: "DocumentRow") -> bool:
    """Whether the graph has reached all that the row's partition had put into it."""
    stored = snapshot.text.positions.get(row.partition)
    return stored is not None and snapshot.graph.position >= stored.mark
