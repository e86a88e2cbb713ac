"""Fields of many documents: their values, the dates in them, and the phrases by which a question may name documents.

A phrase is an id, a title, or a value of metadata.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, Literal, NamedTuple

import numpy as np
from dateutil import parser
from numpy.typing import NDArray

from schemas.filters import Condition
from schemas.letters import INVISIBLE, MARKS, plain_letters

MONTHS = r"(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)[a-z]*\.?"
MAX_DATE_CHARACTERS = 40
MAX_CACHED_DATES = 65_536

# No two parts can share a run of digits or letters, so that no text takes long to refuse.
_LOOKS_LIKE_A_DATE = re.compile(
    rf"(?=.*(?<!\d)[12]\d{{3}}(?!\d))(?:{MONTHS}(?![a-z])|(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*(?![a-z])|"
    r"\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?!\d)|\d{1,4}(?!\d)(?:st|nd|rd|th)?|(?:utc|gmt|of|the|[tz])(?![a-z])|"
    r"[+-]\d{2}:?\d{2}(?!\d)|[\s,./+-])+",
    re.IGNORECASE,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DEFAULTS = datetime(1904, 1, 1), datetime(1908, 2, 2)  # noqa: DTZ001 - leap years, so that 29 February is read


class Span(NamedTuple):
    """A span of time in milliseconds since 1970, UTC; `end` is exclusive."""

    start: int
    end: int


@lru_cache(MAX_CACHED_DATES)
def date_span(text: str) -> Span | None:
    """The day, month, year or moment that a text names, and nothing else; None for any other text.

    A date needs a year of four digits, so that `3.8` and `8` are none. 01/02/2003 is read as month/day/year.
    """
    text = text.strip()
    if len(text) > MAX_DATE_CHARACTERS or not _LOOKS_LIKE_A_DATE.fullmatch(text):
        return None
    try:
        read, other = (parser.parse(text.replace(" of ", " "), default=default) for default in _DEFAULTS)
        if read.year != other.year:
            return None
        first = read.replace(tzinfo=UTC) if read.tzinfo is None else read
        start = _milliseconds(first)
        return Span(start, start + 1 if ":" in text else _milliseconds(_end_of(first, other)))
    except (ValueError, OverflowError):
        return None


def _end_of(first: datetime, other: datetime) -> datetime:
    """The end of the year, month or day that `first` begins: where `other` differs by its default, none was given."""
    if first.month != other.month:
        return first.replace(year=first.year + 1)
    if first.day != other.day:
        return first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return first + timedelta(days=1)


def _milliseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(milliseconds=1)


YEARS = range(1500, 2101)
_BOOLEANS = ("true", "false")
_LIKE_A_DAY = re.compile(r"\d{4}-\d{1,2}(-\d{1,2})?")

Scalar = str | int | float | bool
FieldKind = Literal["text", "number", "date", "boolean"]
FIELD_KINDS: tuple[FieldKind, ...] = ("text", "number", "date", "boolean")


@dataclass(frozen=True)
class Column:
    """The values of one field, dictionary-encoded. A row may have none, or several where the field is a list."""

    distinct: tuple[Scalar, ...]
    codes: NDArray[np.int32]  # (n_values,) which distinct value
    rows: NDArray[np.int32]  # (n_values,) ascending
    times: bool = False  # the values are milliseconds since 1970

    @classmethod
    def from_values(cls, values: Iterable[tuple[int, Scalar]], *, times: bool = False) -> "Column":
        """From pairs of row and value."""
        numbers: dict[tuple[type, Scalar], int] = {}
        pairs = [(numbers.setdefault((type(value), value), len(numbers)), row) for row, value in values]
        encoded = np.array(pairs, dtype=np.int32).reshape(-1, 2)
        return cls(tuple(value for _, value in numbers), encoded[:, 0], encoded[:, 1], times)

    @cached_property
    def texts(self) -> NDArray[np.object_]:
        """(n_distinct,) casefolded, without blanks around; true and false as JSON writes them."""
        return np.array([str(value).strip().casefold() for value in self.distinct], dtype=np.object_)

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """(n_distinct,) the values that are numbers; NaN for all others."""
        return np.array(
            [float(v) if isinstance(v, int | float) and not isinstance(v, bool) else np.nan for v in self.distinct]
        )

    @cached_property
    def numerals(self) -> NDArray[np.float64]:
        """(n_distinct,) the values that are numbers or texts of one; NaN for all others."""
        read = [number_in(value) if isinstance(value, str) else None for value in self.distinct]
        return np.array([n if v is None else v for v, n in zip(read, self.numbers.tolist(), strict=True)])

    @cached_property
    def spans(self) -> NDArray[np.float64]:
        """(n_distinct, 2) start and end of the values that are dates; NaN for all others."""
        return _span_array(_span(value, times=self.times) for value in self.distinct)

    @cached_property
    def dates(self) -> NDArray[np.float64]:
        """As `spans`, with whole numbers that can be years read as years."""
        years = _span_array(
            date_span(str(value)) if type(value) is int and value in YEARS else None for value in self.distinct
        )
        return np.where(np.isnan(self.spans), years, self.spans)

    def rows_with(self, values: NDArray[np.bool_], n_rows: int) -> NDArray[np.bool_]:
        """(n_rows,) bool: those that have one of these of the distinct values."""
        found = np.zeros(n_rows, dtype=np.bool_)
        found[self.rows[values[self.codes]]] = True
        return found

    def values_of(self, row: int) -> tuple[str, ...]:
        """The distinct values of a row, as `texts` has them."""
        first, end = np.searchsorted(self.rows, (row, row + 1))
        return tuple(dict.fromkeys(self.texts[self.codes[first:end]].tolist()))

    def equal(self, wanted: str) -> NDArray[np.bool_]:
        """(n_distinct,) bool. By number where the value is one, by date where both are (a day is in its year), else
        by text without regard to case."""
        same: NDArray[np.bool_] = np.zeros(len(self.distinct), dtype=np.bool_)
        if not self.times:
            same |= self.texts == wanted.casefold()
            number = number_in(wanted)
            if number is not None:
                same |= self.numbers == number
        span = date_span(wanted)
        if span is not None:
            same |= (self.spans[:, 0] >= span.start) & (self.spans[:, 1] <= span.end)
        return same

    @cached_property
    def words(self) -> NDArray[np.bool_]:
        """(n_distinct,) the values that are texts, and neither dates nor numbers written as text."""
        texts = np.array([isinstance(value, str) for value in self.distinct], dtype=np.bool_)
        return texts & np.isnan(self.spans[:, 0]) & np.isnan(self.numerals)

    @cached_property
    def kinds(self) -> NDArray[np.int8]:
        """(n_distinct,) numbers into FIELD_KINDS: what a filter compares each value as; a year written as text is a
        date."""
        booleans = np.array([isinstance(value, bool) for value in self.distinct], dtype=np.bool_)
        conditions = [booleans, ~np.isnan(self.spans[:, 0]), ~np.isnan(self.numerals)]
        numbers = [np.int8(FIELD_KINDS.index(kind)) for kind in ("boolean", "date", "number")]
        return np.select(conditions, numbers, np.int8(FIELD_KINDS.index("text")))

    @cached_property
    def firsts(self) -> NDArray[np.bool_]:
        """(n_values,) False for a value that its row has already had: a list may repeat its members."""
        pairs = self.rows.astype(np.int64) * len(self.distinct) + self.codes
        first = np.zeros(len(pairs), dtype=np.bool_)
        first[np.unique(pairs, return_index=True)[1]] = True
        return first

    def can_be(self, wanted: str) -> bool:
        """Whether a value of this field could equal `wanted`: one does, or some are of the type that it is."""
        if not np.isnan(self.spans[:, 0]).all() and date_span(wanted) is not None:
            return True
        if self.times:
            return False
        if not np.isnan(self.numerals).all() and number_in(wanted) is not None:
            return True
        if wanted.casefold() in _BOOLEANS and any(isinstance(value, bool) for value in self.distinct):
            return True
        if bool((self.texts == wanted.casefold()).any()):
            return True
        return bool(self.words.any()) and not self._is_invalid_date(wanted)

    def _is_invalid_date(self, wanted: str) -> bool:
        """Whether this is written as a date, as values here are, and there is no such day: 2001-99-99."""
        invalid = _LIKE_A_DAY.fullmatch(wanted) is not None and date_span(wanted) is None
        return invalid and not np.isnan(self.spans[:, 0]).all()

    def ordered(self, operator: str, wanted: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """(holds, comparable), each (n_distinct,) bool: `value operator wanted`, and whether that means anything.

        A date is > a year when it is after the whole of it, and >= when it is not before it.
        """
        number, span = (None if self.times else number_in(wanted)), date_span(wanted)
        plain = np.isnan(self.spans[:, 0]) & np.isnan(self.numerals)
        dated = ~np.isnan(self.spans[:, 0]) & (span is not None)
        holds: NDArray[np.bool_] = np.zeros(len(self.distinct), dtype=np.bool_)
        if span is not None:
            starts, ends = self.spans[:, 0], self.spans[:, 1]
            by_date = {
                ">": starts >= span.end,
                ">=": starts >= span.start,
                "<": ends <= span.start,
                "<=": ends <= span.end,
            }
            holds |= dated & by_date[operator]
        comparable = dated
        if number is not None:
            numeric = ~np.isnan(self.numerals)
            holds = np.where(numeric, _compared(self.numerals, operator, number), holds)
            comparable = comparable | numeric
        elif span is None and not self._is_invalid_date(wanted):
            texts = np.zeros(len(self.distinct), dtype=np.bool_)
            texts[plain] = _compared(self.texts[plain], operator, wanted.casefold())
            holds, comparable = texts, plain
        return holds, comparable


def matching(column: Column, condition: Condition, n_rows: int) -> tuple[NDArray[np.bool_], frozenset[str]]:
    """((n_rows,) the rows a condition matches, which of its values are comparable here).

    A list matches if one of its members does. `!=` matches what has none of the values, also where it has no value.
    """
    if condition.operator in ("=", "!="):
        same = np.zeros(len(column.distinct), dtype=np.bool_)
        for wanted in condition.values:
            same |= column.equal(wanted)
        rows = column.rows_with(same, n_rows)
        comparable_values = frozenset(wanted for wanted in condition.values if column.can_be(wanted))
        return (rows if condition.operator == "=" else ~rows), comparable_values
    holds, comparable = column.ordered(condition.operator, condition.values[0])
    return column.rows_with(holds, n_rows), frozenset(condition.values if comparable.any() else ())


def flattened(metadata: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Scalar]]:
    """The values of metadata with their dotted paths; each member of a list separately, nothing for null."""
    for name, value in metadata.items():
        yield from _of_value(f"{prefix}{name}", value)


def _of_value(path: str, value: Any) -> Iterator[tuple[str, Scalar]]:
    if isinstance(value, Mapping):
        yield from flattened(value, f"{path}.")
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for member in value:
            yield from _of_value(path, member)
    elif isinstance(value, str | int | float):
        yield path, value


def _compared(values: NDArray[Any], operator: str, wanted: float | str) -> NDArray[np.bool_]:
    results = {">": values > wanted, ">=": values >= wanted, "<": values < wanted, "<=": values <= wanted}
    return np.asarray(results[operator], dtype=np.bool_)


def number_in(text: str) -> float | None:
    """The number that a text is."""
    if not any(map(str.isdigit, text)):
        return None
    try:
        return float(text)
    except ValueError:
        return None


def _span_array(spans: Iterable[Span | None]) -> NDArray[np.float64]:
    """(n, 2) NaN for None."""
    return np.array([(np.nan, np.nan) if span is None else span for span in spans], dtype=np.float64).reshape(-1, 2)


def _span(value: Scalar, *, times: bool) -> Span | None:
    if times:
        return Span(int(value), int(value) + 1)
    return date_span(value) if isinstance(value, str) else None


MAX_WORDS = 12
MAX_VALUE_CHARACTERS = 300
LITERAL = "="  # before an id as it is spelt, not as its words

_WORD = re.compile(rf"\d+|[^\W\d_](?:[^\W\d_]|[{MARKS}{INVISIBLE}])*")
_EXTENSION = re.compile(r"\.[a-z][a-z0-9]{0,4}$", re.IGNORECASE)
_NUMBERED = re.compile(r"^\w+ \d+\s+[–—:-]\s+")  # `PEP 8 – ` before a title
PARTS = re.compile(r"[;,|]|\band\b")


class Word(NamedTuple):
    """A run of letters, casefolded without accents, or of digits without leading zeros; and its position."""

    text: str
    start: int
    end: int


def words_of(text: str) -> list[Word]:
    """Words as ids, titles, values and questions share them: `PEP-0008`, `pep 8` and `Pep8` have the same ones."""
    return [Word(_plain(match.group()), *match.span()) for match in _WORD.finditer(text)]


def phrase_of(text: str) -> str:
    """The words of a text with blanks between them."""
    return " ".join(word.text for word in words_of(text))


def _plain(word: str) -> str:
    if word.isascii():
        return (word.lstrip("0") or "0") if word.isdigit() else word.lower()
    plain = plain_letters(word).casefold()
    return (plain.lstrip("0") or "0") if plain.isdigit() else plain


class Fit(IntEnum):
    """How a phrase fits a value: it is the whole value; a member of a list (`Bo Ek, Ann Lee`); a choice of a template
    (`Draft | Active | Final`); the whole of an id but for upper and lower case, beside an id that it equals."""

    WHOLE = 0
    MEMBER = 1
    CHOICE = 2
    NEARLY = 3


@dataclass(frozen=True)
class Phrases:
    """Which rows a phrase names, by which field, and how it fits; 15 bytes each."""

    keys: NDArray[np.uint64]  # (n,) hashes of the phrases, ascending
    rows: NDArray[np.int32]  # (n,)
    fields: NDArray[np.int16]  # (n,) numbers into `names`
    fits: NDArray[np.int8]  # (n,) of Fit
    names: tuple[str, ...]

    @classmethod
    def from_columns(cls, columns: Mapping[str, Column]) -> "Phrases":
        names = tuple(sorted(columns))
        found: list[tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int16], NDArray[np.int8]]] = [
            (np.empty(0, np.uint64), np.empty(0, np.int32), np.empty(0, np.int16), np.empty(0, np.int8))
        ]
        for number, name in enumerate(names):
            column = columns[name]
            order = np.argsort(column.codes, kind="stable")
            starts = np.searchsorted(column.codes[order], np.arange(len(column.distinct) + 1))
            for code, value in enumerate(column.distinct):
                if isinstance(value, bool):
                    continue
                rows = column.rows[order[starts[code] : starts[code + 1]]]
                for phrase, fit in _best_fits(phrases_of(name, str(value)[:MAX_VALUE_CHARACTERS])):
                    keys = np.full(len(rows), hash_of(phrase), dtype=np.uint64)
                    found.append((keys, rows, np.full(len(rows), number, np.int16), np.full(len(rows), fit, np.int8)))
        keys, rows, fields, fits = (np.concatenate(each) for each in zip(*found, strict=True))
        order = np.argsort(keys, kind="stable")
        return cls(keys[order], rows[order], fields[order], fits[order], names)

    def find(self, hashes: NDArray[np.uint64]) -> Iterator[tuple[int, str, NDArray[np.int32], NDArray[np.int8]]]:
        """(which of the hashes, field, rows, how it fits each) of every phrase that names a row. Rows may repeat."""
        starts, ends = np.searchsorted(self.keys, hashes), np.searchsorted(self.keys, hashes, side="right")
        for at in np.flatnonzero(ends > starts).tolist():
            found = slice(int(starts[at]), int(ends[at]))
            for field in np.unique(self.fields[found]).tolist():
                of_field = self.fields[found] == field
                yield at, self.names[field], self.rows[found][of_field], self.fits[found][of_field]


def hash_of(phrase: str) -> int:
    return int.from_bytes(blake2b(phrase.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def hashes_of(phrases: Sequence[str]) -> NDArray[np.uint64]:
    return np.array([hash_of(phrase) for phrase in phrases], dtype=np.uint64)


def best_fits(
    found: Iterable[tuple[NDArray[np.int64], NDArray[np.int8]]],
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """(rows, fits): each row once, ascending, with its best fit."""
    rows, fits = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((fits, rows))
    distinct, firsts = np.unique(rows[order], return_index=True)
    return distinct, fits[order][firsts]


def _best_fits(phrases: Iterable[tuple[str, Fit]]) -> Iterable[tuple[str, Fit]]:
    """Each phrase once, with its first fit, which is its best."""
    found: dict[str, Fit] = {}
    for phrase, fit in phrases:
        found.setdefault(phrase, fit)
    return found.items()


def phrases_of(field: str, value: str) -> Iterator[tuple[str, Fit]]:
    """A bare number alone names nothing: it is found after its field's name, as in `volume 12`."""
    if field == "document":
        yield LITERAL + value.casefold(), Fit.WHOLE
        stem = _EXTENSION.sub("", value)
        candidates = [phrase_of(stem), phrase_of(stem.rstrip("/").rpartition("/")[2])]
        yield from ((phrase, Fit.WHOLE) for phrase in candidates if _has_letters_and_digits(phrase))
        return
    whole = phrase_of(value)
    words = whole.split()
    if not words or len(words) > MAX_WORDS:
        return
    if whole.replace(" ", "").isdigit():
        yield f"{phrase_of(field.rpartition('.')[2])} {whole}", Fit.WHOLE
        return
    yield whole, Fit.WHOLE
    if field == "title":
        yield phrase_of(_NUMBERED.sub("", value)), Fit.WHOLE
        return
    parts = [phrase_of(part) for part in PARTS.split(value)]
    if len(parts) == 2:
        yield f"{parts[1]} {parts[0]}".strip(), Fit.WHOLE  # `Perlis, A. J.`
    if len(parts) > 1:
        fit = Fit.CHOICE if "|" in value else Fit.MEMBER
        yield from ((part, fit) for part in parts if len(part) > 3 and not part.isdigit())


def _has_letters_and_digits(phrase: str) -> bool:
    return any(map(str.isdigit, phrase)) and any(map(str.isalpha, phrase))
