"""The writer of the LanceDB tables: documents, positions, retrievals and feedback."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Self

import lancedb
import pyarrow as pa
from lancedb.expr import Expr, col, lit
from lancedb.index import Bitmap, BTree
from lancedb.table import Table

from indexer.errors import IncompatibleGeneration
from indexer.generation_folders import Generation, incompatible_advice
from indexer.integrity.files import ChecksumRecorder
from indexer.integrity.row_checksums import with_checksums
from indexer.lance_connection import checkout_latest, connect, open_fresh_tables, store_errors
from indexer.read.known_vectors import EncodedTexts, encoded_by_hash
from indexer.read.lance_reader import stored_positions
from indexer.read.rows import IN_LIST, rows_with
from indexer.schema import (
    CHUNKS,
    DOCUMENTS,
    DOCUMENTS_SCHEMA,
    FEEDBACK,
    FEEDBACK_SCHEMA,
    PASSAGES,
    PASSAGES_SCHEMA,
    POSITIONS,
    POSITIONS_SCHEMA,
    PRIMARY_KEYS,
    RETRIEVALS,
    RETRIEVALS_SCHEMA,
    DocumentRow,
    StoredPosition,
    chunks_schema,
    document_rows,
    documents_table,
    newest_mark,
)
from indexer.write.lance_maintenance import Maintainer, MaintenanceParameters, MaintenanceReport
from indexer.write.lance_recovery import recover_tables
from indexer.write.lance_rows import IndexedRows, chunks_table, feedback_table, passages_table, retrievals_table
from schemas.ids import DocumentKey, Position
from schemas.provenance import Feedback, Retrieval

__all__ = ["IndexedRows", "LanceWriter", "MaintenanceReport"]

REOPEN_AFTER = 100  # calls of `replace`
_COMPARED = ["key", "row", "checksum"]

Revisions = set[tuple[str, str]]  # (key, revision)

Index = BTree | Bitmap
INDEXES: dict[str, dict[str, Index]] = {
    CHUNKS: {"id": BTree(), "key": BTree(), "passage_id": BTree(), "content_hash": BTree(), "collection": Bitmap()},
    PASSAGES: {"id": BTree(), "key": BTree()},
    RETRIEVALS: {"retrieval_id": BTree()},
    FEEDBACK: {"retrieval_id": BTree(), "chunk_id": BTree()},
    POSITIONS: {},
    DOCUMENTS: {"key": BTree(), "collection": Bitmap(), "live": Bitmap()},
}


@dataclass(eq=False)
class LanceWriter:
    """Writes the tables of one generation, one call at a time. Several processes may each write documents of their own.

    `maintain` and `forget` may run in another thread, and `record_checksums` in a third; a commit may have to wait for
    them. Every method may be called twice with the same arguments and leaves the same rows. After a TransientStoreError
    the effect is unknown: call again with the same arguments.
    """

    open_tables: Callable[[], dict[str, Table]]
    dimension: int
    maintainer: Maintainer
    checksums: ChecksumRecorder

    def __post_init__(self) -> None:
        self._tables = self.open_tables()
        self._replaced = 0

    @classmethod
    def open(cls, generation: Generation, dimension: int, maintenance: MaintenanceParameters | None = None) -> Self:
        """Open the tables and create missing ones, `documents` last: where it exists, all do.

        Raises IncompatibleGeneration for tables with other columns or vectors of another dimension, DamagedStore for
        files that do not match their checksums and cannot be made again here; nothing is created then.
        """
        recover_tables(generation)
        schemas = {
            CHUNKS: chunks_schema(dimension),
            PASSAGES: PASSAGES_SCHEMA,
            RETRIEVALS: RETRIEVALS_SCHEMA,
            FEEDBACK: FEEDBACK_SCHEMA,
            POSITIONS: POSITIONS_SCHEMA,
            DOCUMENTS: DOCUMENTS_SCHEMA,
        }
        with store_errors(f"open the tables in {generation.lance_dir}"):
            generation.lance_dir.mkdir(parents=True, exist_ok=True)
            connection = connect(generation.lance_dir)
            try:
                for name, schema in schemas.items():
                    _open_table(connection, name, schema)
            except IncompatibleGeneration as error:
                raise IncompatibleGeneration(f"{error} {incompatible_advice()}") from error
            checksums = ChecksumRecorder(generation.lance_dir)
            checksums.record()
            open_tables = partial(open_fresh_tables, generation.lance_dir, list(schemas))
            maintainer = Maintainer(open_tables, maintenance or MaintenanceParameters())
            return cls(open_tables, dimension, maintainer, checksums)

    def positions(self) -> dict[int, StoredPosition]:
        """The stored position of each partition."""
        with store_errors("read the positions"):
            return stored_positions(self._newest(POSITIONS))

    def stored_documents(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentRow]:
        """The rows of the documents that are known, tombstones included."""
        tables = rows_with(self._newest(DOCUMENTS), "key", [str(key) for key in keys], None)
        return {row.key: row for table in tables for row in document_rows(table)}

    def count_chunks(self) -> int:
        """Rows of chunks, those of replaced revisions included."""
        with store_errors("count the chunks"):
            return int(self._newest(CHUNKS).count_rows())

    def live_keys(self, partition: int, offset: int) -> list[DocumentKey]:
        """The live documents from records of this partition, up to and including an offset."""
        return list(self._live((col("partition") == lit(partition)) & (col("offset") <= lit(offset))))

    def live_positions(self, collection: str | None = None) -> dict[DocumentKey, Position]:
        """The live documents, of one collection or of all, and the record that each came from."""
        return self._live(None if collection is None else col("collection") == lit(collection))

    def _live(self, condition: Expr | None) -> dict[DocumentKey, Position]:
        is_live = col("live") == lit(True)
        columns = ["collection", "document_id", "partition", "offset"]
        with store_errors("list documents"):
            found = self._newest(DOCUMENTS).search().where(is_live if condition is None else is_live & condition)
            rows = found.select(columns).to_arrow()
        named = zip(*(rows[column].to_pylist() for column in columns), strict=True)
        return {DocumentKey(*each[:2]): Position(*each[2:]) for each in named}

    def known_vectors(self, hashes: Sequence[str]) -> EncodedTexts:
        """Stored vectors, (dimension,) float32, of any revision, by the hash of the embedded text."""
        return encoded_by_hash(self._newest(CHUNKS), hashes)

    def replace(self, documents: Sequence[IndexedRows]) -> None:
        """Upsert or delete these documents, each at most once in a batch. At most five commits.

        1. find which revisions of the documents have rows
        2. add the chunks and passages of new revisions, in one commit a table, so that a revision exists wholly or not
           at all
        3. upsert the documents' rows: from here on readers see the new revisions
        4. delete the rows of the other revisions that step 1 found, if there are any; of a tombstone, all of them

        After a crash between two steps the same call finishes the work, so a redelivered record goes through here
        again, even if its document is unchanged. A revision belongs to one document only, as it is computed from the
        key, too. Raises ValueError for rows that do not fit.
        """
        keys = [str(document.row.key) for document in documents]
        if len(set(keys)) != len(keys):
            raise ValueError("A batch names a document twice; collapse it to the newest event of each document.")
        if not documents:
            return
        self._replaced += 1
        if self._replaced % REOPEN_AFTER == 0:
            with store_errors("open the tables afresh"):
                self._tables = self.open_tables()
        new_rows = self._contents(documents)
        document_table = documents_table(document.row for document in documents)
        current = {(str(document.row.key), document.row.revision) for document in documents if document.row.revision}
        stored = {name: self._stored_revisions(name, keys) for name in new_rows}  # 1
        for name, rows in new_rows.items():  # 2
            self._add_missing(name, rows, stored[name])
        self._upsert(DOCUMENTS, with_checksums(DOCUMENTS, document_table))  # 3
        for name in new_rows:  # 4
            self._delete_stale(name, stored[name] - current)

    def rewrite(self, documents: Sequence[IndexedRows]) -> None:
        """Write these documents again, whatever rows they have: also where `replace` would find their revision there.

        Readers see each table before or after its one commit. Costs a scan of it.
        """
        keys = [str(document.row.key) for document in documents]
        of_these = col("key").isin(keys)
        for name, rows in self._contents(documents).items():
            with store_errors(f"list {name}"):
                stored = self._newest(name).search().where(of_these).select(["row"]).to_arrow()["row"].to_pylist()
            with store_errors(f"write {name} again"), self.maintainer.committing(name):
                if len(set(stored)) < len(stored) or not rows.num_rows:  # rows that a merge would leave there twice
                    self._newest(name).delete(of_these)
                if rows.num_rows:
                    merge = self._newest(name).merge_insert(PRIMARY_KEYS[name])
                    merge = merge.when_matched_update_all().when_not_matched_insert_all()
                    merge.when_not_matched_by_source_delete(of_these).execute(with_checksums(name, rows))
        self._upsert(DOCUMENTS, with_checksums(DOCUMENTS, documents_table(document.row for document in documents)))

    def equal_to_stored(self, documents: Sequence[IndexedRows]) -> set[DocumentKey]:
        """Those whose rows are stored already: by ids and checksums, whatever their vectors, and the document's own row
        but for what older records left in it, which compaction may have taken from the log."""
        stored = self.stored_documents([document.row.key for document in documents])
        equal = {each.row.key for each in documents if _is_equal(each.row, stored.get(each.row.key))}
        for name, rows in self._contents(documents).items():
            keys = [str(document.row.key) for document in documents]
            found = rows_with(self._newest(name), "key", keys, _COMPARED)
            differing = _differing_keys(with_checksums(name, rows), found)
            equal = {key for key in equal if str(key) not in differing}
        return equal

    def store_positions(self, reached: Mapping[int, StoredPosition]) -> None:
        """Store the positions of these partitions; others keep theirs."""
        if not reached:
            return
        rows = [{"partition": partition, **position._asdict()} for partition, position in reached.items()]
        self._upsert(POSITIONS, pa.Table.from_pylist(rows, schema=POSITIONS_SCHEMA))

    def add_retrievals(self, retrievals: Sequence[tuple[str, Retrieval]]) -> None:
        """Insert the records of retrievals; an id that already exists stays as it is."""
        if not retrievals:
            return
        rows = retrievals_table(retrievals)
        with store_errors("keep the retrievals"), self.maintainer.committing(RETRIEVALS):
            merge = self._newest(RETRIEVALS).merge_insert(PRIMARY_KEYS[RETRIEVALS])
            merge.when_not_matched_insert_all().execute(with_checksums(RETRIEVALS, rows))

    def put_feedback(self, feedback: Sequence[tuple[Feedback, int]]) -> None:
        """Upsert feedback with the offsets of its records: the latest of a caller on a hit wins."""
        if not feedback:
            return
        rows = feedback_table(feedback)
        with store_errors("keep the feedback"), self.maintainer.committing(FEEDBACK):
            merge = self._newest(FEEDBACK).merge_insert(PRIMARY_KEYS[FEEDBACK])
            merge = merge.when_matched_update_all(where="source.log_offset >= target.log_offset")
            merge.when_not_matched_insert_all().execute(with_checksums(FEEDBACK, rows))

    def maintain(self) -> MaintenanceReport:
        """See Maintainer.maintain."""
        return self.maintainer.maintain()

    def forget(self, before_ms: int) -> int:
        """See Maintainer.forget."""
        return self.maintainer.forget(before_ms)

    def record_checksums(self) -> int:
        """See ChecksumRecorder.record."""
        with store_errors("record the files' checksums"):
            return self.checksums.record()

    def close(self) -> None:
        """Record the last checksums and release the tables."""
        self.record_checksums()
        self._tables.clear()

    def _contents(self, documents: Sequence[IndexedRows]) -> dict[str, pa.Table]:
        return {PASSAGES: passages_table(documents), CHUNKS: chunks_table(documents, self.dimension)}

    def _newest(self, name: str) -> Table:
        """The table at its newest version. Also to write: maintenance may have removed an older one, without which no
        commit succeeds."""
        table = self._tables[name]
        with store_errors(f"open {name}"):
            checkout_latest(table)
        return table

    def _stored_revisions(self, name: str, keys: Iterable[str]) -> Revisions:
        stored: Revisions = set()
        for rows in rows_with(self._newest(name), "key", keys, ["key", "revision"]):
            stored |= set(zip(rows["key"].to_pylist(), rows["revision"].to_pylist(), strict=True))
        return stored

    def _add_missing(self, name: str, rows: pa.Table, stored: Revisions) -> None:
        revisions = zip(rows["key"].to_pylist(), rows["revision"].to_pylist(), strict=True)
        missing = rows.filter(pa.array([revision not in stored for revision in revisions], type=pa.bool_()))
        if missing.num_rows:
            with store_errors(f"add {name}"), self.maintainer.committing(name):
                self._newest(name).add(with_checksums(name, missing))

    def _delete_stale(self, name: str, stale: Revisions) -> None:
        """Delete these revisions and no others: of the same documents another process may have written newer ones."""
        listed = sorted(stale)
        for start in range(0, len(listed), IN_LIST):
            keys, revisions = zip(*listed[start : start + IN_LIST], strict=True)
            condition = col("key").isin(list(dict.fromkeys(keys))) & col("revision").isin(list(revisions))
            with store_errors(f"delete stale {name}"), self.maintainer.committing(name):
                self._newest(name).delete(condition)

    def _upsert(self, name: str, rows: pa.Table) -> None:
        with store_errors(f"write {name}"), self.maintainer.committing(name):
            merge = self._newest(name).merge_insert(PRIMARY_KEYS[name])
            merge.when_matched_update_all().when_not_matched_insert_all().execute(rows)


def _is_equal(made: DocumentRow, stored: DocumentRow | None) -> bool:
    """Whether a stored row says what this one does. It may know a higher version, and more partitions."""
    if not made.live or stored is None:
        return not made.live and (stored is None or not stored.live)
    if made.version is not None and (stored.version is None or stored.version < made.version):
        return False
    return replace(made, version=stored.version, other_partitions=stored.other_partitions) == stored


def _differing_keys(made: pa.Table, stored: Iterable[pa.Table]) -> set[str]:
    """The keys of documents of which other rows are stored."""
    expected = {(each["key"], each["row"]): each["checksum"] for each in made.select(_COMPARED).to_pylist()}
    differing = set()
    for each in (row for rows in stored for row in rows.select(_COMPARED).to_pylist()):
        checksum = expected.pop((each["key"], each["row"]), None)
        if each["checksum"] != checksum:
            differing.add(each["key"])
    return differing | {key for key, _ in expected}


def mark_of_tables(lance_dir: Path) -> int:
    """The newest offset of a contributions topic that the stored positions name; -1 for none."""
    with store_errors("read the positions"):
        connection = connect(lance_dir)
        if POSITIONS not in connection.list_tables().tables:
            return -1
        return newest_mark(stored_positions(connection.open_table(POSITIONS)))


def forget_marks(lance_dir: Path) -> None:
    """Let the stored positions name no offset of a contributions topic."""
    if mark_of_tables(lance_dir) >= 0:
        with store_errors("write the positions"):
            connect(lance_dir).open_table(POSITIONS).update(values={"mark": -1})


def _open_table(connection: lancedb.DBConnection, name: str, schema: pa.Schema) -> Table:
    """The table with its indexes; missing ones are created."""
    try:
        table = connection.create_table(name, schema=schema, exist_ok=True)
    except ValueError as error:
        vectors = f"; it writes vectors of {schema.field('vector').type.list_size} dimensions" if name == CHUNKS else ""
        raise IncompatibleGeneration(
            f"The table {name!r} has other columns than this program writes{vectors}."
        ) from error
    indexed = {index.columns[0] for index in table.list_indices()}
    for column, index in INDEXES[name].items():
        if column not in indexed:
            table.create_index(column, config=index)
    return table
