"""Exports the stored documents as envelopes, to publish them again if the log is lost.

The stores contain a document's parsed text with headings, title and metadata; its original bytes, formatting and links
are in the log alone. So each document becomes HTML, whose headings are unambiguous. A node or an edge that people made
becomes what it was; but for a node's label, type and text, that is in the newest snapshot of the graph.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import msgspec
import structlog

from indexer.errors import IncompatibleGeneration
from indexer.generation_folders import Generation, current_generation
from indexer.graph.snapshots import newest_intact_snapshot, read_graph
from indexer.lance_connection import connect, store_errors
from indexer.read.rows import PASSAGE_COLUMNS, PassageRow, joined_text, passage_rows, rows_with
from indexer.schema import DOCUMENTS, PASSAGES, DocumentRow, document_rows
from schemas.events import Envelope
from schemas.graph_delta import decode_attributes
from schemas.graph_documents import kind_of
from schemas.graph_edits import EDGE, NODE
from schemas.ids import DocumentKey

log = structlog.get_logger(__name__)

CONTENT_TYPE = "text/html"
BATCH_DOCUMENTS = 200
DEEPEST_HEADING = 6


def exported(data_dir: Path) -> tuple[int, Iterator[bytes]]:
    """(number of live documents in the current generation, each as a JSON envelope, in no order).

    Raises IncompatibleGeneration where there are no stores, TransientStoreError when they cannot be read.
    """
    generation = current_generation(data_dir)
    if generation is None or not generation.lance_dir.is_dir():
        raise IncompatibleGeneration(f"There are no stores in {data_dir}.")
    with store_errors(f"read the tables in {generation.lance_dir}"):
        connection = connect(generation.lance_dir)
        documents, passages = connection.open_table(DOCUMENTS), connection.open_table(PASSAGES)
        rows = documents.search().select(["key", "live"]).to_arrow().to_pylist()
    keys = [row["key"] for row in rows if row["live"]]

    made = _made(generation)

    def envelopes() -> Iterator[bytes]:
        for start in range(0, len(keys), BATCH_DOCUMENTS):
            batch = keys[start : start + BATCH_DOCUMENTS]
            by_key: dict[str, list[PassageRow]] = {key: [] for key in batch}
            for table in rows_with(passages, "key", batch, PASSAGE_COLUMNS):
                for passage in passage_rows(table):
                    by_key[str(passage.key)].append(passage)
            for table in rows_with(documents, "key", batch, None):
                for row in document_rows(table):
                    current = [each for each in by_key[str(row.key)] if each.revision == row.revision]
                    if kind_of(row.content_type) == EDGE and row.key not in made:
                        log.warning("an edge is in no snapshot of the graph and is left out", key=str(row.key))
                        continue
                    yield msgspec.json.encode(envelope_of(row, current, made.get(row.key, {})))

    return len(keys), envelopes()


def envelope_of(row: DocumentRow, passages: Sequence[PassageRow], made: Mapping[str, Any] | None = None) -> Envelope:
    """A document from its row and its passages, in any order; `made` is what the graph holds of a node or an edge."""
    ordered = sorted(passages, key=lambda passage: passage.ordinal)
    kind, metadata = kind_of(row.content_type), dict(row.own_metadata)
    if kind is None:
        content, content_type = html_of(ordered), CONTENT_TYPE
    else:
        node_type, _ = metadata.pop("node_type", None), metadata.pop("node", None)
        of_row = {"label": row.title, "type": node_type, "text": joined_text(ordered)} if kind == NODE else {}
        stated = {name: value for name, value in {**of_row, **(made or {})}.items() if value is not None}
        content, content_type = msgspec.json.encode(stated).decode(), row.content_type
    return Envelope(
        id=row.key.document_id,
        collection=row.key.collection,
        title=(row.title or None) if kind is None else None,
        content=content,
        content_type=content_type,
        uri=row.uri,
        metadata=metadata,
        version=row.version,
    )


def _made(generation: Generation) -> dict[DocumentKey, dict[str, Any]]:
    """What the newest intact snapshot of the graph holds of the nodes and edges that people made."""
    snapshot = newest_intact_snapshot(generation.snapshots_dir)
    if snapshot is None:
        return {}
    graph = read_graph(generation.snapshots_dir, snapshot)
    documents = graph.documents.select(["collection", "document_id"]).to_pylist()
    keys = [DocumentKey(each["collection"], each["document_id"]) for each in documents]
    nodes = [
        {"label": row["label"], "type": row["type"], "aliases": row["aliases"], **decode_attributes(row["attributes"])}
        for row in graph.nodes.to_pylist()
    ]
    relations = [
        {"predicate": row["predicate"], "weight": row["weight"], **decode_attributes(row["attributes"])}
        for row in graph.relations.to_pylist()
    ]
    names = graph.references["name"].to_pylist()
    for end in graph.ends.to_pylist():
        relations[end["source"]][end["role"]] = names[end["target"]]
    found: dict[DocumentKey, dict[str, Any]] = {}
    for table, rows in (("nodes", nodes), ("relations", relations)):
        found |= {keys[at]: row for at, row in zip(graph.documents_of(table).tolist(), rows, strict=True)}
    return found


def html_of(passages: Sequence[PassageRow]) -> str:
    """The text of ordered passages under their headings, without their overlap."""
    parts: list[str] = []
    section: list[str] = []
    end = 0
    for passage in passages:
        if passage.section != section:
            parts += _headings(section, passage.section)
            section, end = passage.section, passage.start
        text = passage.text[max(0, end - passage.start) :].strip()
        if text:
            parts.append(f"<pre>{escape(text)}</pre>")
        end = max(end, passage.end)
    return "\n".join(parts)


def _headings(before: Sequence[str], now: Sequence[str]) -> Iterator[str]:
    """The headings of a section that differ from those before."""
    shared = 0
    while shared < min(len(before), len(now)) and before[shared] == now[shared]:
        shared += 1
    for depth in range(min(shared, len(now) - 1), len(now)):
        level = min(depth + 1, DEEPEST_HEADING)
        yield f"<h{level}>{escape(now[depth])}</h{level}>"
