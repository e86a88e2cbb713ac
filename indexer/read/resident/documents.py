"""The live documents' own fields in memory: which documents a filter lets through, and which a text names."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indexer.read.fields.columns import Column, flattened, matching, number_in
from indexer.read.fields.dates import Span, date_span
from indexer.read.fields.phrases import Phrases, best_fits, hashes_of
from indexer.read.resident.layers import Layer, Layers
from indexer.read.resident.scope import KEPT_SCOPES, Scope, ScopeRows
from indexer.schema import DocumentRow
from schemas.errors import MalformedFilter
from schemas.filters import Condition
from schemas.ids import DocumentKey
from schemas.limits import RESERVED_METADATA

OWN_FIELDS = ("document", "title", "content_type", "uri", "updated", "version")
TEXT_FIELDS = frozenset({"document", "title", "content_type", "uri"})  # which can be anything, whatever they are
RECORD_COLUMNS = [
    "document_id",
    "title",
    "content_type",
    "uri",
    "timestamp_ms",
    "version",
    "metadata",
    "partition",
    "offset",
    "chunks",
    "passages",
]
OF_METADATA = "metadata."
MAX_NAMED_FIELDS = 40
MOSTLY = 0.5  # of a field's values
A_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Records:
    """What the rows of `documents` say, a row a document. Columns are made at their first use."""

    stored: Mapping[str, NDArray[Any]]  # {column of RECORD_COLUMNS: (n_rows,)}

    @classmethod
    def of(cls, rows: pa.Table) -> "Records":
        exact = {"timestamp_ms", "partition", "offset", "chunks", "passages"}
        return cls(
            {
                name: rows[name].to_numpy()
                if name in exact
                else np.array([*rows[name].to_pylist(), None], np.object_)[:-1]
                for name in RECORD_COLUMNS
            }
        )

    def kept(self, rows: NDArray[np.bool_]) -> "Records":
        return self if rows.all() else Records({name: values[rows] for name, values in self.stored.items()})

    def followed_by(self, other: "Records") -> "Records":
        return Records({name: np.concatenate([values, other.stored[name]]) for name, values in self.stored.items()})

    def position(self, row: int) -> tuple[int, int]:
        """Partition and offset of the record that made a row."""
        return int(self.stored["partition"][row]), int(self.stored["offset"][row])

    def document(self, row: int, key: DocumentKey, revision: str) -> DocumentRow:
        stored = self.stored
        return DocumentRow(
            key=key,
            version=stored["version"][row],
            partition=int(stored["partition"][row]),
            offset=int(stored["offset"][row]),
            timestamp_ms=int(stored["timestamp_ms"][row]),
            revision=revision,
            content_type=stored["content_type"][row],
            title=stored["title"][row],
            uri=stored["uri"][row],
            metadata=msgspec.json.decode(stored["metadata"][row]),
            chunks=int(stored["chunks"][row]),
            passages=int(stored["passages"][row]),
        )

    @cached_property
    def metadata_columns(self) -> Mapping[str, Column]:
        """{dotted path: the values under it}."""
        decoder = msgspec.json.Decoder(dict)
        found: dict[str, list[tuple[int, str | int | float | bool]]] = {}
        for row, text in enumerate(self.stored["metadata"].tolist()):
            for path, value in flattened(decoder.decode(text)):
                if path.partition(".")[0] not in RESERVED_METADATA:
                    found.setdefault(path, []).append((row, value))
        return {path: Column.of(values) for path, values in found.items()}

    @cached_property
    def own_columns(self) -> Mapping[str, Column]:
        columns = {
            name: Column.of((row, value) for row, value in enumerate(self.stored[name].tolist()) if value is not None)
            for name in ("title", "content_type", "uri")
        }
        columns["document"] = Column.of(enumerate(self.stored["document_id"].tolist()))
        versions = ((row, v) for row, v in enumerate(self.stored["version"].tolist()) if v is not None)
        return columns | {
            "version": Column.of(versions),
            "updated": Column.of(enumerate(self.stored["timestamp_ms"].tolist()), times=True),
        }

    @cached_property
    def phrases(self) -> Phrases:
        """What a text may call these documents by."""
        own = {name: self.own_columns[name] for name in ("document", "title")}
        return Phrases.of({**self.metadata_columns, **own})


class Called(NamedTuple):
    """Documents that a phrase stands for by one field: which phrase it was, their rows, ascending, and how it fits each
    (n_rows,) of Fit."""

    phrase: int
    field: str
    rows: NDArray[np.int64]
    fits: NDArray[np.int8]


class Dated(NamedTuple):
    """A field that holds dates: whose each is, and (n_values, 2) start and end in milliseconds since 1970."""

    field: str
    rows: NDArray[np.int64]
    spans: NDArray[np.float64]


class Holding(NamedTuple):
    """How much of each a collection holds."""

    documents: int
    passages: int
    chunks: int


class DocumentIndex:
    """Layers of records. Immutable; safe to use from several threads."""

    def __init__(self, layers: Layers[Records]) -> None:
        self.layers = layers
        self.rows = ScopeRows(layers.stack)
        self._scopes: dict[tuple[str | None, tuple[Condition, ...]], Scope] = {}
        self._date_fields: dict[str, tuple[str, ...]] = {}

    def position(self, key: DocumentKey) -> tuple[int, int] | None:
        """Partition and offset of the record a live document comes from."""
        for layer in self.layers.stack:
            span = layer.names.spans.get(key)
            if span is not None and layer.live[span[0]]:
                return layer.content.position(span[0])
        return None

    def row(self, key: DocumentKey, revision: str) -> DocumentRow | None:
        """The row of a live document, which is at this revision."""
        for layer in self.layers.stack:
            span = layer.names.spans.get(key)
            if span is not None and layer.live[span[0]]:
                return layer.content.document(span[0], key, revision)
        return None

    def scope(self, collection: str | None, conditions: Sequence[Condition]) -> Scope:
        """The documents that all conditions let through. Remembered, so that asking again costs nothing.

        Raises MalformedFilter for a field that no document of the collection has, for a comparison that means nothing
        for any of its values, and for a value that none of them could have. Of a collection without documents nothing
        is said.
        """
        if not conditions:
            return Scope(collection)
        name = collection, tuple(conditions)
        scope = self._scopes.get(name)
        if scope is None:
            if len(self._scopes) >= KEPT_SCOPES:
                self._scopes.clear()
            scope = self._scopes[name] = self._resolved(collection, conditions)
        return scope

    def prepared(self) -> "DocumentIndex":
        """This, with all made ahead that a search would else wait for."""
        for layer in self.layers.stack:
            _ = layer.content.phrases, [column.dates for column in layer.content.metadata_columns.values()]
        return self

    def live(self, scope: Scope) -> NDArray[np.bool_]:
        """(n_rows,) over all layers: the rows in a scope. A row's number counts through the layers."""
        rows = self.rows.of(scope)
        return np.concatenate(rows) if rows else np.zeros(0, dtype=np.bool_)

    def keys(self, rows: NDArray[np.int64]) -> list[DocumentKey]:
        """The documents of these rows."""
        return [layer.names.keys[row] for layer, row in self._placed(rows)]

    def titles(self, rows: NDArray[np.int64]) -> list[str]:
        """The titles of these rows' documents."""
        return [str(layer.content.stored["title"][row]) for layer, row in self._placed(rows)]

    def called(self, phrases: Sequence[str], live: NDArray[np.bool_]) -> list[Called]:
        """The documents among the live rows that these phrases stand for."""
        hashes, found = hashes_of(phrases), dict[tuple[int, str], list[tuple[NDArray[np.int64], NDArray[np.int8]]]]()
        for first, layer in self._numbered():
            for at, field, rows, fits in layer.content.phrases.standing_for(hashes):
                current = live[rows.astype(np.int64) + first]
                found.setdefault((at, field), []).append((rows[current].astype(np.int64) + first, fits[current]))
        called = [Called(*name, *best_fits(each)) for name, each in sorted(found.items())]
        return [each for each in called if len(each.rows)]

    def dated(self, live: NDArray[np.bool_]) -> list[Dated]:
        """The metadata fields whose values among the live rows are mostly dates, or years as numbers."""
        found: dict[str, list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
        for first, layer in self._numbered():
            for field, column in layer.content.metadata_columns.items():
                rows = column.rows.astype(np.int64) + first
                current = live[rows]
                found.setdefault(field, []).append((rows[current], column.dates[column.codes[current]]))
        fields = [
            Dated(field, np.concatenate([rows for rows, _ in each]), np.concatenate([spans for _, spans in each]))
            for field, each in sorted(found.items())
        ]
        told = [(field, ~np.isnan(field.spans[:, 0])) for field in fields]
        return [
            Dated(field.field, field.rows[are], field.spans[are])
            for field, are in told
            if are.sum() > MOSTLY * len(are)
        ]

    def own_dates(self, live: NDArray[np.bool_]) -> list[Dated]:
        """The fields that hold one date a document: its own, and not those of what it tells of."""
        return [field for field in self.dated(live) if len(field.rows) == len(np.unique(field.rows))]

    def date_of(self, key: DocumentKey, before_ms: int) -> int:
        """When a live document is from, in milliseconds since 1970: the newest of its own dates that do not lie ahead,
        else when its record arrived."""
        if key.collection not in self._date_fields:
            dated = self.own_dates(self.live(Scope(key.collection)))
            self._date_fields[key.collection] = tuple(f"{OF_METADATA}{field.field}" for field in dated)
        spans = [date_span(value) for field in self._date_fields[key.collection] for value in self.values(field, key)]
        own = [span.start for span in spans if span is not None and span.start <= before_ms]
        return max(own) if own else max(map(int, self.values("updated", key)), default=0)

    def within(self, span: Span, scope: Scope, wanted: Callable[[str], bool]) -> tuple[Scope, tuple[str, ...]]:
        """The documents of a scope that are from a span of time, by their own dates in the `wanted` fields, all where
        none of these is; one without a date by when its record arrived. And the fields that were looked at."""
        live = self.live(scope)
        dated = self.own_dates(live)
        looked_at = [field for field in dated if wanted(field.field)] or dated
        has_own, inside = np.zeros(len(live), dtype=np.bool_), np.zeros(len(live), dtype=np.bool_)
        for field in looked_at:
            starts, ends = field.spans.T
            contained = (starts >= span.start) & (ends <= span.end)
            touching = (ends - starts <= A_DAY_MS) & (starts < span.end) & (ends > span.start)
            has_own[field.rows] = True
            inside[field.rows[contained | touching]] = True
        stored = [layer.content.stored["timestamp_ms"] for _, layer in self._numbered()]
        arrived = np.concatenate(stored) if stored else np.zeros(0)
        inside |= ~has_own & (arrived >= span.start) & (arrived < span.end)
        rows = np.flatnonzero(inside & live)
        return Scope(scope.collection, frozenset(self.keys(rows))), tuple(field.field for field in looked_at)

    def collections(self) -> dict[str, Holding]:
        """Those that hold a live document, by name."""
        found: dict[str, Holding] = {}
        for layer in self.layers.stack:
            numbers, of_rows = layer.names.collections
            stored = layer.content.stored
            weights = (None, stored["passages"][layer.live], stored["chunks"][layer.live])
            counts = [np.bincount(of_rows[layer.live], weight, len(numbers)).astype(int).tolist() for weight in weights]
            for name, *here in zip(numbers, *counts, strict=True):
                before = found.get(name, Holding(0, 0, 0))
                found[name] = Holding(*(some + more for some, more in zip(before, here, strict=True)))
        return {name: found[name] for name in sorted(found) if found[name].documents}

    def fields(self, collection: str | None) -> list[str]:
        """The metadata fields that documents of a collection have."""
        found = {
            path
            for layer, live in self._searched(collection)
            for path, column in layer.content.metadata_columns.items()
            if live[column.rows].any()
        }
        return sorted(found)

    def values(self, field: str, key: DocumentKey) -> tuple[str, ...]:
        """The distinct values that a live document has in a field, as text without regard to case; none for a field or
        a document that is not there."""
        for layer in self.layers.stack:
            span = layer.names.spans.get(key)
            if span is not None and layer.live[span[0]]:
                column = self.column(layer, field)
                return () if column is None else column.values_of(span[0])
        return ()

    def check_field(self, field: str, collection: str | None) -> None:
        """Raises MalformedFilter for a field that no document of the collection has. Of a collection without documents
        nothing is said."""
        searched = list(self._searched(collection))
        columns = [(self.column(layer, field), live) for layer, live in searched]
        known = any(column is not None and live[column.rows].any() for column, live in columns)
        if not known and field not in OWN_FIELDS and any(live.any() for _, live in searched):
            raise self._unknown(field, collection)

    def column(self, layer: Layer[Records], field: str) -> Column | None:
        """A field in a layer. `metadata.x` is always the metadata's `x`, also where documents have an own `x`."""
        if field in OWN_FIELDS:
            return layer.content.own_columns[field]
        columns = layer.content.metadata_columns
        return columns.get(field) or columns.get(field.removeprefix(OF_METADATA))

    def _resolved(self, collection: str | None, conditions: Sequence[Condition]) -> Scope:
        searched = list(self._searched(collection))
        let_through = [live.copy() for _, live in searched]
        for condition in conditions:
            known, meant = False, frozenset[str]()
            for at, (layer, live) in enumerate(searched):
                column = self.column(layer, condition.field)
                if column is None:
                    let_through[at] &= condition.operator == "!="
                    continue
                matched, meant_here = matching(column, condition, len(live))
                known |= bool(live[column.rows].any())
                meant |= meant_here
                let_through[at] &= matched
            if any(live.any() for _, live in searched):
                self._check(condition, collection, known=known, meant=meant)
        keys = [
            key
            for (layer, _), rows in zip(searched, let_through, strict=True)
            for key in layer.names.keys[rows].tolist()
        ]
        return Scope(collection, frozenset(keys))

    def _check(self, condition: Condition, collection: str | None, *, known: bool, meant: Collection[str]) -> None:
        if not known and condition.field not in OWN_FIELDS:
            raise self._unknown(condition.field, collection)
        if condition.field in TEXT_FIELDS and condition.operator in ("=", "!="):
            return
        if condition.field == "version" and not known:  # no document has one, and all that had would have a number
            known, meant = True, [value for value in condition.values if number_in(value) is not None]
        senseless = next((value for value in condition.values if value not in meant), None)
        if known and senseless is not None:
            raise MalformedFilter(
                f"{senseless[:80]!r} cannot be compared by {condition.operator} with any value of "
                f"{condition.field!r}: give a date (2001, 2001-01-08), a number, or a text, as the documents have it."
            )

    def _unknown(self, field: str, collection: str | None) -> MalformedFilter:
        named = [*OWN_FIELDS, *self.fields(collection)]
        more = f" and {len(named) - MAX_NAMED_FIELDS} more" if len(named) > MAX_NAMED_FIELDS else ""
        where = "any collection" if collection is None else f"collection {collection!r}"
        return MalformedFilter(
            f"No document of {where} has a field {field[:80]!r}; there are {', '.join(named[:MAX_NAMED_FIELDS])}{more}."
        )

    def _placed(self, rows: NDArray[np.int64]) -> Iterator[tuple[Layer[Records], int]]:
        """Each row's layer, and its number there."""
        firsts, layers = zip(*self._numbered(), strict=True) if len(rows) else ((), ())
        places = zip(rows.tolist(), (np.searchsorted(firsts, rows, side="right") - 1).tolist(), strict=True)
        return ((layers[at], row - firsts[at]) for row, at in places)

    def _numbered(self) -> Iterator[tuple[int, Layer[Records]]]:
        """Each layer with the number of its first row."""
        first = 0
        for layer in self.layers.stack:
            yield first, layer
            first += len(layer.live)

    def _searched(self, collection: str | None) -> Iterator[tuple[Layer[Records], NDArray[np.bool_]]]:
        return zip(self.layers.stack, self.rows.of(Scope(collection)), strict=True)
