"""Which fields the documents of a collection have, and which values, counted: what a form of filters offers."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.text.field_index import FIELD_KINDS, Column, FieldKind
from query_api.index.text.filter_evaluation import METADATA_PREFIX, OWN_FIELDS, DocumentColumns, DocumentIndex
from query_api.index.text.text_segments import Scope, Segment, top_rows
from schemas.fields import Facet, FieldSummary, FieldValue
from schemas.filters import format_condition

MAX_FACET_VALUES = 20
MAX_VALUE_CHARACTERS = 300  # a longer text is not a value to choose
LAST_CHARACTER = "\U0010ffff"
OWN_KINDS: Mapping[str, FieldKind] = {"updated": "date", "version": "number"}  # the others are texts


class FieldValues(NamedTuple):
    """The values that most documents have, and how many distinct ones there are in all."""

    values: list[FieldValue]
    total: int


def fields_of(index: DocumentIndex, collection: str) -> list[FieldSummary]:
    """Every field that a live document of the collection has a value in, the commonest first."""
    documents: Counter[tuple[str, bool]] = Counter()
    kinds: dict[str, NDArray[np.intp]] = {}  # of a metadata field (n_kinds,) how many values are of each
    for segment, live in index.in_collection(collection):
        columns = segment.columns
        for own, named in ((True, columns.own_columns), (False, columns.metadata_columns)):
            for name, column in named.items():
                values = live[column.rows]
                if not values.any():
                    continue
                rows = column.rows[values]  # ascending
                documents[name, own] += 1 + int(np.count_nonzero(np.diff(rows)))
                if not own:
                    of_kind = np.bincount(column.kinds[column.codes[values]], minlength=len(FIELD_KINDS))
                    kinds[name] = kinds.get(name, np.zeros_like(of_kind)) + of_kind
    found = [
        FieldSummary(
            name=_filter_name(name, own=own),
            origin="document" if own else "metadata",
            kind=OWN_KINDS.get(name, "text") if own else FIELD_KINDS[int(np.argmax(kinds[name]))],
            documents=count,
        )
        for (name, own), count in documents.items()
    ]
    return sorted(found, key=lambda field: (-field.documents, field.origin, field.name))


@dataclass(frozen=True)
class CountedValues:
    """All values of a field in one collection, in the order of their texts, that is without regard to case."""

    texts: list[str]
    spellings: list[str]  # of each text the commonest
    documents: NDArray[np.float64]  # (n_texts,) how many have it

    @classmethod
    def from_counts(cls, counts: Iterable[tuple[str, str, int]]) -> "CountedValues":
        """From (text, spelling, documents); a text may come more than once."""
        documents: dict[str, int] = {}
        commonest: dict[str, tuple[int, str]] = {}
        for text, spelling, count in counts:
            if text not in documents:
                documents[text], commonest[text] = count, (count, spelling)
            else:
                documents[text] += count
                commonest[text] = max(commonest[text], (count, spelling))
        texts = sorted(documents)
        totals = np.array([documents[text] for text in texts], dtype=np.float64)
        return cls(texts, [commonest[text][1] for text in texts], totals)

    def beginning(self, field: str, prefix: str, limit: int) -> FieldValues:
        """Those of this field that begin so, those of most documents first."""
        first, end = bisect_left(self.texts, prefix), bisect_left(self.texts, prefix + LAST_CHARACTER)
        best = top_rows(self.documents[first:end], limit) + first
        best = best[np.lexsort((best, -self.documents[best]))][:limit]
        values = [(self.spellings[at], int(self.documents[at])) for at in best.tolist()]
        return FieldValues(
            [FieldValue(value=each, documents=n, filter=format_condition(field, each)) for each, n in values],
            end - first,
        )


def values_of(index: DocumentIndex, field: str, collection: str, prefix: str, limit: int) -> FieldValues:
    """The values of a field that begin so, without regard to case, those of most documents first; of times, the days.

    Values that differ in case are one, as they are to a filter, so a document that has both counts twice. What no
    filter could be written for is left out: blank texts and those over MAX_VALUE_CHARACTERS. Raises MalformedFilter
    for a field that no document of the collection has.
    """
    index.check_field(field, collection)
    counted: CountedValues = index.derived(_count_values, field, collection)
    return counted.beginning(field, prefix.strip().casefold(), limit)


def _count_values(index: DocumentIndex, field: str, collection: str) -> CountedValues:
    return _values_in(field, index.in_collection(collection))


def _values_in(field: str, rows: Iterable[tuple[Segment[DocumentColumns], NDArray[np.bool_]]]) -> CountedValues:
    columns = ((segment.columns.column(field), live) for segment, live in rows)
    return CountedValues.from_counts(
        each for column, live in columns if column is not None for each in _counted(column, live)
    )


def facet_of(index: DocumentIndex, field: str, scope: Scope) -> Facet:
    """The values of a field among the documents of a scope, as `values_of` counts them."""
    rows = [(segment, segment.in_scope(scope)) for segment in index.segments]
    counted = _values_in(field, rows)
    values = counted.beginning(field, "", MAX_FACET_VALUES).values
    columns = ((segment.columns.column(field), live) for segment, live in rows)
    having = sum(len(np.unique(column.rows[live[column.rows]])) for column, live in columns if column is not None)
    return Facet(
        field=field,
        values=values,
        other=int(counted.documents.sum()) - sum(each.documents for each in values),
        missing=sum(int(np.count_nonzero(live)) for _, live in rows) - having,
    )


def _filter_name(name: str, *, own: bool) -> str:
    return f"{METADATA_PREFIX}{name}" if name in OWN_FIELDS and not own else name


def _counted(column: Column, live: NDArray[np.bool_]) -> Iterator[tuple[str, str, int]]:
    """(text, spelling, how many live documents have it) of each value; of times, of each day in UTC."""
    if column.times:
        moments = np.array(column.distinct, dtype="datetime64[ms]")[column.codes[live[column.rows]]]
        days, numbers = np.unique(moments.astype("datetime64[D]"), return_counts=True)
        yield from zip(days.astype(str).tolist(), days.astype(str).tolist(), numbers.tolist(), strict=True)
        return
    counts = np.bincount(column.codes[column.firsts & live[column.rows]], minlength=len(column.distinct))
    for text, value, count in zip(column.texts.tolist(), column.distinct, counts.tolist(), strict=True):
        if count and text and len(text) <= MAX_VALUE_CHARACTERS:
            yield text, value.strip() if isinstance(value, str) else text, count
