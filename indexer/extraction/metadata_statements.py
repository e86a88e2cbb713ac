"""Facts that a document states of itself: front matter, header fields and the envelope's metadata."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from indexer.documents import StatedFact
from indexer.extraction.lexicon import word_set
from indexer.extraction.series import SeriesNumber
from schemas.ids import normalise_name

EXTRACTOR = "header"
CONFIDENCE = 1.0
MAX_VALUE_CHARACTERS = 120
MAX_FACTS = 256

# Fields that hold a list of persons.
_PERSONS = word_set(
    """author authors contributor contributors creator editor editors maintainer maintainers reviewer sponsor sponsors
    delegate delegates translator"""
)
# Fields that name other documents; a bare number there is a number of the document's own series.
_DOCUMENTS = word_set(
    """requires replaces superseded_by supersedes obsoletes obsoleted_by updates updated_by depends_on extends
    implements related related_to see_also part_of parent replaced_by amends amended_by"""
)
# Fields that hold a list of short values.
_LISTS = word_set("topic tag keyword category python_version version language")
_SINGULAR = {
    "authors": "author", "contributors": "contributor", "editors": "editor", "maintainers": "maintainer",
    "sponsors": "sponsor", "delegates": "delegate", "topics": "topic", "tags": "tag", "keywords": "keyword",
    "categories": "category", "versions": "version", "languages": "language", "is_part_of": "part_of",
}  # fmt: skip
_NOT_FACTS = word_set("title alias aliases abstract description summary content text slug id link links url uri")
_MAIL = re.compile(r"<[^<>]*>|\([^()]*@[^()]*\)|\S+@\S+")
_LINKED = re.compile(r"`([^`<]*?)\s*<[^`>]*>`_{0,2}")
_PERSON_ENDS = re.compile(r"[,;\n]|\s+and\s+(?![a-z])|\s+&\s+")
_LIST_ENDS = re.compile(r"[,;\n]")
_NUMBER = re.compile(r"#?0*(\d{1,6})")
_SUFFIXES = frozenset(("jr", "jr.", "sr", "sr.", "ii", "iii", "iv", "phd", "ph.d", "md"))
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def stated_fields(
    subject: str, fields: Sequence[tuple[str, str]], metadata: Mapping[str, Any], series: SeriesNumber | None
) -> tuple[StatedFact, ...]:
    """A fact for each value of each field, anchored at chunk 0: (subject, field, value).

    The predicate is the field's name, lower case, plural list fields in the singular, and `delegate` for `pep_delegate`
    and its like. Persons and lists are split; web addresses and values over 120 characters are left out. At most 256.
    """
    subject_name = normalise_name(subject)
    seen: dict[tuple[str, str], StatedFact] = {}
    for field, value in (*fields, *_metadata_fields(metadata)):
        predicate = _predicate(field)
        if not subject_name or predicate in _NOT_FACTS or (series and field == series.series):
            continue
        for surface in _values(predicate, value, series):
            name = normalise_name(surface)
            if name and len(seen) < MAX_FACTS:
                roles = (("subject", subject_name, subject), ("object", name, surface))
                seen.setdefault((predicate, name), StatedFact(0, predicate, roles, CONFIDENCE, EXTRACTOR))
    return tuple(seen[known] for known in sorted(seen))


def values_of(field: str, value: str) -> list[str]:
    """What a field says, value by value as written: persons without their addresses, members of a list, else the whole.

    The field's name is in lower case with `_`, as parsers give it.
    """
    return [piece for piece in _pieces(_predicate(field), value) if piece]


def _predicate(field: str) -> str:
    name = "_".join(re.findall(r"\w+", field.lower().replace("-", "_")))
    if name.endswith("_delegate"):
        return "delegate"
    return _SINGULAR.get(name, name)


def _metadata_fields(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field, value in metadata.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int | float) and not isinstance(one, bool):
                yield field, str(one)


def _values(predicate: str, value: str, series: SeriesNumber | None) -> Iterator[str]:
    for piece in _pieces(predicate, value):
        named = _document(piece, series) if predicate in _DOCUMENTS else piece
        if 0 < len(named) <= MAX_VALUE_CHARACTERS and not _URL.match(named):
            yield named


def _pieces(predicate: str, value: str) -> list[str]:
    value = _LINKED.sub(r"\1", value).strip()
    if predicate in _PERSONS:
        return _persons(value)
    if predicate in _DOCUMENTS:
        return [piece.strip() for piece in _LIST_ENDS.split(value)]
    if predicate in _LISTS:
        return [piece.strip().strip("[]\"'") for piece in _LIST_ENDS.split(value)]
    return [value]


def _persons(value: str) -> list[str]:
    persons: list[str] = []
    for piece in _PERSON_ENDS.split(_MAIL.sub(" ", value)):
        person = " ".join(piece.split()).strip(" .\"'[]") if piece.strip().lower() not in _SUFFIXES else piece.strip()
        if person.lower() in _SUFFIXES and persons:
            persons[-1] = f"{persons[-1]}, {person}"
        elif person:
            persons.append(person)
    return persons


def _document(piece: str, series: SeriesNumber | None) -> str:
    number = _NUMBER.fullmatch(piece)
    return SeriesNumber(series.series, int(number[1])).identifier if number and series else piece
