"""Whether a sentence says what a claim says, by its words: all of the claim's in their order, with little between them,
and at most one name, number or time in the place of another.

A conservative form of alignment for textual inference (MacCartney, Galley and Manning 2008): nothing is learned, no
synonym is known, so most paraphrases are undecided rather than guessed.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from indexer.extraction.lexicon import MONTHS, STOP_WORDS, word_set
from indexer.extraction.prose.facts import TIME
from indexer.text_analysis import query_terms
from query_api.query.analysis import normalise_text

Kind = Literal["name", "number", "time", "word"]
MOST_UNITS = 60
GAP = 3  # units of the sentence between two that the claim has behind each other
GAPS = 4  # of all of them
LEAST_UNITS = 3  # of a claim, besides the one that differs

_NAME = (
    r"[^\W\d_a-z][\w'’.-]*\w(?:(?: (?:of|the|de|van|von|der|di|da))* [^\W\d_a-z][\w'’.-]*\w|(?: [^\W\d_a-z]\.?(?!\w)))*"
)
_UNIT = re.compile(
    rf"(?P<time>{TIME.pattern})|(?P<number>\d[\d,]*(?:\.\d+)?(?: ?%)?)|(?P<name>{_NAME})|(?P<word>[^\W_]+(?:['’-][^\W_]+)*)"
)
_BRACKETS = re.compile(r"\s*\([^()]*\)")
_PRONOUN = re.compile(r"(?:He|She|It|They)\b")
_NUMBERS = dict(
    zip(
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
        range(1, 13),
        strict=True,
    )
)
_NEGATIONS = word_set("not never no neither nor cannot without nobody none nothing")
_HEDGES = word_set(
    "may might could would should possibly perhaps probably allegedly reportedly supposedly if unless whether claims "
    "claimed believed rumoured rumored thought planned proposed expected said says wrongly falsely"
)
_ROUGH = word_set("about around approximately almost nearly over least most circa some roughly")


class Unit(NamedTuple):
    """`key` is what is compared: the terms of a word, the number, the parts of a time, the words of a name."""

    kind: Kind
    text: str
    key: tuple[object, ...]


class Line(NamedTuple):
    """A sentence in units; `negations` are the places, between units, of words that deny."""

    units: list[Unit]
    negations: list[int]
    words: frozenset[str]


class Fit(NamedTuple):
    """How a claim fits a sentence: the units of both that stand for each other though they differ, and whether one
    denies what the other states."""

    differs: tuple[Unit, Unit] | None
    opposite: bool


def line_of(text: str) -> Line:
    units: list[Unit] = []
    negations: list[int] = []
    for match in _UNIT.finditer(text):
        written = match.group()
        if written.lower() in _NEGATIONS or written.lower().endswith(("n't", "n’t")):
            negations.append(len(units))
        elif (unit := _unit(match.lastgroup, written)) and len(units) < MOST_UNITS:
            units.append(unit)
    return Line(units, negations, frozenset(re.findall(r"[a-z]+", text.lower())))


def _unit(kind: str | None, text: str) -> Unit | None:
    first, _, rest = text.partition(" ")
    if kind == "name" and first.lower() in STOP_WORDS:  # as a sentence begins
        kind, text = ("name", rest) if rest else ("word", text)
    if kind == "time":
        return Unit("time", text, tuple(sorted(_parts(text).items())))
    if kind == "number" or text.lower() in _NUMBERS:
        value = _NUMBERS.get(text.lower()) or float(text.rstrip(" %").replace(",", "") or 0)
        return Unit("number", text, (float(value), text.endswith("%")))
    if kind == "name":
        return Unit("name", text, tuple(normalise_text(text).split()))
    terms = query_terms(text)
    return Unit("word", text, terms) if terms else None


def _parts(time: str) -> dict[str, int]:
    """The year, month and day that are written."""
    found = {"year": int(re.findall(r"[12]\d{3}", time)[-1])}
    for word in re.findall(r"[a-z]{3,}", time.lower()):
        found |= {"month": at for at, month in enumerate(sorted(MONTHS)) if month.startswith(word[:3])}
    day = re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", time)
    return found | ({"day": int(day[1])} if day and "month" in found else {})


def is_same(claimed: Unit, stated: Unit, title: tuple[object, ...] = ()) -> bool:
    """Whether what is stated says what is claimed: a longer form of the name, a time that is at least as exact."""
    if claimed.kind == stated.kind == "time":
        return set(claimed.key) <= set(stated.key)
    if claimed.kind == stated.kind == "name":
        ends = (claimed.key[:1], claimed.key[-1:]) == (stated.key[:1], stated.key[-1:])
        in_short = claimed.key == title and stated.key == title[-1:]
        return claimed.key == stated.key or (ends and set(claimed.key) <= set(stated.key)) or in_short
    if "number" in (claimed.kind, stated.kind):
        return claimed.kind == stated.kind and claimed.key == stated.key
    return claimed.key == stated.key or query_terms(claimed.text) == query_terms(stated.text)


def is_other(claimed: Unit, stated: Unit) -> bool:
    """Whether both cannot be so: two numbers, two times that differ in what both have, two names without a common
    word."""
    if claimed.kind != stated.kind or claimed.kind == "word":
        return False
    if claimed.kind == "time":
        one, other = dict(claimed.key), dict(stated.key)  # type: ignore[call-overload]
        return any(one[part] != other[part] for part in one.keys() & other.keys())
    if claimed.kind == "number":
        return claimed.key != stated.key and claimed.key[1] == stated.key[1]
    return set(claimed.key).isdisjoint(stated.key)


def fit(claim: Line, sentence: str, title: str) -> Fit | None:
    """How the sentence of a document with this title fits the claim; None where it does not. Of a sentence that begins
    with a pronoun the title is taken for its subject."""
    name = _BRACKETS.sub("", title).strip()
    plain = _BRACKETS.sub("", sentence).strip()
    stated = line_of(_PRONOUN.sub(lambda _: name, plain, count=1) if _PRONOUN.match(plain) else plain)
    hedged = (stated.words & _HEDGES) - claim.words
    if hedged or plain.endswith("?") or len(claim.units) < LEAST_UNITS - 1 or len(claim.units) > MOST_UNITS // 2:
        return None
    found = _placed(claim.units, stated.units, tuple(normalise_text(name).split()))
    if found is None:
        return None
    first, last, differs = found
    denied = sum(first < place <= last for place in stated.negations)
    opposite = denied % 2 != len(claim.negations) % 2
    if differs is None:
        return Fit(None, opposite)
    is_rough = differs[0].kind == "number" and not _ROUGH.isdisjoint(claim.words | stated.words)
    says_both = any(is_same(differs[0], each) for each in stated.units)
    if opposite or is_rough or says_both or len(claim.units) <= LEAST_UNITS - 1:
        return None
    return Fit(differs, opposite=False)


def _placed(
    claimed: Sequence[Unit], stated: Sequence[Unit], title: tuple[object, ...]
) -> tuple[int, int, tuple[Unit, Unit] | None] | None:
    """(first, last, what differs) of the best place of the claim's units among the sentence's: rather without a
    difference, then with the least between them."""

    @lru_cache(None)
    def rest(at: int, onto: int, may_differ: int) -> tuple[int, int, int, int] | None:
        """(units between, last, the claim's that differs, the sentence's) of the claim's units from `at` on."""
        if at == len(claimed):
            return 0, onto - 1, -1, -1
        found = []
        for place in range(onto, min(len(stated), onto + GAP + 1)):
            if (further := following(at, place, may_differ, is_next=place == onto)) is not None:
                found.append((further[0] + place - onto, *further[1:]))
            if stated[place].kind == "name":
                break  # what follows may be of that
        return min((each for each in found if each[0] <= GAPS), default=None)

    def following(at: int, place: int, may_differ: int, *, is_next: bool) -> tuple[int, int, int, int] | None:
        """With the claim's unit `at` at this place."""
        if is_same(claimed[at], stated[place], title):
            return rest(at + 1, place + 1, may_differ)
        if not (may_differ and is_next and is_other(claimed[at], stated[place])):
            return None
        further = rest(at + 1, place + 1, 0)
        return further and (*further[:2], at, place)

    for may_differ in (0, 1):
        placed = [
            (further, first)
            for first in range(len(stated))
            if (further := following(0, first, may_differ, is_next=True)) is not None
        ]
        if placed:
            (_, last, at, place), first = min(placed)
            return first, last, None if at < 0 else (claimed[at], stated[place])
    return None
