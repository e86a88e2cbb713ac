"""What a name names, by cheap rules on its words: person, organisation, place, time, work, identifier, or thing."""

import re

from indexer.extraction.lexicon import (
    DAYS,
    GIVEN_NAMES,
    HONORIFICS,
    MONTHS,
    ORGANISATION_WORDS,
    PLACE_WORDS,
    WORK_WORDS,
)

_CODE = re.compile(r"[a-z0-9][A-Z]|[a-z]\.[a-z]|_|\d")
_KIND_BY_FIRST_WORD = {
    **dict.fromkeys(("university", "institute", "ministry", "department", "bank", "church", "college"), "organisation"),
    **dict.fromkeys(("lake", "mount", "mt", "river", "fort", "cape", "port", "isle", "gulf"), "place"),
}
_PERSON_OPENINGS = GIVEN_NAMES | HONORIFICS
_DATE_WORDS = MONTHS | DAYS


def kind_of(name: str, surface: str) -> str:
    """`name` is the normalised form of `surface`. `thing` where no rule speaks."""
    if " " not in name:
        return "identifier" if _CODE.search(surface) and not surface[0].isdigit() else "thing"
    words = name.split(" ")
    first, last = words[0].rstrip("."), words[-1].rstrip(".")
    kind = _kind_by_last_word(last) or _KIND_BY_FIRST_WORD.get(first)
    if kind is None and last[:1].isdigit():
        kind = "identifier" if len(words) == 2 else "thing"
        kind = kind if _DATE_WORDS.isdisjoint(words) else "time"
    if kind is None and first in _PERSON_OPENINGS and len(words) <= 5:
        kind = "person"
    return kind or "thing"


def _kind_by_last_word(word: str) -> str | None:
    if word in ORGANISATION_WORDS:
        return "organisation"
    if word in PLACE_WORDS:
        return "place"
    return "work" if word in WORK_WORDS else None
