"""Exports the stored documents as envelopes, to publish them again if the log is lost.

The stores contain a document's parsed text with headings, title and metadata; its original bytes, formatting and links
are in the log alone. So each document becomes HTML, whose headings are unambiguous.
"""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

import msgspec

from indexer.errors import IncompatibleGeneration
from indexer.generations import current_generation
from indexer.lance_connection import connect, store_errors
from indexer.read.rows import PASSAGE_COLUMNS, PassageRow, passage_rows, rows_with
from indexer.schema import DOCUMENTS, PASSAGES, DocumentRow, document_rows
from schemas.events import Envelope

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
                    yield msgspec.json.encode(envelope_of(row, current))

    return len(keys), envelopes()


def envelope_of(row: DocumentRow, passages: Sequence[PassageRow]) -> Envelope:
    """A document from its row and its passages, in any order."""
    return Envelope(
        id=row.key.document_id,
        collection=row.key.collection,
        title=row.title or None,
        content=html_of(sorted(passages, key=lambda passage: passage.ordinal)),
        content_type=CONTENT_TYPE,
        uri=row.uri,
        metadata=row.own_metadata,
        version=row.version,
    )


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
