"""What a document's metadata may be: any JSON object within limits, without the names that the parsers use."""

from collections.abc import Mapping
from typing import Any

import msgspec

from schemas.errors import MalformedEvent
from schemas.settings import LimitSettings

PAGE_STARTS = "page_starts"
"""The offsets at which the pages of a document begin, put beside its metadata where its format has pages."""

STATED_FIELDS = "stated_fields"
"""The names of the metadata that a document states of itself, where it states any; the rest its producer sent."""

RESERVED_METADATA = frozenset({PAGE_STARTS, STATED_FIELDS})
MAX_METADATA_DEPTH = 32
MAX_ESCAPING = 6
_INTEGERS = range(-(2**63), 2**64)


def check_metadata_text(size: int, limits: LimitSettings) -> None:
    """Raises MalformedEvent for metadata whose JSON, as it was sent, is too long to be within the limit once it is
    decoded: with every character escaped, or many blanks."""
    if size > MAX_ESCAPING * limits.max_metadata_bytes:
        raise _too_large(size, limits)


def check_metadata(metadata: Mapping[str, Any], limits: LimitSettings) -> None:
    """Raises MalformedEvent: `metadata_too_large`, `metadata_too_deep`, `number_too_large` or `reserved_metadata`."""
    size = len(msgspec.json.encode(metadata))
    if size > limits.max_metadata_bytes:
        raise _too_large(size, limits)
    reserved = sorted(RESERVED_METADATA & metadata.keys())
    if reserved:
        raise MalformedEvent(
            "reserved_metadata", f"The metadata name {reserved[0]!r} is kept for what parsers find; use another."
        )
    level: list[Any] = [metadata]
    for _ in range(MAX_METADATA_DEPTH):
        level = [inner for value in level for inner in _inside(value)]
        if any(isinstance(value, int) and value not in _INTEGERS for value in level):
            raise MalformedEvent(
                "number_too_large", "A whole number in the metadata is longer than 64 bits; send it as text."
            )
    if any(isinstance(value, dict | list) for value in level):
        raise MalformedEvent(
            "metadata_too_deep", f"The metadata nests deeper than {MAX_METADATA_DEPTH} levels; flatten it."
        )


def _too_large(size: int, limits: LimitSettings) -> MalformedEvent:
    return MalformedEvent(
        "metadata_too_large", f"The metadata has {size:,} bytes; the limit is {limits.max_metadata_bytes:,}."
    )


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
