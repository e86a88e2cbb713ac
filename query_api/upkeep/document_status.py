"""What became of a document's last write: told from the tables, the graph and the receipts. No I/O."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from query_api.searching.engine import tables_of
from query_api.upkeep.recent_receipts import RecentReceipts
from schemas.api import DocumentStatus
from schemas.ids import DocumentKey, format_token

if TYPE_CHECKING:
    from indexer.tables import DocumentRow
    from query_api.reading.snapshot import Snapshot


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
    if receipt is not None and receipt.outcome == "dead_lettered" and (row is None or receipt.offset > row.offset):
        refused = {"position": f"{receipt.partition}:{receipt.offset}", "message": receipt.message or receipt.reason}
        return DocumentStatus(**(here | refused), status="dead_lettered", final=True)
    if row is None:
        return DocumentStatus(**here, status="unknown", message="No record of this document has been indexed.")
    if row.live:
        of_row = receipt is not None and (receipt.partition, receipt.offset) == (row.partition, row.offset)
        notes = list(receipt.notes) if receipt is not None and of_row else []
        return DocumentStatus(**here, status="indexed", final=here["in_graph"], notes=notes)
    return DocumentStatus(**here, status="deleted", final=_graph_shows(snapshot, row))


def _pending(
    asked: Mapping[int, int], snapshot: "Snapshot", row: "DocumentRow | None", receipts: RecentReceipts
) -> str | None:
    """What of the asked write is still to come; None for nothing.

    The tables tell how far they are before the receipts tell what became of each record: between the two, a record that
    left no row may yet turn out to be a dead letter.
    """
    positions = tables_of(snapshot).positions
    late = {at: offset for at, offset in asked.items() if at not in positions or positions[at].offset < offset}
    if late:
        return f"The record at {format_token(late)} is not indexed yet."
    untold = {at: offset for at, offset in asked.items() if receipts.reached.get(at, -1) < offset}
    if row is not None and row.offset >= untold.get(row.partition, -1):
        untold.pop(row.partition, None)
    return f"The receipt of the record at {format_token(untold)} has not come yet." if untold else None


def _indexed_state(snapshot: "Snapshot", row: "DocumentRow | None") -> dict[str, Any]:
    """What searches show of the document now, whatever is on its way."""
    if row is None:
        return {}
    held = row.live and snapshot.graph.document(row.key) is not None
    return {
        "position": f"{row.partition}:{row.offset}",
        "version": row.version,
        "chunks": row.chunks,
        "searchable": row.live,
        "in_graph": held and _graph_shows(snapshot, row),
    }


def _graph_shows(snapshot: "Snapshot", row: "DocumentRow") -> bool:
    """Whether the graph has reached all that the row's partition had put into it."""
    stored = tables_of(snapshot).positions.get(row.partition)
    return stored is not None and snapshot.graph.position >= stored.graph_offset
