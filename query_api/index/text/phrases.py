"""Phrases by which a question may name documents: their ids, their titles, the values of their metadata."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.text.fields import Column

MAX_WORDS = 12
MAX_VALUE_CHARACTERS = 300
LITERAL = "="  # before an id as it is spelt, not as its words

_WORD = re.compile(r"\d+|[^\W\d_]+")
_EXTENSION = re.compile(r"\.[a-z][a-z0-9]{0,4}$", re.IGNORECASE)
_NUMBERED = re.compile(r"^\w+ \d+\s+[–—:-]\s+")  # `PEP 8 – ` before a title
_PARTS = re.compile(r"[;,|]|\band\b")


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
    letters = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in letters if not unicodedata.combining(letter)).casefold()


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
                for phrase, fit in _best_fits(_phrases(name, str(value)[:MAX_VALUE_CHARACTERS])):
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


def _phrases(field: str, value: str) -> Iterator[tuple[str, Fit]]:
    """A bare number names nothing by itself: it is found after its field's name, as in `volume 12`."""
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
    parts = [phrase_of(part) for part in _PARTS.split(value)]
    if len(parts) == 2:
        yield f"{parts[1]} {parts[0]}".strip(), Fit.WHOLE  # `Perlis, A. J.`
    if len(parts) > 1:
        fit = Fit.CHOICE if "|" in value else Fit.MEMBER
        yield from ((part, fit) for part in parts if len(part) > 3 and not part.isdigit())


def _has_letters_and_digits(phrase: str) -> bool:
    return any(map(str.isdigit, phrase)) and any(map(str.isalpha, phrase))
