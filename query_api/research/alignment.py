"""Whether a sentence says what a claim says, by its words: those of the claim in their order, with little between, and
at most one name, number or time in the place of another. No synonym is known: most paraphrases stay undecided."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from indexer.extraction.lexicon import MONTHS, word_set
from indexer.extraction.prose.facts import TIME
from indexer.extraction.prose.open_verbs import verb_of
from indexer.extraction.prose.verb_groups import FINITE
from indexer.extraction.prose.word_classes import DENIAL
from indexer.text_analysis import query_terms

Kind = Literal["time", "number", "name", "word"]
MOST_UNITS = 40  # of a claim
CACHED_TEXTS = 64
LEAST_UNITS = 3  # of a claim
BETWEEN = 4  # units of the sentence that come between those of the claim

_CAPITAL = r"[^\W\d_a-z][\w'’-]*(?:\.(?= [A-Z]))?"
_UNIT = re.compile(
    rf"(?P<time>{TIME.pattern})|(?P<number>\d[\d,]*(?:\.\d+)?(?: ?%)?)|"
    rf"(?P<name>{_CAPITAL}(?: (?:(?:of|the|de|van|von) )*{_CAPITAL})*)|"
    r"(?P<word>[^\W_]+(?:['’-][^\W_]+)*)"
)
_BRACKETS = re.compile(r"\s*\([^()]*\)")
_PRONOUN = re.compile(r"^(?:He|She|It|They)\b")
_UNSURE = word_set(
    "may might could would should possibly perhaps probably allegedly reportedly supposedly if unless whether claims "
    "claimed believed thought planned proposed expected said says"
)
_ROUGH = word_set("about around approximately almost nearly over least most circa some roughly")


class Unit(NamedTuple):
    """`key` has the terms of words and names, the value of a number, the parts of a time; it is `text[start:end]`."""

    kind: Kind
    text: str
    key: tuple[Any, ...]
    start: int
    end: int


class Fit(NamedTuple):
    """What the claim has and what the sentence has in its place, where these differ; and whether one denies what the
    other states."""

    differs: tuple[str, str] | None
    opposite: bool


@lru_cache(CACHED_TEXTS)
def units_of(text: str) -> tuple[Unit, ...]:
    """Without stop words. Cached: a claim is compared with each sentence of its hits."""
    return tuple(unit for match in _UNIT.finditer(text) if (unit := _unit(match)).key)


def _unit(found: re.Match[str]) -> Unit:
    kind, text = found.lastgroup, found[0]
    if kind == "time":
        parts: list[object] = [("year", text[-4:])]
        months = [month for month in MONTHS if re.search(rf"\b{month}\b", text.lower())]
        parts += [("month", month[:3]) for month in months]
        parts += [("day", int(day)) for day in re.findall(r"\b\d{1,2}(?!\d)", text)]
        return Unit("time", text, tuple(sorted(parts, key=str)), *found.span())
    if kind == "number":
        value = float(text.rstrip(" %").replace(",", ""))
        return Unit("number", text, (value, text.endswith("%")), *found.span())
    return Unit("name" if kind == "name" else "word", text, query_terms(text), *found.span())


def is_same(claimed: Unit, stated: Unit) -> bool:
    """Whether what is stated says what is claimed: a time at least as exact, a longer form of the name."""
    if claimed.kind != stated.kind or claimed.kind in ("word", "number"):
        return claimed.key == stated.key
    has_ends = claimed.kind == "time" or (claimed.key[0], claimed.key[-1]) == (stated.key[0], stated.key[-1])
    return has_ends and set(claimed.key) <= set(stated.key)


def is_other(claimed: Unit, stated: Unit) -> bool:
    """Whether both cannot be so: two numbers, two names without a common word, two times that differ in a part."""
    if claimed.kind != stated.kind or claimed.kind == "word":
        return False
    if claimed.kind == "time":
        one, other = dict(claimed.key), dict(stated.key)
        return any(one[part] != other[part] for part in one.keys() & other.keys())
    if claimed.kind == "number":
        return claimed.key != stated.key and claimed.key[1:] == stated.key[1:]
    return set(claimed.key).isdisjoint(stated.key)


def fit(claim: str, sentence: str, title: str) -> Fit | None:
    """How the sentence of a document with this title fits the claim; None where it does not. Of a sentence that begins
    with a pronoun the title is taken for the subject."""
    sentence = _PRONOUN.sub(_BRACKETS.sub("", title).replace("\\", ""), _BRACKETS.sub("", sentence).strip(), count=1)
    claimed, stated = units_of(claim), units_of(sentence)
    unsure, rough = (words.intersection(re.findall(r"\b[a-z]+", f"{claim} {sentence}")) for words in (_UNSURE, _ROUGH))
    if unsure or not LEAST_UNITS <= len(claimed) <= MOST_UNITS or "?" in sentence[-2:] or not _has_verb(claim):
        return None
    pairs = _pairs(claimed, stated)
    if pairs is None:
        return None
    different = [pair for pair in pairs if not is_same(*pair)]
    span = sentence[pairs[0][1].start : pairs[-1][1].end]
    opposite = len(DENIAL.findall(span)) % 2 != len(DENIAL.findall(claim)) % 2
    if not different:
        return Fit(None, opposite)
    one, other = different[0]
    says_both = any(is_same(one, each) for each in stated)
    is_sure = len(different) == 1 and is_other(one, other) and not (opposite or says_both or rough)
    return Fit((one.text, other.text), opposite=False) if is_sure else None


@lru_cache(CACHED_TEXTS)
def _has_verb(claim: str) -> bool:
    verbs = ((word, verb_of(word)) for word in re.findall(r"\b[a-z]+", claim))
    return any(word in FINITE or verb.is_third or verb.is_past or verb.is_sure for word, verb in verbs)


def _pairs(claimed: Sequence[Unit], stated: Sequence[Unit]) -> list[tuple[Unit, Unit]] | None:
    """Each unit of the claim with that in its place; None where one has none, or too much is between, or a name,
    which may be what the rest is said of."""
    pairs: list[tuple[Unit, Unit]] = []
    between: list[Unit] = []
    one, other = ([unit.key for unit in units] for units in (claimed, stated))
    for _, low, high, first, last in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        size, held = high - low, stated[first:last]
        if size > len(held):
            return None
        if low == 0 and size:
            held = held[len(held) - size :]
        elif high == len(claimed):
            held = held[:size]
        between += held[size:] if high > 0 and low < len(claimed) else []
        pairs += zip(claimed[low:high], held[:size], strict=True)
    return None if len(between) > BETWEEN or any(unit.kind == "name" for unit in between) else pairs
