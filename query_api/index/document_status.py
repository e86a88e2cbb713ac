"""What became of a document's last write, by the tables, the graph and the receipts. No I/O."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from query_api.index.receipts import RecentReceipts
from schemas.api import DocumentStatus
from schemas.ids import DocumentKey, format_positions
from schemas.receipts import Receipt

if TYPE_CHECKING:
    from indexer.schema import DocumentRow
    from query_api.index.snapshot import Snapshot


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
        return DocumentStatus(**here, status="dead_lettered", message=receipt.message or receipt.reason)
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
    dead letter.
    """
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
    return stored is not None and snapshot.graph.position >= stored.graph_offset
