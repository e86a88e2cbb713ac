"""Doubles of the text stores and the encoder: everything in dictionaries, and small worlds made of plain documents."""

import json
import re
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from indexer.errors import TransientStoreError
from indexer.read.rows import ChunkRow, ChunkSpan, PassageRow
from indexer.schema import DocumentRow, StoredPosition, documents_table
from indexer.text_analysis import query_terms, terms_of
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from query_api.index.text.bm25_index import TermScores
from query_api.index.text.filter_evaluation import DocumentColumns, DocumentIndex
from query_api.index.text.text_segments import EVERYTHING, Candidate, Scope, Segment, Segments
from query_api.index.text.vectors import CosineSpread
from query_api.question_encoder import BACKGROUND
from query_api.retrieval.search_context import SearchBudgets
from schemas.graph_delta import (
    AboutEdge,
    ChunkEdge,
    ChunkNode,
    Contribution,
    HandMadeNode,
    LinkEdge,
    MentionEdge,
    Relation,
    SectionNode,
)
from schemas.ids import DocumentKey, chunk_id, normalise_name, passage_id, section_id
from tests.support.fixtures.graph import statement

PATIENT = SearchBudgets(60, 60, 60, 60, 60, 60)  # for what is judged by its answer on a machine with other work


@dataclass(frozen=True)
class Page:
    """A document in plain words. `passages` are lists of chunk texts, `names` are looked for in them, `links`
    are document keys, `edges` go by the numbers of chunks; `types` make names those of entities. `nodes` and
    `relations` are what people made. `offset` is that of its record."""

    id: str
    title: str
    passages: Sequence[Sequence[str]]
    names: Sequence[str] = ()
    facts: Sequence[tuple[str, str, str]] = ()
    links: Sequence[str] = ()
    collection: str = "wiki"
    revision: str = "1"
    metadata: Mapping[str, Any] = field(default_factory=lambda: {"lang": "en"})
    edges: Sequence[ChunkEdge] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    nodes: Sequence[HandMadeNode] = ()
    relations: Sequence[Relation] = ()
    offset: int = 5
    uri: str | None = None

    @property
    def key(self) -> DocumentKey:
        return DocumentKey(self.collection, self.id)

    def passage_ids(self) -> list[str]:
        return [passage_id(self.key, [], " ".join(texts), at) for at, texts in enumerate(self.passages)]

    def chunks(self) -> list[tuple[str, int, str]]:
        """(chunk id, passage ordinal, text) of every chunk."""
        flat = [(at, text) for at, texts in enumerate(self.passages) for text in texts]
        return [(chunk_id(self.key, [], text, number), at, text) for number, (at, text) in enumerate(flat)]

    def contribution(self) -> Contribution:
        """Mentions of `names` wherever they stand in a chunk; facts and links stand in the first chunk."""
        chunks = self.chunks()
        passages = self.passage_ids()
        mentions = []
        for number, (_, _, text) in enumerate(chunks):
            for name in self.names:
                count = text.count(name)
                if count:
                    edge = MentionEdge(number, normalise_name(name), name, "thing", count, [number])
                    typed = {"entity_type": self.types.get(name, ""), "confidence": 0.9 if name in self.types else 0.0}
                    mentions.append(msgspec.structs.replace(edge, **typed))
        nodes = [ChunkNode(chunk, passages[at], at, 0) for chunk, at, _ in chunks]
        statements = [
            statement(
                nodes,
                0,
                predicate,
                [("subject", subject), ("object", target)],
                extractor="test",
                confidence=1.0,
                sentence=0,
            )
            for subject, predicate, target in dict.fromkeys(self.facts)
        ]
        return Contribution(
            collection=self.collection,
            document_id=self.id,
            revision=self.revision,
            title=self.title,
            sections=[SectionNode(section_id(DocumentKey(self.collection, self.id), [], 0), "", 0, -1)],
            chunks=nodes,
            about=[] if self.relations else [AboutEdge(normalise_name(each), each, 1.0) for each in self._titles()],
            mentions=mentions,
            statements=statements,
            edges=list(self.edges),
            links=[LinkEdge(0, *DocumentKey.parse(target), 1.0) for target in self.links],
            nodes=list(self.nodes),
            relations=list(self.relations),
        )

    def _titles(self) -> list[str]:
        return [self.title, *(alias for node in self.nodes for alias in node.aliases)]


