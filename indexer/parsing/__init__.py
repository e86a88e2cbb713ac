"""From content in one of the known formats to canonical text with its structure. One module a format."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import cast

from indexer.documents import ParsedDocument
from indexer.errors import UnparsableDocument
from indexer.parsing.decoding import decode_text


@dataclass(frozen=True)
class Format:
    """A format that can be read: its media type first in `media_types`, file extensions with their dot."""

    name: str
    media_types: tuple[str, ...]
    extensions: tuple[str, ...]
    module: str

    @property
    def media_type(self) -> str:
        return self.media_types[0]


_FORMATS = (
    Format(
        "Markdown", ("text/markdown", "text/x-markdown"), (".md", ".markdown", ".mdown"), "indexer.parsing.markdown"
    ),
    Format("HTML", ("text/html", "application/xhtml+xml"), (".html", ".htm", ".xhtml"), "indexer.parsing.html"),
    Format("plain text", ("text/plain",), (".txt", ".text"), "indexer.parsing.text"),
    Format(
        "reStructuredText",
        ("text/x-rst", "text/restructuredtext", "text/prs.fallenstein.rst"),
        (".rst", ".rest"),
        "indexer.parsing.restructuredtext",
    ),
)
_BY_MEDIA_TYPE = {media_type: known for known in _FORMATS for media_type in known.media_types}
_BY_EXTENSION = {extension: known for known in _FORMATS for extension in known.extensions}


def formats() -> list[Format]:
    """Every format `parse` reads."""
    return list(_FORMATS)


def media_type_of(path_name: str) -> str | None:
    """The media type that a file's name tells by its extension; None for an extension that is unknown."""
    dot = path_name.rfind(".")
    known = _BY_EXTENSION.get(path_name[dot:].lower()) if dot >= 0 else None
    return known.media_type if known else None


def parse(content: bytes, content_type: str) -> ParsedDocument:
    """Read content of a media type (with or without parameters such as `charset`).

    Raises UnparsableDocument with one of the reasons `unknown_media_type`, `undecodable`, `empty_content`, `too_deep`.
    A format's library is imported when its first document comes.
    """
    media_type = content_type.partition(";")[0].strip().lower()
    known = _BY_MEDIA_TYPE.get(media_type)
    if known is None:
        readable = ", ".join(one.media_type for one in _FORMATS)
        raise UnparsableDocument(
            "unknown_media_type", f"The media type {media_type[:80]!r} cannot be read; send one of {readable}."
        )
    text = decode_text(content, content_type, declared_inside=known.name == "HTML")
    read = cast("Callable[[str], ParsedDocument]", import_module(known.module).parse)
    try:
        parsed = read(text)
    except RecursionError as error:
        raise UnparsableDocument("too_deep", f"The {known.name} nests too deep to be read.") from error
    if not parsed.text:
        raise UnparsableDocument("empty_content", f"Nothing readable is in the {known.name}.")
    return parsed
