"""The text tables in memory: live documents' fields, passages' postings and texts, chunks' vectors.

It goes from one state of the tables to the next by the documents that changed in between. Those are known by their
position: a document's row holds the partition and offset of the record that changed it last.
"""

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import blake2b
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indexer.read.rows import ChunkRow, PassageRow, vector_matrix
from indexer.schema import CHUNKS, PASSAGES, DocumentRow, StoredPosition
from query_api.index.strings import StringLists, Strings, one_array
from query_api.index.text.bm25_index import InvertedIndex, Postings
from query_api.index.text.filter_evaluation import RECORD_COLUMNS, DocumentColumns, DocumentIndex
from query_api.index.text.text_segments import Columns, Scope, Segment, Segments, group_spans
from query_api.index.text.vectors import ChunkBounds, ChunkVectors, VectorIndex
from schemas.ids import DocumentKey
from schemas.settings import MIB

TEXT_COLUMNS = ("ordinal", "section", "start", "end", "title", "text")


@dataclass(frozen=True)
class PassageTexts(Columns):
    """The columns of passages beside their ids and terms."""

    table: pa.Table  # TEXT_COLUMNS, one block each
    documents: NDArray[np.uint64]  # (n_rows,) a digest of the whole text of the document that the row is of

    @classmethod
    def from_table(cls, rows: pa.Table, keys: Sequence[DocumentKey]) -> "PassageTexts":
        """`keys` has the document of each row."""
        table = rows.select(TEXT_COLUMNS).combine_chunks()
        return cls(table, _digests_of_documents(keys, table["text"].to_pylist()))

    def read(self, rows: NDArray[np.intp]) -> Iterator[tuple[int, list[str], int, int, str, str]]:
        """TEXT_COLUMNS of these rows."""
        ordinals, starts, ends = (numbers[rows].tolist() for numbers in self._numbers)
        sections, (titles, texts) = self._sections.of(rows), (strings.of(rows) for strings in self._strings)
        return zip(ordinals, sections, starts, ends, titles, texts, strict=True)

    @cached_property
    def _numbers(self) -> list[NDArray[np.int32]]:
        return [self.table[name].to_numpy() for name in ("ordinal", "start", "end")]

    @cached_property
    def _sections(self) -> StringLists:
        return StringLists(one_array(self.table["section"]))

    @cached_property
    def _strings(self) -> list[Strings]:
        return [Strings(one_array(self.table[name])) for name in ("title", "text")]

    def rows_of_text(self, digest: np.uint64) -> NDArray[np.intp]:
        """The rows of the documents with this text."""
        order, digests = self._by_digest
        return order[digests.searchsorted(digest, "left") : digests.searchsorted(digest, "right")]

    @cached_property
    def _by_digest(self) -> tuple[NDArray[np.intp], NDArray[np.uint64]]:
        order = np.argsort(self.documents, kind="stable")
        return order, self.documents[order]

    def filter(self, rows: NDArray[np.bool_]) -> "PassageTexts":
        if rows.all():
            return self
        return PassageTexts(self.table.filter(pa.array(rows)).combine_chunks(), self.documents[rows])

    def concat(self, other: "PassageTexts") -> "PassageTexts":
        return PassageTexts(
            pa.concat_tables([self.table, other.table]).combine_chunks(),
            np.concatenate([self.documents, other.documents]),
        )


_LOWER = bytes(range(256)).lower()


def _digests_of_documents(keys: Sequence[DocumentKey], texts: Sequence[str]) -> NDArray[np.uint64]:
    """(n_rows,) of the texts of all rows of a document, which are adjacent, but for blanks and the case of ASCII."""
    digests = np.zeros(len(keys), dtype=np.uint64)
    for start, end in group_spans(keys).values():
        text = "".join(texts[start:end]).encode().translate(_LOWER, b" \t\n\r\f\v")
        digests[start:end] = int.from_bytes(blake2b(text, digest_size=8).digest(), "big")
    return digests


class PassageIndex:
    """Segments of texts. Immutable; thread-safe."""

    def __init__(self, segments: Segments[PassageTexts]) -> None:
        self.segments = segments

    @property
    def nbytes(self) -> int:
        return sum(segment.columns.table.nbytes for segment in self.segments)

    def passages(self, ids: Iterable[str], revisions: Mapping[DocumentKey, str]) -> dict[str, PassageRow]:
        """The passages that are there; `revisions` are the current ones of their documents."""
        wanted = list(dict.fromkeys(ids))
        found: dict[str, PassageRow] = {}
        for segment in self.segments:
            rows = segment.rows_of(wanted)
            rows = rows[rows >= 0]
            if not len(rows):
                continue
            columns = (
                segment.keys.ids[rows].tolist(),
                segment.keys.documents[rows].tolist(),
                segment.columns.read(rows),
            )
            for identifier, key, text in zip(*columns, strict=True):
                found[identifier] = PassageRow(identifier, key, revisions[key], *text)
        return {identifier: found[identifier] for identifier in wanted if identifier in found}

    def copies(self, key: DocumentKey, scope: Scope) -> frozenset[DocumentKey]:
        """The other live documents of the scope whose whole text is that of a document, but for blanks and case."""
        located = self.segments.find(key)
        if located is None:
            return frozenset()
        digest = located[0].columns.documents[located[1]]
        found: set[DocumentKey] = set()
        for segment in self.segments:
            rows = segment.columns.rows_of_text(digest)
            found.update(segment.keys.documents[rows[segment.live[rows]]].tolist())
        return frozenset(each for each in found if each != key and scope.allows(each))


