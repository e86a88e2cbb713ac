"""Filters: which documents they let through, by the live documents' own fields in memory; also phrases and dates."""

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
import pyarrow as pa
from cachetools import LRUCache, cachedmethod
from numpy.typing import NDArray

from indexer.schema import DocumentRow
from query_api.index.text.field_index import (
    Column,
    Phrases,
    Span,
    best_fits,
    date_span,
    flattened,
    hashes_of,
    matching,
    number_in,
)
from query_api.index.text.text_segments import MAX_CACHED_SCOPES, Columns, Scope, ScopeCache, Segment, Segments
from schemas.errors import MalformedFilter
from schemas.filters import Condition
from schemas.graph_documents import kind_of
from schemas.ids import DocumentKey
from schemas.limits import RESERVED_METADATA

OWN_FIELDS = ("document", "title", "content_type", "uri", "updated", "version")
TEXT_FIELDS = frozenset({"document", "title", "content_type", "uri"})  # any value can be compared with these
RECORD_COLUMNS = [
    *("document_id", "title", "content_type", "uri", "timestamp_ms", "version", "metadata", "partition", "offset"),
    *("chunks", "passages"),
]
NUMBER_COLUMNS = frozenset({"timestamp_ms", "partition", "offset", "chunks", "passages"})
METADATA_PREFIX = "metadata."
MAX_NAMED_FIELDS = 40
MIN_DATE_SHARE = 0.5  # of a field's values, for a field of dates
DAY_MS = 86_400_000

D = TypeVar("D")


@dataclass(frozen=True)
class DocumentColumns(Columns):
    """The rows of `documents`, one a document. Columns of fields are built on first use."""

    stored: Mapping[str, NDArray[Any]]  # {column of RECORD_COLUMNS: (n_rows,)}

    @classmethod
    def from_table(cls, rows: pa.Table) -> "DocumentColumns":
        return cls(
            {
                name: rows[name].to_numpy()
                if name in NUMBER_COLUMNS
                else np.array([*rows[name].to_pylist(), None], np.object_)[:-1]
                for name in RECORD_COLUMNS
            }
        )

    def filter(self, rows: NDArray[np.bool_]) -> "DocumentColumns":
        return self if rows.all() else DocumentColumns({name: values[rows] for name, values in self.stored.items()})

    def concat(self, other: "DocumentColumns") -> "DocumentColumns":
        return DocumentColumns(
            {name: np.concatenate([values, other.stored[name]]) for name, values in self.stored.items()}
        )

    def position(self, row: int) -> tuple[int, int]:
        """Partition and offset of the record that made a row."""
        return int(self.stored["partition"][row]), int(self.stored["offset"][row])

    def document(self, row: int, key: DocumentKey, revision: str) -> DocumentRow:
        stored: dict[str, Any] = {
            name: int(values[row]) if name in NUMBER_COLUMNS else values[row]
            for name, values in self.stored.items()
            if name != "document_id"
        }
        metadata = msgspec.json.decode(stored.pop("metadata"))
        return DocumentRow(key=key, revision=revision, metadata=metadata, **stored)

    @cached_property
    def made(self) -> NDArray[np.bool_]:
        """(n_rows,) whether it is a node or an edge that people made."""
        types = self.stored["content_type"].tolist()
        is_made = {each: kind_of(each) is not None for each in set(types)}
        return np.array([is_made[each] for each in types], dtype=np.bool_)

    @cached_property
    def is_findable(self) -> NDArray[np.bool_]:
        """(n_rows,) False where people made it without text."""
        return ~self.made | (self.stored["passages"] > 0)

    @cached_property
    def metadata_columns(self) -> Mapping[str, Column]:
        """{dotted path: the values under it}."""
        decoder = msgspec.json.Decoder(dict)
        found: dict[str, list[tuple[int, str | int | float | bool]]] = {}
        for row, text in enumerate(self.stored["metadata"].tolist()):
            for path, value in flattened(decoder.decode(text)):
                if path.partition(".")[0] not in RESERVED_METADATA:
                    found.setdefault(path, []).append((row, value))
        return {path: Column.from_values(values) for path, values in found.items()}

    @cached_property
    def own_columns(self) -> Mapping[str, Column]:
        columns = {
            name: Column.from_values(
                (row, value) for row, value in enumerate(self.stored[name].tolist()) if value is not None
            )
            for name in ("title", "content_type", "uri", "version")
        }
        return columns | {
            "document": Column.from_values(enumerate(self.stored["document_id"].tolist())),
            "updated": Column.from_values(enumerate(self.stored["timestamp_ms"].tolist()), times=True),
        }

    @cached_property
    def phrases(self) -> Phrases:
        own = {name: self.own_columns[name] for name in ("document", "title")}
        return Phrases.from_columns({**self.metadata_columns, **own})

    def columns_of(self, field: str) -> list[Column]:
        """Those with values that a field may mean: the documents' own `x` and the metadata's `x`; `metadata.x` is the
        metadata's alone."""
        own, metadata = self.own_columns.get(field), self.metadata_columns
        found = own, metadata.get(field) or metadata.get(field.removeprefix(METADATA_PREFIX))
        return [column for column in found if column is not None and len(column.rows)]

    def column(self, field: str) -> Column | None:
        """The first of `columns_of`."""
        return next(iter(self.columns_of(field)), None)


