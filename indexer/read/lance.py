"""The text stores as the query service sees them: a snapshot that is replaced when the writer has gone on."""

import threading
from datetime import UTC, datetime
from typing import Self

from lancedb import DBConnection
from lancedb.table import Table

from indexer.errors import TransientStoreError
from indexer.generations import Generation
from indexer.integrity.check import require_intact_tables
from indexer.read.lance_snapshot import VectorSnapshot
from indexer.read.resident.view import MOST_RESIDENT_CHUNKS, MOST_TEXT_BYTES, ResidentView
from indexer.read.rows import ChunkRow, ContentRows, FoundChunk, FoundPassage, PassageRow
from indexer.schema import (
    CHUNKS,
    DOCUMENTS,
    INDEX_CACHE_BYTES,
    PASSAGES,
    POSITIONS,
    DocumentRow,
    StoredPosition,
    connect,
    reading,
    store_errors,
)

__all__ = [
    "ChunkRow",
    "ContentRows",
    "DocumentRow",
    "FoundChunk",
    "FoundPassage",
    "PassageRow",
    "StoredPosition",
    "VectorReader",
    "VectorSnapshot",
]

INDEX_TABLES = (POSITIONS, DOCUMENTS, PASSAGES, CHUNKS)
MOST_ATTEMPTS = 50


class VectorReader:
    """Keeps the newest consistent snapshot. Thread-safe; any number of readers and one writer may share the tables."""

    def __init__(self, connection: DBConnection, nothing: ResidentView) -> None:
        self._connection = connection
        self._nothing = nothing
        self._refreshing = threading.Lock()
        self._snapshot: VectorSnapshot | None = None

    @classmethod
    def open(
        cls,
        generation: Generation,
        *,
        index_cache_bytes: int = INDEX_CACHE_BYTES,
        most_resident_chunks: int = MOST_RESIDENT_CHUNKS,
        most_text_bytes: int = MOST_TEXT_BYTES,
    ) -> Self:
        """Open the tables of a generation, read-only. With more chunks than `most_resident_chunks`, their vectors are
        searched in the table, by its index; with longer texts than `most_text_bytes`, these are read from it.

        Raises FileNotFoundError while the writer has not made them yet, TransientStoreError when they cannot be read,
        DamagedStore where a file, a row or a table of the index is not what was written.
        """
        require_intact_tables(generation, INDEX_TABLES)
        missing = f"Generation {generation.name} has no tables in {generation.lance_dir} yet: start the worker."
        if not generation.lance_dir.is_dir():
            raise FileNotFoundError(missing)
        with store_errors(f"open the tables in {generation.lance_dir}"):
            connection = connect(generation.lance_dir, index_cache_bytes=index_cache_bytes)
            made = DOCUMENTS in connection.list_tables().tables  # the writer makes it last
        if not made:
            raise FileNotFoundError(missing)
        reader = cls(connection, ResidentView.empty(most_resident_chunks, most_text_bytes))
        reader.refresh()
        return reader

    def snapshot(self) -> VectorSnapshot:
        """The newest snapshot that `refresh` has seen. Costs nothing."""
        if self._snapshot is None:
            raise RuntimeError("VectorReader.open makes the first snapshot.")
        return self._snapshot

    def refresh(self) -> bool:
        """Look for newer versions; True if the snapshot changed. A millisecond or so, a few when something changed.

        The writer adds rows, then moves documents, then deletes stale rows, then moves positions. Read the other way
        round (positions, documents, then rows) and with documents unmoved meanwhile, the tables belong together.
        Raises TransientStoreError when the tables cannot be read; the old snapshot stays.
        """
        with self._refreshing, store_errors("open the newest versions"):
            for _ in range(MOST_ATTEMPTS):
                opened = {name: self._open_table(name) for name in INDEX_TABLES}
                if self._open_table(DOCUMENTS).version == opened[DOCUMENTS].version:
                    return self._replace_snapshot(opened)
            raise TransientStoreError(f"The documents table moved {MOST_ATTEMPTS} times while a snapshot was opened.")

    def _open_table(self, name: str) -> Table:
        try:
            return self._connection.open_table(name)
        except ValueError as error:
            raise TransientStoreError(f"The table {name} is gone: {error}. Has the generation been removed?") from error

    def _replace_snapshot(self, opened: dict[str, Table]) -> bool:
        old = self._snapshot
        versions = {name: table.version for name, table in opened.items()}
        if old is not None and old.table_versions == versions:
            return False
        same_positions = old is not None and old.table_versions[POSITIONS] == versions[POSITIONS]
        same_documents = old is not None and old.table_versions[DOCUMENTS] == versions[DOCUMENTS]
        resident = self._nothing if old is None else old.resident
        self._snapshot = VectorSnapshot(
            self._connection,
            opened,
            old.positions if old is not None and same_positions else stored_positions(opened[POSITIONS]),
            datetime.now(UTC),
            resident if same_documents else resident.at(opened, {} if old is None else old.positions),
            old.known_documents if old is not None and same_documents else {},
        )
        return True


def stored_positions(table: Table) -> dict[int, StoredPosition]:
    """The rows of `positions` by partition."""
    with reading(POSITIONS):
        rows = table.to_arrow().to_pylist()
    return {
        row["partition"]: StoredPosition(row["offset"], row["graph_offset"], row.get("timestamp_ms") or 0)
        for row in rows
    }
