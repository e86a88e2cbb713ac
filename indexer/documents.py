"""The stages of a document on its way into the stores: parsed, chunked, prepared.

All offsets count characters of `ParsedDocument.text`, the canonical text a format's parser produced.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import msgspec

from schemas.ids import DocumentKey


class Section(msgspec.Struct, frozen=True):
    """A heading's own content: `text[start:end]`, without the heading line and without its sub-sections.

    `headings` is the stack from the outermost to its own; () for content before the first heading.
    """

    headings: tuple[str, ...]
    start: int
    end: int


class Figure(msgspec.Struct, frozen=True):
    """An image with its caption; parents never carry it over in their overlap."""

    start: int
    end: int
    caption: str


class TextLink(msgspec.Struct, frozen=True):
    """A link in the text: `target` as written (URL, path or reference), `start` where its text stands."""

    target: str
    text: str
    start: int


class ParsedDocument(msgspec.Struct, frozen=True):
    """What a parser makes of content: plain text with its structure beside it.

    `fields` are the statements of front matter and headers, as (name, value), in order, names lower case with `_`.
    `emphasised` are phrases the author set in bold, italics or as terms. `page_starts` are the offsets at which the
    pages begin, where the format has pages (else empty); `page_at` tells an offset's page. `notes` are sentences for
    the producer about what could not be read as it was meant.
    """

    title: str | None
    text: str
    sections: tuple[Section, ...]
    links: tuple[TextLink, ...] = ()
    figures: tuple[Figure, ...] = ()
    emphasised: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    page_starts: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def page_at(self, offset: int) -> int | None:
        """The page, counted from 1, on which the character at an offset stands; None in a format without pages."""
        return page_at(self.page_starts, offset)


def page_at(page_starts: Sequence[int], offset: int) -> int | None:
    """The page, counted from 1, that an offset is on; None without pages. `page_starts` ascend."""
    return bisect_right(page_starts, offset) or None


def said_in_title(text: str, title: str) -> bool:
    """Whether a text adds nothing to the title it stands under: it is the title, or what follows a series' number."""
    return f" {title}".endswith(f" {text}")


class Passage(msgspec.Struct, frozen=True):
    """A parent chunk, about 1,400 characters: `text[start:end]` of one section (index `section`)."""

    id: str
    ordinal: int
    section: int
    start: int
    end: int
    text: str


class Chunk(msgspec.Struct, frozen=True):
    """A child chunk, about 300 characters: the only thing that is embedded. `passage` is its parent's ordinal."""

    id: str
    ordinal: int
    passage: int
    section: int
    start: int
    end: int
    text: str


class ChunkedDocument(msgspec.Struct, frozen=True):
    """Sections that have content, in order, with their passages and chunks."""

    sections: tuple[Section, ...]
    passages: tuple[Passage, ...]
    chunks: tuple[Chunk, ...]


class Mention(msgspec.Struct, frozen=True):
    """An entity named in a chunk. `name` is normalised; `sentences` are document-wide numbers, ascending."""

    chunk: int
    name: str
    surface: str
    kind: str
    count: int
    sentences: tuple[int, ...]


class StatedFact(msgspec.Struct, frozen=True):
    """A statement: (role, normalised name, surface) for each part; `sentence` is -1 where it stands in no sentence."""

    chunk: int
    predicate: str
    roles: tuple[tuple[str, str, str], ...]
    confidence: float
    extractor: str
    sentence: int = -1


class AboutName(msgspec.Struct, frozen=True):
    """A name the document is about: its title (weight 1) or an alias of it. `name` is normalised."""

    name: str
    surface: str
    weight: float


class DocumentLink(msgspec.Struct, frozen=True):
    """A link resolved to the id of a document that may or may not exist."""

    chunk: int
    target: DocumentKey
    weight: float


class PreparedDocument(msgspec.Struct, frozen=True):
    """All that can be known of a document without the encoder: made in the limited child process.

    `embedding_texts[i]` is what chunk i is embedded as: title and headings carried to the chunk's own text.
    """

    key: DocumentKey
    revision: str
    title: str
    uri: str | None
    content_type: str
    metadata: dict[str, Any]
    chunked: ChunkedDocument
    embedding_texts: tuple[str, ...]
    about: tuple[AboutName, ...]
    mentions: tuple[Mention, ...]
    facts: tuple[StatedFact, ...]
    links: tuple[DocumentLink, ...]
    notes: tuple[str, ...] = ()