class NamedDocuments(NamedTuple):
    """Documents that a phrase names by one field: which phrase it was, their rows, ascending, and how it fits each
    (n_rows,) of Fit."""

    phrase: int
    field: str
    rows: NDArray[np.int64]
    fits: NDArray[np.int8]


class DateField(NamedTuple):
    """A field that holds dates: the row of each, and (n_values, 2) start and end in milliseconds since 1970."""

    field: str
    rows: NDArray[np.int64]
    spans: NDArray[np.float64]


class CollectionCounts(NamedTuple):
    """`hand_made` are nodes and edges that people made, which are not counted as documents."""

    documents: int
    hand_made: int
    passages: int
    chunks: int


class DocumentIndex:
    """Segments of documents. Immutable; thread-safe. Rows are numbered through all segments."""

    def __init__(self, segments: Segments[DocumentColumns]) -> None:
        self.segments = segments
        self._scopes = ScopeCache(segments)
        self._filters: LRUCache[Any, Scope] = LRUCache(MAX_CACHED_SCOPES)
        self._date_fields: LRUCache[Any, tuple[str, ...]] = LRUCache(MAX_CACHED_SCOPES)
        self._derived: LRUCache[Any, Any] = LRUCache(MAX_CACHED_SCOPES)
        self._lock = threading.Lock()

    def position(self, key: DocumentKey) -> tuple[int, int] | None:
        """Partition and offset of the record a live document comes from."""
        found = self.segments.find(key)
        return None if found is None else found[0].columns.position(found[1])

    def row(self, key: DocumentKey, revision: str) -> DocumentRow | None:
        """The row of a live document, whose current revision this is."""
        found = self.segments.find(key)
        return None if found is None else found[0].columns.document(found[1], key, revision)

    def scope(self, collection: str | None, conditions: Sequence[Condition]) -> Scope:
        """The documents that match all conditions.

        Raises MalformedFilter for a field that no document of the collection has, for a comparison that means nothing
        for any of its values, and for a value that none of them could have. In a collection without documents nothing
        is refused.
        """
        return self._filtered(collection, tuple(conditions)) if conditions else Scope(collection)

    @cachedmethod(attrgetter("_derived"), lock=attrgetter("_lock"))
    def derived(self, derive: Callable[..., D], *about: str) -> D:
        """What `derive(self, *about)` makes, kept for what was asked for last."""
        return derive(self, *about)

    def warmed(self) -> "DocumentIndex":
        """This, with everything built that a search would wait for."""
        for segment in self.segments:
            _ = segment.columns.phrases, [column.dates for column in segment.columns.metadata_columns.values()]
        return self

    def live(self, scope: Scope) -> NDArray[np.bool_]:
        """(n_rows,) the rows in a scope."""
        masks = self._scopes.masks(scope)
        return np.concatenate(masks) if masks else np.zeros(0, dtype=np.bool_)

    def keys(self, rows: NDArray[np.int64]) -> list[DocumentKey]:
        return [segment.keys.documents[row] for segment, row in self._located(rows)]

    def titles(self, rows: NDArray[np.int64]) -> list[str]:
        return [str(segment.columns.stored["title"][row]) for segment, row in self._located(rows)]

    def named_by(self, phrases: Sequence[str], live: NDArray[np.bool_]) -> list[NamedDocuments]:
        """The documents among the live rows that these phrases name."""
        hashes, found = hashes_of(phrases), dict[tuple[int, str], list[tuple[NDArray[np.int64], NDArray[np.int8]]]]()
        for first, segment in self._numbered():
            for phrase, field, local, fits in segment.columns.phrases.find(hashes):
                rows = local.astype(np.int64) + first
                current = live[rows]
                found.setdefault((phrase, field), []).append((rows[current], fits[current]))
        named = [NamedDocuments(*name, *best_fits(each)) for name, each in sorted(found.items())]
        return [each for each in named if len(each.rows)]

    def date_fields(self, live: NDArray[np.bool_]) -> list[DateField]:
        """The metadata fields whose values among the live rows are mostly dates, or years as numbers."""
        found: dict[str, list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
        for first, segment in self._numbered():
            for field, column in segment.columns.metadata_columns.items():
                rows = column.rows.astype(np.int64) + first
                current = live[rows]
                found.setdefault(field, []).append((rows[current], column.dates[column.codes[current]]))
        date_fields = []
        for field, each in sorted(found.items()):
            rows, spans = (np.concatenate(column) for column in zip(*each, strict=True))
            are_dates = ~np.isnan(spans[:, 0])
            if are_dates.sum() > MIN_DATE_SHARE * len(are_dates):
                date_fields.append(DateField(field, rows[are_dates], spans[are_dates]))
        return date_fields

    def own_date_fields(self, live: NDArray[np.bool_]) -> list[DateField]:
        """The fields that hold one date a document: its own, not those of what it is about."""
        return [field for field in self.date_fields(live) if len(field.rows) == len(np.unique(field.rows))]

    def date_of(self, key: DocumentKey, before_ms: int) -> int:
        """When a live document is from, in milliseconds since 1970: the newest of its own dates that is not in the
        future, else when its record arrived."""
        values = (value for field in self._own_date_fields(key.collection) for value in self.values(field, key))
        spans = [date_span(value) for value in values]
        own = [span.start for span in spans if span is not None and span.start <= before_ms]
        return max(own) if own else max(map(int, self.values("updated", key)), default=0)

    def within(self, span: Span, scope: Scope, wanted: Callable[[str], bool]) -> tuple[Scope, tuple[str, ...]]:
        """The documents of a scope that are from a span of time, by their own dates in the `wanted` fields, all where
        none of these is; one without a date by when its record arrived. And the fields that were used."""
        live = self.live(scope)
        date_fields = self.own_date_fields(live)
        used = [field for field in date_fields if wanted(field.field)] or date_fields
        has_own, inside = np.zeros(len(live), dtype=np.bool_), np.zeros(len(live), dtype=np.bool_)
        for field in used:
            starts, ends = field.spans.T
            contained = (starts >= span.start) & (ends <= span.end)
            touching = (ends - starts <= DAY_MS) & (starts < span.end) & (ends > span.start)
            has_own[field.rows] = True
            inside[field.rows[contained | touching]] = True
        stored = [segment.columns.stored["timestamp_ms"] for segment in self.segments]
        arrived = np.concatenate(stored) if stored else np.zeros(0)
        inside |= ~has_own & (arrived >= span.start) & (arrived < span.end)
        rows = np.flatnonzero(inside & live)
        return Scope(scope.collection, frozenset(self.keys(rows))), tuple(field.field for field in used)

    def content_type(self, key: DocumentKey) -> str | None:
        """That of a live document; None where there is none."""
        found = self.segments.find(key)
        return None if found is None else str(found[0].columns.stored["content_type"][found[1]])

    @property
    def n_made(self) -> int:
        """How many live documents are nodes and edges that people made."""
        return sum(int(np.count_nonzero(segment.columns.made[segment.live])) for segment in self.segments)

    def collections(self) -> dict[str, CollectionCounts]:
        """Those that hold a live document, by name."""
        found: dict[str, CollectionCounts] = {}
        for segment in self.segments:
            numbers, of_rows = segment.keys.collections
            stored, live = segment.columns.stored, segment.live
            made = segment.columns.made[live]
            weights = (~made, made, stored["passages"][live], stored["chunks"][live])
            counts = [np.bincount(of_rows[live], weight, len(numbers)).astype(int).tolist() for weight in weights]
            for name, *more in zip(numbers, *counts, strict=True):
                if any(more):
                    before = found.get(name, CollectionCounts(0, 0, 0, 0))
                    found[name] = CollectionCounts(*map(sum, zip(before, more, strict=True)))
        return dict(sorted(found.items()))

    def fields(self, collection: str | None) -> list[str]:
        """The metadata fields that documents of a collection have."""
        found = {
            path
            for segment, live in self.in_collection(collection)
            for path, column in segment.columns.metadata_columns.items()
            if live[column.rows].any()
        }
        return sorted(found)

    def values(self, field: str, key: DocumentKey) -> tuple[str, ...]:
        """The distinct values that a live document has in a field, casefolded; none for a field or a document that is
        not there."""
        found = self.segments.find(key)
        if found is None:
            return ()
        return next(filter(None, (column.values_of(found[1]) for column in found[0].columns.columns_of(field))), ())

    def check_field(self, field: str, collection: str | None) -> None:
        """Raises MalformedFilter for a field that no document of the collection has. In a collection without documents
        nothing is refused."""
        searched = [(segment.columns.columns_of(field), live) for segment, live in self.in_collection(collection)]
        known = any(live[column.rows].any() for columns, live in searched for column in columns)
        if not known and field not in OWN_FIELDS and any(live.any() for _, live in searched):
            raise self._unknown_field(field, collection)

    @cachedmethod(attrgetter("_filters"), lock=attrgetter("_lock"))
    def _filtered(self, collection: str | None, conditions: Sequence[Condition]) -> Scope:
        searched = list(self.in_collection(collection))
        matched = [live.copy() for _, live in searched]
        for condition in conditions:
            known, comparable = False, frozenset[str]()
            for at, (segment, live) in enumerate(searched):
                is_excluding = condition.operator == "!="
                passed = np.full(len(live), is_excluding)
                for column in segment.columns.columns_of(condition.field):
                    rows, comparable_here = matching(column, condition, len(live))
                    known |= bool(live[column.rows].any())
                    comparable |= comparable_here
                    passed = passed & rows if is_excluding else passed | rows
                matched[at] &= passed
            if any(live.any() for _, live in searched):
                self._check(condition, collection, known=known, comparable=comparable)
        keys = (segment.keys.documents[rows].tolist() for (segment, _), rows in zip(searched, matched, strict=True))
        return Scope(collection, frozenset().union(*keys))

    def _check(self, condition: Condition, collection: str | None, *, known: bool, comparable: Collection[str]) -> None:
        if not known and condition.field not in OWN_FIELDS:
            raise self._unknown_field(condition.field, collection)
        if condition.field in TEXT_FIELDS and condition.operator in ("=", "!="):
            return
        if condition.field == "version" and not known:  # no document has one; all that had would have a number
            known, comparable = True, [value for value in condition.values if number_in(value) is not None]
        wrong = next((value for value in condition.values if value not in comparable), None)
        if known and wrong is not None:
            raise MalformedFilter(
                f"{wrong[:80]!r} cannot be compared by {condition.operator} with any value of "
                f"{condition.field!r}: give a date (2001, 2001-01-08), a number, or a text, as the documents have it."
            )

    def _unknown_field(self, field: str, collection: str | None) -> MalformedFilter:
        named = [*OWN_FIELDS, *self.fields(collection)]
        more = f" and {len(named) - MAX_NAMED_FIELDS} more" if len(named) > MAX_NAMED_FIELDS else ""
        where = "any collection" if collection is None else f"collection {collection!r}"
        return MalformedFilter(
            f"No document of {where} has a field {field[:80]!r}; there are {', '.join(named[:MAX_NAMED_FIELDS])}{more}."
        )

    @cachedmethod(attrgetter("_date_fields"), lock=attrgetter("_lock"))
    def _own_date_fields(self, collection: str) -> tuple[str, ...]:
        fields = self.own_date_fields(self.live(Scope(collection)))
        return tuple(f"{METADATA_PREFIX}{field.field}" for field in fields)

    def _located(self, rows: NDArray[np.int64]) -> Iterator[tuple[Segment[DocumentColumns], int]]:
        """Each row's segment, and its number there."""
        firsts = [first for first, _ in self._numbered()]
        at = np.searchsorted(firsts, rows, side="right") - 1
        return ((self.segments[of], row - firsts[of]) for row, of in zip(rows.tolist(), at.tolist(), strict=True))

    def _numbered(self) -> Iterator[tuple[int, Segment[DocumentColumns]]]:
        """Each segment with the number of its first row."""
        first = 0
        for segment in self.segments:
            yield first, segment
            first += len(segment.live)

    def in_collection(self, collection: str | None) -> Iterator[tuple[Segment[DocumentColumns], NDArray[np.bool_]]]:
        """Each segment with (n_rows,) which of its documents are live and of the collection, or of any for None. Edges
        that people made, and nodes without text, are not among them: no search finds these."""
        for segment, live in zip(self.segments, self._scopes.masks(Scope(collection)), strict=True):
            yield segment, live & segment.columns.is_findable