def chunks_of(passage: PassageRow, chunks: Sequence[ChunkBounds]) -> list[ChunkRow]:
    """The chunks of a passage, in document order."""
    return [
        ChunkRow(
            id=chunk.id,
            key=passage.key,
            revision=passage.revision,
            ordinal=chunk.ordinal,
            passage_id=passage.id,
            section=passage.section,
            start=chunk.start,
            end=chunk.end,
            text=passage.text[chunk.start - passage.start : chunk.end - passage.start],
        )
        for chunk in sorted(chunks, key=lambda chunk: chunk.ordinal)
    ]


MAX_VECTORS = 400_000  # at 2 kB each, with 384 dimensions
MAX_TEXT_BYTES = 512 * MIB
MANY_DOCUMENTS = 2_000  # changed at once: their texts are measured before they are read
OVERLAY_SHARE = 8

DOCUMENT_COLUMNS = ["collection", "revision", "deleted_at_ms", "live", *RECORD_COLUMNS]
PASSAGE_COLUMNS = ["key", "collection", "document_id", "revision", "ordinal", "id", "terms"]
CHUNK_COLUMNS = [
    *("key", "collection", "document_id", "revision", "ordinal", "id", "passage_id", "start", "end", "content_hash"),
    "vector",
]

Revisions = Mapping[DocumentKey, str]
Changed = dict[DocumentKey, str | None]  # the revision each changed document has now; None for a deleted one


class TablesRead(Protocol):
    """Where the rows come from: see LanceSnapshot."""

    def changed_documents(self, since: Mapping[int, StoredPosition], columns: Sequence[str], /) -> pa.Table: ...
    def rows_of_documents(
        self, name: str, columns: Sequence[str], revisions: Mapping[str, str], counts: Mapping[str, int]
    ) -> Iterator[pa.Table]: ...
    def count_chunks(self) -> int: ...
    def count_characters(self) -> int: ...


