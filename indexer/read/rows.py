"""Rows as readers get them: passages and chunks as stored, and as found by a search."""

from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from schemas.ids import DocumentKey

PASSAGE_COLUMNS = ["id", "collection", "document_id", "revision", "ordinal", "section", "start", "end", "title", "text"]
CHUNK_COLUMNS = [
    "id",
    "collection",
    "document_id",
    "revision",
    "ordinal",
    "passage_id",
    "section",
    "start",
    "end",
    "text",
]


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A parent chunk; `section` holds the headings above it, outermost first; `start` and `end` count characters."""

    id: str
    key: DocumentKey
    revision: str
    ordinal: int
    section: list[str]
    start: int
    end: int
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A child chunk with its own text, without its vector."""

    id: str
    key: DocumentKey
    revision: str
    ordinal: int
    passage_id: str
    section: list[str]
    start: int
    end: int
    text: str


class ChunkSpan(NamedTuple):
    """The chunks `first` to `last` of a document, both included, by their ordinals."""

    key: DocumentKey
    first: int
    last: int


class FoundChunk(NamedTuple):
    """A chunk that vector search found; `score` is the cosine with the query, in [-1, 1]."""

    chunk_id: str
    passage_id: str
    key: DocumentKey
    score: float


class FoundPassage(NamedTuple):
    """A passage that keyword search found; `score` is BM25, above 0 and unbounded."""

    passage_id: str
    key: DocumentKey
    score: float


@dataclass(frozen=True)
class ContentRows:
    """The content of the text stores without vectors, for comparing stores: all chunk and passage rows, current or not,
    and the rows of live documents, tombstones left out. Nothing is sorted."""

    documents: pa.Table
    chunks: pa.Table
    passages: pa.Table


def passage_rows(table: pa.Table) -> list[PassageRow]:
    """The rows of a query that selected PASSAGE_COLUMNS."""
    return [
        PassageRow(
            id=row["id"],
            key=DocumentKey(row["collection"], row["document_id"]),
            revision=row["revision"],
            ordinal=row["ordinal"],
            section=row["section"],
            start=row["start"],
            end=row["end"],
            title=row["title"],
            text=row["text"],
        )
        for row in table.to_pylist()
    ]


def chunk_rows(table: pa.Table) -> list[ChunkRow]:
    """The rows of a query that selected CHUNK_COLUMNS."""
    return [
        ChunkRow(
            id=row["id"],
            key=DocumentKey(row["collection"], row["document_id"]),
            revision=row["revision"],
            ordinal=row["ordinal"],
            passage_id=row["passage_id"],
            section=row["section"],
            start=row["start"],
            end=row["end"],
            text=row["text"],
        )
        for row in table.to_pylist()
    ]
