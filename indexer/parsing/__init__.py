"""From content in one of the known formats to canonical text with its structure. One module a format.

What is promised of bad input, always as UnparsableDocument with one of these reasons and a sentence for the producer:

- `unknown_media_type`: no such format is listed in `registry`;
- `media_type_mismatch`: the bytes are of another kind than the media type says (`signatures`);
- `undecodable`: the characters cannot be told (`decoding`); a declared character set that is unknown counts as none;
- `malformed`: the content breaks the rules of its format, or is locked by a password;
- `too_deep`, `too_large`: it exceeds a limit of its format (`limits`);
- `unsafe`: it holds what only an attack holds (entities that stand for more text, paths out of an archive);
- `empty_content`: nothing readable is in it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import cast

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.decoding import clean, declared_in, decode_text, is_known_charset, is_read_without
from indexer.parsing.document_builder import TextAssembler
from indexer.parsing.registry import Format, format_of, formats, media_type_of, readable
from indexer.parsing.signatures import check_signature
from schemas.limits import is_blank, is_visible

__all__ = ["Format", "formats", "is_known_charset", "media_type_of", "parse", "parse_title", "with_charset"]


def parse(content: bytes, content_type: str) -> ParsedDocument:
    """Read content of a media type (with or without parameters such as `charset`).

    Raises UnparsableDocument, with the reasons above. A format's library is imported when its first document comes.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    known = format_of(media_type)
    if known is None:
        raise UnparsableDocument(
            "unknown_media_type", f"The media type {media_type[:80]!r} cannot be read; send one of {readable()}."
        )
    if is_blank(content):
        raise _empty(known)
    check_signature(content, known)
    try:
        parsed = _read(content, content_type, known)
    except RecursionError as error:
        raise UnparsableDocument("too_deep", f"The {known.name} nests too deep to be read.") from error
    if not is_visible(parsed.text):
        raise _empty(known)
    return parsed


def parse_title(title: str) -> ParsedDocument:
    """A document that is nothing but its title, which is its text too.

    Raises UnparsableDocument, `empty_content`, for a title in which nothing can be seen.
    """
    parsed = TextAssembler().finish(clean(title))
    if not is_visible(parsed.text):
        raise UnparsableDocument("empty_content", "Nothing readable is in the title, and there is no content.")
    return parsed


def with_charset(media_type: str, charset: str, content: bytes) -> str:
    """The content type of what is written in `charset`; the bare media type for a format that is no text, and for
    content that is Unicode or declares a known one itself."""
    known = format_of(media_type)
    if known is None or known.takes == "bytes":
        return media_type
    if known.name in _DECLARE_INSIDE and is_known_charset(declared_in(content) or ""):
        return media_type
    if is_read_without(charset, content):
        return media_type
    return f"{media_type}; charset={charset}"


_DECLARE_INSIDE = ("HTML", "XML")


def _read(content: bytes, content_type: str, known: Format) -> ParsedDocument:
    module = import_module(known.module)
    if known.takes == "bytes":
        return cast("Callable[[bytes], ParsedDocument]", module.parse)(content)
    text = decode_text(
        content, content_type, declared_inside=known.name in _DECLARE_INSIDE, as_sent=known.takes == "characters"
    )
    return cast("Callable[[str], ParsedDocument]", module.parse)(text)


def _empty(known: Format) -> UnparsableDocument:
    return UnparsableDocument("empty_content", f"Nothing readable is in the {known.name}.")
