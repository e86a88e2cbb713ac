"""A document's metadata: what its producer sent, and what the document states of itself in its header."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from indexer.extraction.metadata_statements import values_of
from indexer.parsing.front_matter import field_name
from schemas.limits import RESERVED_METADATA, STATED_FIELDS

MAX_STATED_BYTES = 8 * 1024  # as JSON; every hit carries them
MAX_NAME_CHARACTERS = 64
MAX_VALUE_CHARACTERS = 500  # what is longer is a text
MAX_VALUES = 64  # of one field

# A title is a column of its own.
_NOT_METADATA = RESERVED_METADATA | {"title"}


def merged_metadata(
    sent: Mapping[str, Any], fields: Sequence[tuple[str, str]], max_metadata_bytes: int
) -> dict[str, Any]:
    """`sent` by the producer, as it is, with the document's own `fields` under the names that it leaves free.

    A field's name is lower case with `_`; `Author` of the producer keeps the field `author` out. One value is a string,
    several are a list. `stated_fields` names the fields that were added. They take at most MAX_STATED_BYTES, and all
    together at most `max_metadata_bytes`, as JSON: what does not fit is left out, field by field in their order.
    """
    room = min(MAX_STATED_BYTES, max_metadata_bytes - _size(sent)) - _size({STATED_FIELDS: []})
    stated: dict[str, str | list[str]] = {}
    for name, values in _by_name(sent, fields):
        value = values[0] if len(values) == 1 else values
        cost = _size({name: value}) + _size(name) + 1
        if cost <= room:
            room -= cost
            stated[name] = value
    return {**sent, **stated, STATED_FIELDS: list(stated)} if stated else dict(sent)


def _by_name(sent: Mapping[str, Any], fields: Sequence[tuple[str, str]]) -> Iterator[tuple[str, list[str]]]:
    """Each field that the producer did not send with its distinct values, in the order of the document."""
    taken = _NOT_METADATA | {field_name(name) for name in sent}
    found: dict[str, dict[str, None]] = {}
    for name, value in fields:
        if not name or len(name) > MAX_NAME_CHARACTERS or {name, name.partition(".")[0]} & taken:
            continue
        held = found.setdefault(name, {})
        for one in values_of(name, value):
            if len(one) <= MAX_VALUE_CHARACTERS and len(held) < MAX_VALUES:
                held[one] = None
    return ((name, list(held)) for name, held in found.items() if held)


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))
