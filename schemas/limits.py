"""What a document may hold beside its content: lengths of title, address and links, metadata, visible text."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from schemas.errors import DeadLetterReason, MalformedEvent
from schemas.ids import MAX_COLLECTION_CHARACTERS, MAX_DOCUMENT_ID_BYTES
from schemas.settings import LimitSettings

MAX_TITLE_CHARACTERS = 2_000
MAX_URI_CHARACTERS = 4_000
MAX_CONTENT_TYPE_CHARACTERS = 500
MAX_LINKS = 2_000
MAX_LINK_CHARACTERS = MAX_COLLECTION_CHARACTERS + 1 + MAX_DOCUMENT_ID_BYTES


PAGE_STARTS = "page_starts"
"""The offsets at which the pages of a document begin, put beside its metadata where its format has pages."""

STATED_FIELDS = "stated_fields"
"""The names of the metadata that a document states of itself, where it states any; the rest its producer sent."""

RESERVED_METADATA = frozenset({PAGE_STARTS, STATED_FIELDS})
MAX_METADATA_DEPTH = 32
MAX_ESCAPING = 6
_INTEGERS = range(-(2**63), 2**64)

# Blanks, controls and Unicode's default-ignorable code points (DerivedCoreProperties.txt), with the blank Braille cell;
# but not NUL: content that holds it is not text, and refused for that.
_VISIBLE = re.compile(
    "[^\\s\\x01-\\x1f\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f"
    "\\u202a-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb"
    "\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]"
)
_VISIBLE_ASCII = re.compile(rb"[!-~]")


def check_bounds(*, title: str | None, uri: str | None, content_type: str, links: Sequence[str]) -> None:
    """Raises MalformedEvent: `title_too_large`, `uri_too_large`, `content_type_too_large` or `links_too_large`."""
    fields: tuple[tuple[str, str | None, int, DeadLetterReason], ...] = (
        ("title", title, MAX_TITLE_CHARACTERS, "title_too_large"),
        ("uri", uri, MAX_URI_CHARACTERS, "uri_too_large"),
        ("content_type", content_type, MAX_CONTENT_TYPE_CHARACTERS, "content_type_too_large"),
    )
    for name, text, most, reason in fields:
        if text is not None and len(text) > most:
            raise MalformedEvent(reason, f"The {name} has {len(text):,} characters; the limit is {most:,}. Shorten it.")
    if len(links) > MAX_LINKS:
        raise MalformedEvent(
            "links_too_large", f"There are {len(links):,} links; the limit is {MAX_LINKS:,}. Send the most important."
        )
    longest = max(map(len, links), default=0)
    if longest > MAX_LINK_CHARACTERS:
        raise MalformedEvent(
            "links_too_large",
            f"A link has {longest:,} characters; the limit is {MAX_LINK_CHARACTERS:,}. A link is the id of a document, "
            "or '<collection>/<document id>'.",
        )


def shortened_title(title: str) -> str:
    """A title read from content, which its producer cannot shorten: at most MAX_TITLE_CHARACTERS, `…` for the rest."""
    return title if len(title) <= MAX_TITLE_CHARACTERS else title[: MAX_TITLE_CHARACTERS - 1].rstrip() + "…"


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


def is_visible(text: str | None) -> bool:
    """Whether anything of it can be seen."""
    return text is not None and _VISIBLE.search(text) is not None


def is_blank(content: bytes) -> bool:
    """Whether it is empty, or UTF-8 of which nothing can be seen. Bytes that are not UTF-8 may be anything."""
    if not content.strip():
        return True
    if _VISIBLE_ASCII.search(content):
        return False
    try:
        return not is_visible(content.decode())
    except UnicodeDecodeError:
        return False
