"""Parsing: content in one of the formats of `registry` becomes canonical text with its structure.

Bad input always raises UnparsableDocument, with a sentence for the producer; `DeadLetterReason` has the reasons.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.decoding import declared_charset, decode_text, is_charset_redundant, is_known_charset, normalise
from indexer.parsing.document_builder import DocumentBuilder
from indexer.parsing.registry import Format, check_signature, format_of, formats, media_type_of
from schemas.limits import is_blank, is_visible

__all__ = ["Format", "formats", "is_known_charset", "media_type_of", "parse", "parse_title", "with_charset"]


def parse(content: bytes, content_type: str) -> ParsedDocument:
    """Parse content of a media type, with or without parameters such as `charset`. Raises UnparsableDocument."""
    media_type = content_type.partition(";")[0].strip().lower()
    known = format_of(media_type)
    if known is None:
        raise UnparsableDocument(
            "unknown_media_type",
            f"{media_type[:80]!r} is not a media type of a format that Thalweg reads; /v1/formats lists those it does.",
        )
    if is_blank(content):
        raise _empty(known)
    check_signature(content, known)
    try:
        parsed = _parse(content, content_type, known)
    except RecursionError as error:
        raise UnparsableDocument("too_deep", f"The {known.name} is nested too deeply to be read.") from error
    if not is_visible(parsed.text) and not known.may_lack_text:
        raise _empty(known)
    return parsed


def parse_title(title: str) -> ParsedDocument:
    """A document without content: its title is its text. Raises UnparsableDocument for a blank one."""
    parsed = DocumentBuilder().finish(normalise(title))
    if not is_visible(parsed.text):
        raise UnparsableDocument("empty_content", "Nothing readable is in the title, and there is no content.")
    return parsed


def with_charset(media_type: str, charset: str, content: bytes) -> str:
    """The media type with a `charset` parameter, where that changes how the content is decoded."""
    known = format_of(media_type)
    if known is None or known.takes == "bytes":
        return media_type
    if known.declares_charset and is_known_charset(declared_charset(content) or ""):
        return media_type
    if is_charset_redundant(charset, content):
        return media_type
    return f"{media_type}; charset={charset}"


def _parse(content: bytes, content_type: str, known: Format) -> ParsedDocument:
    module, _, name = known.parser.partition(":")
    parser: Callable[[Any], ParsedDocument] = getattr(import_module(f"{__name__}.{module}"), name)
    if known.takes == "bytes":
        return parser(content)
    text = decode_text(content, content_type, declared_inside=known.declares_charset)
    return parser(normalise(text) if known.takes == "text" else text)


def _empty(known: Format) -> UnparsableDocument:
    return UnparsableDocument("empty_content", f"Nothing readable is in the {known.name}.")
