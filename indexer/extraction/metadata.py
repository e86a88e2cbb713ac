"""Metadata: a document's own header merged with what its producer sent, and read as statements and as search words."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from indexer.documents import Statement
from indexer.extraction.lexicon import word_set
from indexer.extraction.relating_fields import CLASSES, DOCUMENTS, LISTED_CONFIDENCE, LISTS, PERSONS, field_confidence
from indexer.extraction.series import SeriesNumber
from indexer.parsing.front_matter import field_name
from schemas.ids import bare_name
from schemas.limits import RESERVED_METADATA, STATED_FIELDS

MAX_STATED_BYTES = 8 * 1024  # as JSON; every hit carries them
MAX_NAME_CHARACTERS = 64
MAX_VALUE_CHARACTERS = 500  # longer values are texts
MAX_VALUES = 64  # of one field

EXTRACTOR = "header"
MAX_OBJECT_CHARACTERS = 120
MAX_STATEMENTS = 256

MAX_LABEL_CHARACTERS = 500
MAX_LABEL_WORDS = 64  # of one document
MAX_WORD_CHARACTERS = 64

_NOT_METADATA = RESERVED_METADATA | {"title"}  # the title is a column of its own

_SINGULAR = {
    "authors": "author", "contributors": "contributor", "editors": "editor", "maintainers": "maintainer",
    "sponsors": "sponsor", "delegates": "delegate", "topics": "topic", "tags": "tag", "keywords": "keyword",
    "categories": "category", "versions": "version", "languages": "language", "is_part_of": "part_of",
}  # fmt: skip
_NOT_STATEMENTS = word_set("title alias aliases abstract description summary content text slug id link links url uri")
_MAIL = re.compile(r"<[^<>]*>|\([^()]*@[^()]*\)|\S+@\S+")
_LINKED = re.compile(r"`([^`<]*?)\s*<[^`>]*>`_{0,2}")
_PERSON_ENDS = re.compile(r"[,;\n]|\s+and\s+(?![a-z])|\s+&\s+")
_LIST_ENDS = re.compile(r"[,;\n]")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NUMBER = re.compile(r"#?0*(\d{1,6})")
_SUFFIXES = frozenset(("jr", "jr.", "sr", "sr.", "ii", "iii", "iv", "phd", "ph.d", "md"))
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)

_WORD = re.compile(r"[^\s,;|]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_PARTS = re.compile(r"\w+")
_NOT_WORDS = (
    re.compile(r"[a-z][a-z0-9+.-]*:/\S*|www\.\S*|<?\S+@\S+", re.IGNORECASE),  # addresses
    re.compile(r"(?:[a-z]:|[~.]+)?[/\\]\S*|\S*[/\\]\S*[/\\]\S*|\S*[/\\]\S*\.\w{1,8}", re.IGNORECASE),  # paths
    re.compile(r"(?:sha\d+:)?(?=[a-f-]*\d)[0-9a-f]{7,}(?:-?[0-9a-f]{4,})*", re.IGNORECASE),  # hashes
)
# Header fields that hold running text, or settings of a renderer.
_NOT_LABELS = word_set(
    """abstract charset content content_type css description draft encoding excerpt format generator id javascript lang
    language layout link links permalink render slug summary template text theme url uri weight"""
)
_LITERALS = frozenset(("true", "false", "yes", "no", "on", "off", "none", "null"))
_DATE_LETTERS = word_set(
    """january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs
    fri sat sun am pm t z utc gmt st nd rd th"""
)

Fields = Sequence[tuple[str, str]]


def merged_metadata(sent: Mapping[str, Any], fields: Fields, max_metadata_bytes: int) -> dict[str, Any]:
    """The producer's metadata as it is, with the document's own `fields` under names that it leaves free.

    Names are normalised, so the producer's `Author` excludes the field `author`. One value is a string, several are a
    list. `stated_fields` names the fields that were added; they take at most MAX_STATED_BYTES, and the whole at most
    `max_metadata_bytes`, as JSON. Fields that do not fit are dropped one by one, in their order.
    """
    room = min(MAX_STATED_BYTES, max_metadata_bytes - _size(sent)) - _size({STATED_FIELDS: []})
    stated: dict[str, str | list[str]] = {}
    for name, values in _values_by_name(sent, fields):
        value = values[0] if len(values) == 1 else values
        cost = _size({name: value}) + _size(name) + 1
        if cost <= room:
            room -= cost
            stated[name] = value
    return {**sent, **stated, STATED_FIELDS: list(stated)} if stated else dict(sent)


def metadata_statements(
    subject: str, title: str, fields: Fields, metadata: Mapping[str, Any], series: SeriesNumber | None
) -> tuple[Statement, ...]:
    """A statement (subject, field, value) for each value of each field that relates the document to something, anchored
    at chunk 0; at most MAX_STATEMENTS.

    The predicate is the field's normalised name, in the singular for list fields, and `delegate` for `pep_delegate` and
    the like. Web addresses and long values are left out.
    """
    subject_name = bare_name(subject)
    found: dict[tuple[str, str], Statement] = {}
    for field, value in (*fields, *_scalar_fields(metadata)):
        predicate = predicate_of(field)
        if not subject_name or predicate in _NOT_STATEMENTS or (series and field == series.series):
            continue
        for surface, confidence in objects_of(predicate, value, title, series):
            name = bare_name(surface)
            is_setting = "." in field and confidence < LISTED_CONFIDENCE  # `cascade.type`
            if name and name != subject_name and not is_setting and len(found) < MAX_STATEMENTS:
                roles = (("subject", subject_name, subject), ("object", name, surface))
                found.setdefault((predicate, name), Statement(0, predicate, roles, confidence, EXTRACTOR))
    return tuple(found[key] for key in sorted(found))


def label_text(metadata: Mapping[str, Any], passage: str = "") -> str:
    """The labels that people search by, such as authors, keywords and status, separated by commas.

    A label is a string, or a string in a list, of at most MAX_LABEL_CHARACTERS; at most MAX_LABEL_WORDS words, in the
    order of the fields' names, which are not read themselves. Addresses, paths, dates, numbers and hashes are not
    words: they would match thousands of documents. Of the document's own fields those that describe or format it are
    left out, and words of the `passage`, as a header that is part of the text must not count twice.
    """
    stated = frozenset(metadata.get(STATED_FIELDS, ()))
    in_passage = frozenset(_PARTS.findall(passage.casefold())) if stated else frozenset()
    labels: list[str] = []
    room = MAX_LABEL_WORDS
    for field, label in _labels(metadata):
        words = [word for word in _WORD.findall(label) if _is_label_word(word)]
        if field in stated:
            is_label = field.rpartition(".")[2] not in _NOT_LABELS and label.lower() not in _LITERALS
            words = [word for word in words if is_label and not in_passage.issuperset(_PARTS.findall(word.casefold()))]
        if words := words[:room]:
            labels.append(" ".join(words))
            room -= len(words)
    return ", ".join(labels)


def _values_by_name(sent: Mapping[str, Any], fields: Fields) -> Iterator[tuple[str, list[str]]]:
    """Each field that the producer did not send, with its distinct values, in document order."""
    taken = _NOT_METADATA | {field_name(name) for name in sent}
    found: dict[str, dict[str, None]] = {}
    for name, value in fields:
        if not name or len(name) > MAX_NAME_CHARACTERS or {name, name.partition(".")[0]} & taken:
            continue
        values = found.setdefault(name, {})
        for one in _split(predicate_of(name), value):
            if one and len(one) <= MAX_VALUE_CHARACTERS and len(values) < MAX_VALUES:
                values[one] = None
    return ((name, list(values)) for name, values in found.items() if values)


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))


def predicate_of(field: str) -> str:
    """The predicate that a field is, in the singular."""
    name = "_".join(re.findall(r"\w+", _CAMEL.sub("_", field).lower().replace("-", "_")))
    if name.endswith("_delegate"):
        return "delegate"
    return _SINGULAR.get(name, name)


def _scalar_fields(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field, value in metadata.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, str | int | float) and not isinstance(one, bool):
                yield field, str(one)


def objects_of(predicate: str, value: str, title: str, series: SeriesNumber | None) -> Iterator[tuple[str, float]]:
    """(surface, confidence) of each value of a field that relates."""
    pieces = _LIST_ENDS.split(value) if predicate in CLASSES - LISTS else _split(predicate, value)
    for piece in map(str.strip, pieces):
        surface = _document(piece, series) if predicate in DOCUMENTS else piece
        if 0 < len(surface) <= MAX_OBJECT_CHARACTERS and not _URL.match(surface):
            confidence = field_confidence(predicate, surface, title)
            if confidence:
                yield surface, confidence


def _split(predicate: str, value: str) -> list[str]:
    """The values of a field: persons without their addresses, members of a list, else the value as a whole."""
    value = _LINKED.sub(r"\1", value).strip()
    if predicate in PERSONS:
        return _persons(value)
    if predicate in DOCUMENTS:
        return [piece.strip() for piece in _LIST_ENDS.split(value)]
    if predicate in LISTS:
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


def _labels(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(field, label) of every label."""
    for field, value in sorted(metadata.items()):
        for label in value if isinstance(value, list) else [value]:
            if (
                isinstance(label, str)
                and len(label) <= MAX_LABEL_CHARACTERS
                and field not in RESERVED_METADATA
                and not _is_date_or_number(label)
            ):
                yield field, label


def _is_date_or_number(label: str) -> bool:
    return all(letters.lower() in _DATE_LETTERS for letters in _LETTERS.findall(label))


def _is_label_word(word: str) -> bool:
    return (
        len(word) <= MAX_WORD_CHARACTERS
        and _LETTERS.search(word) is not None
        and not any(pattern.fullmatch(word) for pattern in _NOT_WORDS)
    )