@dataclass(frozen=True)
class InMemoryIndex:
    """One state of the tables. Immutable. `vectors` is None once there are more than `max_vectors` of them, `texts`
    once they take more than `max_text_bytes`."""

    revisions: Revisions
    documents: DocumentIndex
    postings: InvertedIndex
    vectors: VectorIndex | None
    texts: PassageIndex | None
    max_vectors: int
    max_text_bytes: int

    @classmethod
    def empty(cls, max_vectors: int = MAX_VECTORS, max_text_bytes: int = MAX_TEXT_BYTES) -> "InMemoryIndex":
        return cls(
            {},
            DocumentIndex(Segments()),
            InvertedIndex(Segments()),
            VectorIndex(Segments()),
            PassageIndex(Segments()),
            max_vectors,
            max_text_bytes,
        )

    def revision(self, key: DocumentKey) -> str | None:
        """The current revision of a document; None where it is not, or no longer."""
        return self.revisions.get(key) or None

    def document(self, key: DocumentKey) -> DocumentRow | None:
        """The row of a live document."""
        revision = self.revision(key)
        return None if revision is None else self.documents.row(key, revision)

    def updated_to(self, tables: TablesRead, since: Mapping[int, StoredPosition]) -> "InMemoryIndex":
        """The state of these tables; `since` are the positions of this state: a writer changes no document for a record
        at or before them. Raises TransientStoreError when they cannot be read."""
        rows = tables.changed_documents(since, DOCUMENT_COLUMNS)
        documents = self._documents(rows)
        current: Changed = dict(zip(_keys(rows), rows["revision"].to_pylist(), strict=True))
        changed: Changed = {key: revision for key, revision in current.items() if self.revision(key) != revision}
        if not changed:
            return self if documents is self.documents else replace(self, documents=documents)
        fresh = {str(key): revision for key, revision in changed.items() if revision is not None}
        counts = {
            name: dict(zip(map(str, _keys(rows)), rows[name].to_pylist(), strict=True)) for name in (PASSAGES, CHUNKS)
        }
        with ThreadPoolExecutor(1) as executor:
            vectors = executor.submit(self._vectors, tables, changed, fresh, counts[CHUNKS])
            postings, texts = self._passages(tables, changed, fresh, counts[PASSAGES])
            return replace(
                self,
                revisions=self._with_revisions(changed),
                documents=documents,
                postings=postings,
                vectors=vectors.result(),
                texts=texts,
            )

    def _documents(self, rows: pa.Table) -> DocumentIndex:
        """A record may change a document's time and version alone, so a changed position counts here."""
        keys = _keys(rows)
        positions = zip(rows["partition"].to_pylist(), rows["offset"].to_pylist(), strict=True)
        newest = {key: (row, position) for row, (key, position) in enumerate(zip(keys, positions, strict=True))}
        revisions = rows["revision"].to_pylist()
        changed = {
            key: row
            for key, (row, position) in newest.items()
            if self.documents.position(key) != (position if revisions[row] is not None else None)
        }
        if not changed:
            return self.documents
        segments = self.documents.segments.without(changed)
        live = sorted(row for row in changed.values() if revisions[row] is not None)
        if live:
            live_keys = [keys[row] for row in live]
            columns = DocumentColumns.from_table(rows.take(live))
            segments = segments.with_segment(Segment.create(list(map(str, live_keys)), live_keys, columns))
        return DocumentIndex(segments).warmed()

    def _passages(
        self, tables: TablesRead, changed: Changed, fresh: Mapping[str, str], counts: Mapping[str, int]
    ) -> tuple[InvertedIndex, PassageIndex | None]:
        postings = self.postings.segments.without(changed)
        texts = None if self.texts is None else self.texts.segments.without(changed)
        if texts is not None and len(fresh) > MANY_DOCUMENTS and tables.count_characters() > self.max_text_bytes:
            texts = None
        columns = PASSAGE_COLUMNS if texts is None else [*dict.fromkeys([*PASSAGE_COLUMNS, *TEXT_COLUMNS])]
        for rows in tables.rows_of_documents(PASSAGES, columns, fresh, counts):
            segment = _postings_segment(rows)
            postings = postings.with_segment(segment)
            if texts is not None:
                owners = segment.keys.documents.tolist()
                texts = texts.with_segment(Segment(segment.keys, PassageTexts.from_table(rows, owners), segment.live))
        index = None if texts is None else PassageIndex(texts)
        fits = index is not None and index.nbytes <= self.max_text_bytes
        return InvertedIndex(postings).with_warm_caches_of(self.postings), index if fits else None

    def _vectors(
        self, tables: TablesRead, changed: Changed, fresh: Mapping[str, str], counts: Mapping[str, int]
    ) -> VectorIndex | None:
        if self.vectors is None or tables.count_chunks() > self.max_vectors:
            return None
        segments = self.vectors.segments.without(changed)
        for rows in tables.rows_of_documents(CHUNKS, CHUNK_COLUMNS, fresh, counts):
            segments = segments.with_segment(_vector_segment(rows))
        return VectorIndex(segments).with_warm_caches_of(self.vectors)

    def _with_revisions(self, changed: Changed) -> Revisions:
        """The newest revisions, a few over the many; "" for a deleted document."""
        maps = self.revisions.maps if isinstance(self.revisions, ChainMap) else [dict(self.revisions)]
        overlay = {**(maps[0] if len(maps) > 1 else {}), **{key: revision or "" for key, revision in changed.items()}}
        base = maps[-1]
        if len(overlay) * OVERLAY_SHARE > len(base):
            return {key: revision for key, revision in {**base, **overlay}.items() if revision}
        return ChainMap(overlay, base)


def _keys(rows: pa.Table) -> list[DocumentKey]:
    """The document of each row; rows of one document share one object."""
    made: dict[tuple[str, str], DocumentKey] = {}
    pairs = zip(rows["collection"].to_pylist(), rows["document_id"].to_pylist(), strict=True)
    return [made.setdefault(pair, DocumentKey(*pair)) for pair in pairs]


def _postings_segment(rows: pa.Table) -> Segment[Postings]:
    column = rows["terms"].combine_chunks()
    lengths = np.diff(column.offsets.to_numpy()).astype(np.int32)
    terms = column.flatten().to_numpy(zero_copy_only=False)
    return Segment.create(rows["id"].to_pylist(), _keys(rows), Postings.from_terms(terms, lengths))


def _vector_segment(rows: pa.Table) -> Segment[ChunkVectors]:
    passage_ids = np.array(rows["passage_id"].to_pylist(), dtype=np.object_)
    bounds = np.stack([rows[name].to_numpy() for name in ("ordinal", "start", "end")], axis=1).astype(np.int32)
    vectors = ChunkVectors.from_matrix(vector_matrix(rows), passage_ids, bounds)
    return Segment.create(rows["id"].to_pylist(), _keys(rows), vectors)