def made_node(name: str, label: str, text: str = "", aliases: Sequence[str] = (), collection: str = "wiki") -> Page:
    """A node that people made, with its text in one passage, or without."""
    node = HandMadeNode(name, label, "thing", list(aliases), '{"by":null,"properties":{}}')
    return Page(f"node:{name}", label, [[text]] if text else [], collection=collection, nodes=[node])


def made_edge(
    source: str,
    predicate: str,
    target: str,
    *,
    weight: float = 1.0,
    note: str = "",
    name: str = "",
    collection: str = "wiki",
) -> Page:
    """An edge that people made; its id is made of its ends where no `name` is given."""
    attributes = json.dumps({"by": None, "note": note, "properties": {}})
    relation = Relation(name or f"{source}-{target}", source, target, predicate, weight, attributes)
    return Page(f"edge:{relation.name}", "", [], collection=collection, relations=[relation])


@dataclass
class WordCounts:
    """An encoder without a model: a text's vector counts its words, one dimension a word of a fixed vocabulary."""

    vocabulary: dict[str, int]
    broken: Exception | None = None
    background: CosineSpread = BACKGROUND

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.broken is not None:
            raise self.broken
        vectors = np.zeros((len(texts), len(self.vocabulary) + 1), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            for word in _words(text):
                row[self.vocabulary.get(word, len(self.vocabulary))] += 1
        vectors[:, -1] = np.where(vectors.any(axis=1), 0.01, 1.0)
        normalised: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return normalised

    encode_queries = encode


@dataclass
class InMemoryText:
    """The text stores as dictionaries. Exact cosine; a keyword score that counts the terms of the question a passage
    holds, each of idf 1. With `cosines_at_once` false only a search tells cosines, as in an index too large for memory.

    `hold` names a method that waits for an event before it answers; `broken` names methods whose store cannot be read.
    `calls` counts calls by method.
    """

    pages: Mapping[DocumentKey, Page]
    encoder: WordCounts
    broken: set[str] = field(default_factory=set)
    hold: dict[str, threading.Event] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    table_versions: dict[str, int] = field(default_factory=lambda: {"chunks": 1})
    positions: dict[int, StoredPosition] = field(default_factory=lambda: {0: StoredPosition(7, 7)})
    opened_at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    cosines_at_once: bool = True

    offset = -1

    @property
    def index(self) -> object:
        """The state that is searched, as its identity."""
        return self

    def vector_search(self, vector: NDArray[np.float32], limit: int, scope: Scope) -> list[Candidate]:
        self._enter("vector_search")
        found = [
            Candidate(page.passage_ids()[at], self._cosine(page, text, vector), page.key, chunk)
            for page, at, chunk, text in self._chunks(scope)
        ]
        return sorted(found, key=lambda hit: (-hit.score, hit.chunk_id))[:limit]

    def keyword_search(self, query: str, limit: int, scope: Scope, *, of_all: bool = False) -> list[Candidate]:
        self._enter("keyword_search")
        wanted = set(query_terms(query))
        found = [
            Candidate(identifier, float(len(wanted & held)), page.key)
            for page in self._pages(scope)
            for identifier, held in _terms(page)
            if (wanted <= held if of_all else wanted & held)
        ]
        return sorted(found, key=lambda hit: (-hit.score, hit.passage_id))[:limit]

    def compare_words(self, query: str, passage_ids: Sequence[str], collection: str | None) -> TermScores:
        self._enter("compare_words")
        wanted = list(dict.fromkeys(query_terms(query)))
        terms_by_id = {identifier: held for page in self._pages(Scope(collection)) for identifier, held in _terms(page)}
        known = set[int]().union(*terms_by_id.values())
        held = [[term in terms_by_id.get(identifier, ()) for term in wanted] for identifier in passage_ids]
        of_terms = np.array(held, dtype=np.bool_).reshape(len(passage_ids), len(wanted))
        idf = np.array([float(term in known) for term in wanted])
        return TermScores(of_terms @ idf, idf, 1.0, 1.0, lambda: of_terms)

    def known_words(self, words: Sequence[str]) -> list[str]:
        known = {term for page in self.pages.values() for _, held in _terms(page) for term in held}
        return [word for word in words if known.intersection(terms_of(word))]

    def passages_holding(self, names: Sequence[str], collection: str | None) -> list[int]:
        held = [terms for page in self._pages(Scope(collection)) for _, terms in _terms(page)]
        wanted = [set(terms_of(name)) for name in names]
        return [sum(bool(each) and each <= terms for terms in held) for each in wanted]

    def repeats(self, sentence: str, collection: str | None) -> int:
        texts = [(page.title, text) for page, _, _, text in self._chunks(Scope(collection))]
        return len({title for title, text in texts if sentence in text})

    def first_passage(self, key: DocumentKey) -> None:
        return None

    def bm25_of(
        self, queries: Sequence[str], passage_ids: Sequence[str], collection: str | None
    ) -> list[NDArray[np.float64]]:
        return [self.compare_words(query, passage_ids, collection).bm25 for query in queries]

    def compare_vectors(self, vector: NDArray[np.float32], passage_ids: Sequence[str]) -> NDArray[np.float64]:
        self._enter("compare_vectors")
        nearest: dict[str, float] = {}
        for page, at, _, text in self._chunks(EVERYTHING) if self.cosines_at_once else ():
            passage = page.passage_ids()[at]
            if passage in passage_ids:
                nearest[passage] = max(nearest.get(passage, -1.0), self._cosine(page, text, vector))
        return np.array([nearest.get(identifier, np.nan) for identifier in passage_ids], dtype=np.float64)

    def cosine_spread(self, vector: NDArray[np.float32], collection: str | None) -> CosineSpread | None:
        del vector, collection
        return CosineSpread(0.1, 0.1, 256)

    @cached_property
    def fields(self) -> DocumentIndex:
        return index_of([_row(page) for page in self.pages.values()])

    def leads(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, str]:
        return {key: self.pages[key].passage_ids()[0] for key in keys if key in self.pages}

    knows_copies = True

    def copies(self, key: DocumentKey, scope: Scope) -> frozenset[DocumentKey]:
        self._enter("copies")
        return frozenset(page.key for page in self._pages(scope) if _same_text(page, self.pages[key])) - {key}

    def revisions(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, str]:
        return {key: self.pages[key].revision for key in keys if key in self.pages}

    def documents(self, keys: Iterable[DocumentKey]) -> dict[DocumentKey, DocumentRow]:
        self._enter("documents")
        return {key: _row(self.pages[key]) for key in keys if key in self.pages}

    def partitions_of(self, key: DocumentKey) -> set[int]:
        return {row.partition for row in self.documents([key]).values()}

    def passages(self, ids: Iterable[str]) -> dict[str, PassageRow]:
        self._enter("passages")
        wanted = set(ids)
        rows = (row for page in self.pages.values() for row in _passage_rows(page))
        return {row.id: row for row in rows if row.id in wanted}

    def chunks(self, ids: Iterable[str]) -> dict[str, ChunkRow]:
        self._enter("chunks")
        wanted = set(ids)
        rows = (row for page in self.pages.values() for row in _chunk_rows(page))
        return {row.id: row for row in rows if row.id in wanted}

    def chunks_of_passages(self, passage_ids: Iterable[str]) -> dict[str, list[ChunkRow]]:
        self._enter("chunks_of_passages")
        wanted = set(passage_ids)
        found: dict[str, list[ChunkRow]] = {}
        for row in (row for page in self.pages.values() for row in _chunk_rows(page)):
            if row.passage_id in wanted:
                found.setdefault(row.passage_id, []).append(row)
        return found

    def chunks_in(self, spans: Iterable[ChunkSpan]) -> dict[DocumentKey, list[ChunkRow]]:
        self._enter("chunks_in")
        reach = list(spans)
        found: dict[DocumentKey, list[ChunkRow]] = {}
        for key in dict.fromkeys(span.key for span in reach):
            of_document = [span for span in reach if span.key == key]
            found[key] = [
                row
                for row in _chunk_rows(self.pages[key])
                if any(span.first <= row.ordinal <= span.last for span in of_document)
            ]
        return found

    def vectors(self, chunk_ids: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        self._enter("vectors")
        wanted = set(chunk_ids)
        return {
            chunk: self.encoder.encode([f"{page.title} {text}"])[0]
            for page, _, chunk, text in self._chunks(EVERYTHING)
            if chunk in wanted
        }

    def _enter(self, method: str) -> None:
        self.calls[method] += 1
        if method in self.hold:
            self.hold[method].wait(10)
        if method in self.broken:
            raise TransientStoreError(f"Could not {method}: the disk is gone")

    def _cosine(self, page: Page, text: str, vector: NDArray[np.float32]) -> float:
        return float(self.encoder.encode([f"{page.title} {text}"])[0] @ vector)

    def _pages(self, scope: Scope) -> list[Page]:
        return [page for page in self.pages.values() if scope.allows(page.key)]

    def _chunks(self, scope: Scope) -> list[tuple[Page, int, str, str]]:
        return [(page, at, chunk, text) for page in self._pages(scope) for chunk, at, text in page.chunks()]


def world(pages: Sequence[Page]) -> tuple[Snapshot, InMemoryText, WordCounts]:
    """A snapshot over these pages, with the stores and the encoder behind it."""
    words = sorted({word for page in pages for _, _, text in page.chunks() for word in _words(f"{page.title} {text}")})
    encoder = WordCounts({word: at for at, word in enumerate(words)})
    text = InMemoryText({page.key: page for page in pages}, encoder)
    view = GraphView.from_contributions([page.contribution() for page in pages], 3)
    return Snapshot("g0001", text, view, "thalweg.documents.v1"), text, encoder


def _same_text(page: Page, other: Page) -> bool:
    one, two = ("".join(" ".join(map(" ".join, each.passages)).split()).lower() for each in (page, other))
    return one == two


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _terms(page: Page) -> list[tuple[str, set[int]]]:
    """The terms of each passage, with its id."""
    texts = zip(page.passage_ids(), page.passages, strict=True)
    return [(identifier, set(terms_of(f"{page.title} {' '.join(held)}"))) for identifier, held in texts]


def _passage_rows(page: Page) -> list[PassageRow]:
    """The passages of a page, each with the text of its chunks."""
    rows: list[PassageRow] = []
    for ordinal, (identifier, texts) in enumerate(zip(page.passage_ids(), page.passages, strict=True)):
        start, text = rows[-1].end + 1 if rows else 0, " ".join(texts)
        end = start + len(text)
        rows.append(PassageRow(identifier, page.key, page.revision, ordinal, [], start, end, page.title, text))
    return rows


def _chunk_rows(page: Page) -> list[ChunkRow]:
    """The chunks of a page, a blank between them, as if its texts stood one after the other."""
    rows: list[ChunkRow] = []
    for ordinal, (chunk, at, text) in enumerate(page.chunks()):
        start = rows[-1].end + 1 if rows else 0
        parent = page.passage_ids()[at]
        rows.append(ChunkRow(chunk, page.key, page.revision, ordinal, parent, [], start, start + len(text), text))
    return rows


def _row(page: Page) -> DocumentRow:
    return DocumentRow(page.key, 1, 0, page.offset, 0, page.revision, "text/plain", page.title, page.uri, page.metadata)


def index_of(rows: Sequence[DocumentRow]) -> DocumentIndex:
    """The index of these documents, in one segment."""
    if not rows:
        return DocumentIndex(Segments())
    keys = [row.key for row in rows]
    segment = Segment.create([str(key) for key in keys], keys, DocumentColumns.from_table(documents_table(rows)))
    return DocumentIndex(Segments[DocumentColumns]().with_segment(segment))
