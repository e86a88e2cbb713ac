"""A document as it passes through the pipeline: parsed, chunked, prepared.

All offsets count characters of `ParsedDocument.text`, the canonical text that a parser made.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import msgspec

from schemas.graph_delta import HandMadeNode, Relation
from schemas.ids import DocumentKey


class Section(msgspec.Struct, frozen=True):
    """A heading's own content `text[start:end]`, without the heading and its sub-sections.

    `headings` runs from the outermost to its own; () before the first heading.
    """

    headings: tuple[str, ...]
    start: int
    end: int


class Figure(msgspec.Struct, frozen=True):
    """An image with its caption; never part of a passage's overlap."""

    start: int
    end: int
    caption: str


class TextLink(msgspec.Struct, frozen=True):
    """A link in the text: `target` as written (URL, path or reference), `start` the offset of its text."""

    target: str
    text: str
    start: int


class ParsedDocument(msgspec.Struct, frozen=True):
    """Plain text with its structure.

    `fields` are those of front matter and headers, as (name, value) in order, names in lower case with `_`.
    `emphasised` are phrases in bold, in italics or marked as terms; `verbatim` the bounds of blocks that keep their
    lines, such as code. `names` are others than the title that it states of what it is about, each whole. `page_starts`
    are the offsets of the pages, if the format has pages. `notes` report what could not be read as intended.
    """

    title: str | None
    text: str
    sections: tuple[Section, ...]
    links: tuple[TextLink, ...] = ()
    figures: tuple[Figure, ...] = ()
    emphasised: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    page_starts: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    verbatim: tuple[tuple[int, int], ...] = ()

    def page_at(self, offset: int) -> int | None:
        """As `page_at`."""
        return page_at(self.page_starts, offset)


def page_at(page_starts: Sequence[int], offset: int) -> int | None:
    """The page of an offset, counted from 1; None without pages. `page_starts` ascend."""
    return bisect_right(page_starts, offset) or None


def repeats_title(text: str, title: str) -> bool:
    """Whether a text is the title, or the title without its series number."""
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
    """A child chunk, about 300 characters: the unit of embedding. `passage` is its parent's ordinal."""

    id: str
    ordinal: int
    passage: int
    section: int
    start: int
    end: int
    text: str


class ChunkedDocument(msgspec.Struct, frozen=True):
    """The sections with content, in order, and their passages and chunks."""

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


class Statement(msgspec.Struct, frozen=True):
    """A statement; `roles` are (role, normalised name, surface). `sentence` is -1 if it comes from no sentence."""

    chunk: int
    predicate: str
    roles: tuple[tuple[str, str, str], ...]
    confidence: float
    extractor: str
    sentence: int = -1


class AboutName(msgspec.Struct, frozen=True):
    """A name that the document is about: its title (weight 1) or an alias. `name` is normalised."""

    name: str
    surface: str
    weight: float


class DocumentLink(msgspec.Struct, frozen=True):
    """A link resolved to the id of a document that may or may not exist."""

    chunk: int
    target: DocumentKey
    weight: float


class PreparedDocument(msgspec.Struct, frozen=True):
    """Everything about a document but its vectors; `embedding_texts[i]` is the text that chunk i is embedded as.

    `sentence_starts` are the offsets of its sentences, by their document-wide numbers; `verbatim` as in ParsedDocument.
    `nodes` and `relations` are what it is itself, where people made it. `denials` are what it says is not so.
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
    statements: tuple[Statement, ...]
    links: tuple[DocumentLink, ...]
    notes: tuple[str, ...] = ()
    sentence_starts: tuple[int, ...] = ()
    verbatim: tuple[tuple[int, int], ...] = ()
    nodes: tuple[HandMadeNode, ...] = ()
    relations: tuple[Relation, ...] = ()
    denials: tuple[Statement, ...] = ()

    def sentence_at(self, offset: int) -> int:
        """The number of the sentence that contains the offset or precedes it."""
        return max(0, bisect_right(self.sentence_starts, offset) - 1)
