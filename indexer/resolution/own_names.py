"""What a name stands for in its document: the person whom it names in full, the thing that its title distinguishes.

A function of one document alone, so it holds whatever other documents come, change or go.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from indexer.documents import AboutName
from indexer.extraction.entity_mentions import PERSON, THING, EntityMention
from indexer.extraction.lexicon import HONORIFICS, PARTS_OF_DOCUMENTS, word_set
from indexer.resolution.candidates import MOST_COMPARED, MOST_INITIALS, compared_words, initials_fit
from indexer.resolution.keys import resolution_key
from schemas.ids import normalise_name

_QUALIFIED = re.compile(r"(.*\S)\s*[(\[]([^()\[\]]+)[)\]]\s*")
_PARTS = PARTS_OF_DOCUMENTS | word_set("chapter continued draft edition part revision section series version volume")


class OwnName(NamedTuple):
    """`surface` as the document writes it."""

    name: str
    surface: str
    entity_type: str


def full_names(names: Iterable[str]) -> dict[str, str]:
    """{name: full name} of normalised names of persons: of each first name, family name and name with initials that
    one full name among them fits, and only one."""
    plain = {name: [word.strip(".") for word in resolution_key(name, PERSON).split()] for name in names}
    titled = {name for name, words in plain.items() if len(words) == 2 and words[0] in HONORIFICS}
    words = {name: tuple(each[name in titled :] or each) for name, each in plain.items()}
    words = {name: tuple(compared_words(each, PERSON)) or each for name, each in words.items() if each}
    full: dict[tuple[str, ...], str] = {}
    by_ends: dict[tuple[str, ...], set[tuple[str, ...]]] = defaultdict(set)
    for name in sorted((name for name, each in words.items() if len(each) > 1), key=lambda each: (len(each), each)):
        first, *_, last = each = words[name]
        full.setdefault(each, name)
        for ends in ((first,), (last,), (first, last), ("", last)):
            by_ends[ends].add(each)
    found = {}
    for name, own in words.items():
        has_any_first = name in titled or any(len(part) <= MOST_INITIALS for part in own[:-1])
        near = by_ends.get(("", own[-1]) if has_any_first else own[:: max(1, len(own) - 1)], ())
        fitting = [each for each in near if each == own or _is_short_for(own, each)][: MOST_COMPARED + 1]
        longest = [each for each in fitting if not any(_is_short_for(each, other) for other in fitting)]
        if len(fitting) <= MOST_COMPARED and len(longest) == 1 and full[longest[0]] != name:
            found[name] = full[longest[0]]
    return found


def _is_short_for(short: tuple[str, ...], full: tuple[str, ...]) -> bool:
    """Of a full name with an end in common."""
    if len(short) == 1 or short == full:
        return short != full
    return initials_fit(short, full) or (short[0] == full[0] and short[-1] == full[-1] and set(short) < set(full))


def own_names(about: Iterable[AboutName], entities: Iterable[EntityMention]) -> dict[str, OwnName]:
    """{name: what it stands for in the document}, of what stands for something else.

    Persons as in `full_names`; `the Transformer` and `PEPs` are `Transformer` and `PEP`, where the document names both;
    and where its title is `Mercury (planet)`, `mercury` is `mercury planet`.
    """
    known = {each.name: OwnName(each.name, each.surface, each.entity_type) for each in entities}
    titles = {each.name: OwnName(each.name, each.surface, "") for each in about}
    persons = [name for name, _, kind in known.values() if kind == PERSON or (kind == THING and " " not in name)]
    found = {name: known[whole] for name, whole in full_names(persons).items()}
    for name, surface, _ in (titles | known).values():
        plain = known.get(resolution_key(surface, "concept"))
        if plain is not None and plain.name != name and plain.surface in surface:
            found[name] = plain
    for name, title, _ in titles.values():
        if qualified := qualified_name(title):
            found[name] = OwnName(qualified, title, known[name].entity_type if name in known else "")
    return {name: found.get(own.name, own) for name, own in found.items()}


def qualified_name(title: str) -> str:
    """`mercury planet` for `Mercury (planet)`; "" without a bracket at the end, and for one that distinguishes
    nothing: an abbreviation or what is abbreviated, a number, a part of a work."""
    match = _QUALIFIED.fullmatch(title)
    words = match[2].lower().split() if match else []
    if match is None or match[2].isupper() or "".join(word[0] for word in words) == match[1].lower():
        return ""
    distinguishes = any(word.isalpha() and len(word) > 1 and word not in _PARTS for word in words)
    return normalise_name(f"{match[1]} {match[2]}") if distinguishes else ""
