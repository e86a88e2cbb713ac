"""What a text may call documents by: their ids, their titles, the values of their metadata."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from indexer.read.fields.columns import Column
from indexer.read.fields.words import phrase_of

MAX_WORDS = 12
MAX_VALUE_CHARACTERS = 300
LITERAL = "="  # before an id as it is spelt, which its words alone do not tell

_EXTENSION = re.compile(r"\.[a-z][a-z0-9]{0,4}$", re.IGNORECASE)
_NUMBERED = re.compile(r"^\w+ \d+\s+[–—:-]\s+")  # `PEP 8 – ` before a title
_PARTS = re.compile(r"[;,|]|\band\b")


class Fit(IntEnum):
    """How a phrase fits a value: it is all of it; one of a list (`Bo Ek, Ann Lee`); one of those that a value leaves
    open, as templates do (`Draft | Active | Final`); it is all of an id but for upper and lower case, beside an id that
    it is in full."""

    WHOLE = 0
    MEMBER = 1
    CHOICE = 2
    NEARLY = 3


@dataclass(frozen=True)
class Phrases:
    """Which rows a phrase stands for, by which field, and how it fits; 15 bytes for each."""

    keys: NDArray[np.uint64]  # (n,) hashes of the phrases, ascending
    rows: NDArray[np.int32]  # (n,)
    fields: NDArray[np.int16]  # (n,) numbers into `names`
    fits: NDArray[np.int8]  # (n,) of Fit
    names: tuple[str, ...]

    @classmethod
    def of(cls, columns: Mapping[str, Column]) -> "Phrases":
        names = tuple(sorted(columns))
        keys: list[NDArray[np.uint64]] = []
        rows: list[NDArray[np.int32]] = []
        fields: list[NDArray[np.int16]] = []
        fits: list[NDArray[np.int8]] = []
        for number, name in enumerate(names):
            column = columns[name]
            pairs = [
                (hash_of(phrase), fit, code)
                for code, value in enumerate(column.distinct)
                if not isinstance(value, bool)
                for phrase, fit in _best_fits(_phrases(name, str(value)[:MAX_VALUE_CHARACTERS]))
            ]
            order = np.argsort(column.codes, kind="stable")
            starts = np.searchsorted(column.codes[order], np.arange(len(column.distinct) + 1))
            for key, fit, code in pairs:
                held = column.rows[order[starts[code] : starts[code + 1]]]
                rows.append(held)
                keys.append(np.full(len(held), key, dtype=np.uint64))
                fields.append(np.full(len(held), number, dtype=np.int16))
                fits.append(np.full(len(held), fit, dtype=np.int8))
        if not keys:
            return cls(
                np.empty(0, np.uint64), np.empty(0, np.int32), np.empty(0, np.int16), np.empty(0, np.int8), names
            )
        all_keys = np.concatenate(keys)
        sorted_by_key = np.argsort(all_keys, kind="stable")
        return cls(
            all_keys[sorted_by_key],
            np.concatenate(rows)[sorted_by_key],
            np.concatenate(fields)[sorted_by_key],
            np.concatenate(fits)[sorted_by_key],
            names,
        )

    def standing_for(
        self, hashes: NDArray[np.uint64]
    ) -> Iterator[tuple[int, str, NDArray[np.int32], NDArray[np.int8]]]:
        """(which of the hashes, field, rows, how it fits each) of every phrase that stands for something. Rows may
        repeat."""
        starts, ends = np.searchsorted(self.keys, hashes), np.searchsorted(self.keys, hashes, side="right")
        for at in np.flatnonzero(ends > starts).tolist():
            found = slice(int(starts[at]), int(ends[at]))
            for field in np.unique(self.fields[found]).tolist():
                held = self.fields[found] == field
                yield at, self.names[field], self.rows[found][held], self.fits[found][held]


def hash_of(phrase: str) -> int:
    return int.from_bytes(blake2b(phrase.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


def hashes_of(phrases: Sequence[str]) -> NDArray[np.uint64]:
    return np.array([hash_of(phrase) for phrase in phrases], dtype=np.uint64)


def best_fits(
    found: Iterable[tuple[NDArray[np.int64], NDArray[np.int8]]],
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Each row of what was found, as (rows, how it fits each), once, ascending, with the best of its fits."""
    rows, fits = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.lexsort((fits, rows))
    distinct, firsts = np.unique(rows[order], return_index=True)
    return distinct, fits[order][firsts]


def _best_fits(phrases: Iterable[tuple[str, Fit]]) -> Iterable[tuple[str, Fit]]:
    """Each phrase once, with the first of its fits, which is its best."""
    found: dict[str, Fit] = {}
    for phrase, fit in phrases:
        found.setdefault(phrase, fit)
    return found.items()


def _phrases(field: str, value: str) -> Iterator[tuple[str, Fit]]:
    """A bare number stands for nothing by itself: it is found behind its field's name, as in `volume 12`."""
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
