"""What of a document's metadata is read as words: the labels people search by, such as authors, keywords and status.

Addresses, paths, dates, numbers and hashes are none: a date would put its month into the text of thousands of
documents, and every folder of a path would count as said.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from indexer.extraction.lexicon import word_set
from schemas.limits import RESERVED_METADATA, STATED_FIELDS

MAX_LABEL_CHARACTERS = 500  # what is longer is a text, or data
MAX_LABEL_WORDS = 64  # of one document
MAX_WORD_CHARACTERS = 64

_WORD = re.compile(r"[^\s,;|]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*:/\S*|www\.\S*|<?\S+@\S+", re.IGNORECASE)
_PATH = re.compile(r"(?:[a-z]:|[~.]+)?[/\\]\S*|\S*[/\\]\S*[/\\]\S*|\S*[/\\]\S*\.\w{1,8}", re.IGNORECASE)
_HASH = re.compile(r"(?:sha\d+:)?(?=[a-f-]*\d)[0-9a-f]{7,}(?:-?[0-9a-f]{4,})*", re.IGNORECASE)
_PARTS = re.compile(r"\w+")
# Fields in a document's header that hold running text, or say how it is set and where it goes.
_NO_LABELS = word_set(
    """abstract charset content content_type css description draft encoding excerpt format generator id javascript lang
    language layout link links permalink render slug summary template text theme url uri weight"""
)
_NO_WORDS = frozenset(("true", "false", "yes", "no", "on", "off", "none", "null"))
_OF_DATES = word_set(
    """january february march april may june july august september october november december jan feb mar apr jun jul
    aug sep sept oct nov dec monday tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs
    fri sat sun am pm t z utc gmt st nd rd th"""
)


def label_text(metadata: Mapping[str, Any], passage: str = "") -> str:
    """The labels with a comma between, field by field in the order of the fields' names, at most MAX_LABEL_WORDS words.

    A label is a string, or a string in a list, of at most MAX_LABEL_CHARACTERS; the names of the fields are not read.
    Of what a document states of itself, words that stand in the `passage` are left out, for a header that is part of
    the text must not count twice; and fields that describe, or say how the document is set. Equal metadata gives equal
    text, however it is ordered. Empty where there is no label.
    """
    stated = frozenset(metadata.get(STATED_FIELDS, ()))
    said = frozenset(_PARTS.findall(passage.casefold())) if stated else frozenset()
    kept: list[str] = []
    room = MAX_LABEL_WORDS
    for field, label in _labels(metadata):
        words = [word for word in _WORD.findall(label) if _is_read(word)]
        if field in stated:
            tells = field.rpartition(".")[2] not in _NO_LABELS and label.lower() not in _NO_WORDS
            words = [word for word in words if tells and not said.issuperset(_PARTS.findall(word.casefold()))]
        if words := words[:room]:
            kept.append(" ".join(words))
            room -= len(words)
    return ", ".join(kept)


def _labels(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(field, label) of every label."""
    for field, value in sorted(metadata.items()):
        for label in value if isinstance(value, list) else [value]:
            if (
                isinstance(label, str)
                and len(label) <= MAX_LABEL_CHARACTERS
                and field not in RESERVED_METADATA
                and not _is_date(label)
            ):
                yield field, label


def _is_date(label: str) -> bool:
    """Whether it has no letters but those of a date; so has a number."""
    return all(letters.lower() in _OF_DATES for letters in _LETTERS.findall(label))


def _is_read(word: str) -> bool:
    return (
        len(word) <= MAX_WORD_CHARACTERS
        and _LETTERS.search(word) is not None
        and not any(kind.fullmatch(word) for kind in (_ADDRESS, _PATH, _HASH))
    )
