"""A double of stores and engine: tables in memory that a test moves on by hand, searches that follow a script."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from fastapi import FastAPI
from numpy.typing import NDArray

from indexer.changes import Commit
from indexer.generation_folders import Generation, switch_to
from indexer.generation_folders import make_generation as make_stores
from indexer.integrity.files import Damage
from indexer.schema import DocumentRow, StoredPosition, newest_mark
from query_api.app import create_app
from query_api.index.community_view import CommunityView
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from query_api.index.store_opening import GraphFile
from query_api.index.text.vectors import CosineSpread
from query_api.question_encoder import BACKGROUND
from query_api.rerankers.reranker import ServedReranker
from query_api.retrieval.confidence import FittedCalibration, fitted_calibration
from query_api.retrieval.pipeline import search, wants_reranker
from query_api.retrieval.search_context import SearchSettings
from query_api.settings import ServiceSettings
from schemas.frames import Done, Meta, SearchFrame, Stage
from schemas.graph_delta import Contribution
from schemas.graph_documents import may_be_made
from schemas.hits import Hit
from schemas.ids import DocumentKey
from schemas.provenance import Retrieval
from schemas.search import SearchRequest
from schemas.settings import EmbeddingSettings
from tests.support.fakes.text_stores import PATIENT, InMemoryText, Page, WordCounts
from tests.support.fakes.usage import InMemoryUsage
from tests.support.fixtures.manifest import MANIFEST as ANY_MANIFEST

FIRST = "g0001"

MANIFEST = msgspec.structs.replace(
    ANY_MANIFEST, generation=FIRST, embedding_model="words", embedding_digest="words-1", dimension=8, extractor="1"
)


def make_generation(data_dir: Path, name: str = FIRST, digest: str = "words-1") -> Generation:
    """A generation on disk with nothing in it but its manifest, and `CURRENT` naming it."""
    manifest = msgspec.structs.replace(MANIFEST, generation=name, embedding_digest=digest)
    generation = make_stores(data_dir, manifest)
    switch_to(generation)
    return generation


class Tables(InMemoryText):
    """The text stores of one moment, with what the routes read of them."""

    usage: InMemoryUsage = InMemoryUsage()
    removed = False

    @property
    def offset(self) -> int:
        return newest_mark(self.positions)

    def is_kept(self) -> bool:
        return not self.removed

    def list_documents(
        self, collection: str | None, cursor: str | None, limit: int, content_type: str | None = None
    ) -> tuple[list[DocumentRow], str | None]:
        rows = [
            row
            for key, row in sorted(self.documents(self.pages).items())
            if collection in (None, key.collection)
            and (row.content_type == content_type if content_type else not may_be_made(key.document_id))
        ]
        first = int(cursor or 0)
        following = first + limit
        return rows[first:following], str(following) if following < len(rows) else None

    def counts(self) -> dict[str, int]:
        return {"documents": len(self.pages)}

    def holds(self, collection: str) -> bool:
        return any(page.collection == collection for page in self.pages.values())

    def retrieval(self, retrieval_id: str) -> Retrieval | None:
        return next((each for each in self.usage.retrievals if each.retrieval_id == retrieval_id), None)


@dataclass
class Reader:
    """A TextReader whose next snapshot a test lays down with `put`."""

    pages: dict[DocumentKey, Page] = field(default_factory=dict)
    positions: dict[int, StoredPosition] = field(default_factory=dict)
    refreshes: int = 0
    failing: Exception | None = None
    usage: InMemoryUsage = field(default_factory=InMemoryUsage)
    _made: int = 0
    _put: int = 0
    _snapshot: Tables | None = None

    def put(self, *pages: Page, **positions: tuple[int, int]) -> None:
        """Documents, and positions as `p0=(offset, graph offset)`."""
        self.pages |= {page.key: page for page in pages}
        self.positions |= {int(name[1:]): StoredPosition(*reached) for name, reached in positions.items()}
        self._put += 1

    def apply(self, commits: Sequence[Commit[Any]]) -> None:
        if self.failing is not None:
            raise self.failing
        for commit in commits:
            self.positions |= {
                partition: StoredPosition(offset, commit.offset, at)
                for partition, (offset, at) in commit.reached.items()
            }
            self._put += 1
        self.refresh()

    def refresh(self, *, follows: bool = False) -> bool:
        self.refreshes += 1
        if self.failing is not None:
            raise self.failing
        if self._snapshot is not None and self._made == self._put:
            return False
        self._made = self._put
        self._snapshot = Tables(
            dict(self.pages), WordCounts({}), table_versions={"chunks": self._put}, positions=dict(self.positions)
        )
        self._snapshot.usage = self.usage
        return True

    def snapshot(self) -> Tables:
        if self._snapshot is None:
            self.refresh()
        assert self._snapshot is not None
        return self._snapshot


@dataclass
class Words:
    """An encoder without a model, which fails while it has a `failure`."""

    provider: str = "hashing"
    model: str = "words"
    digest: str = "words-1"
    dimension: int = 8
    is_plain: bool = True
    failure: Exception | None = None
    background: CosineSpread = BACKGROUND

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.failure is not None:
            raise self.failure
        return np.zeros((len(texts), self.dimension), dtype=np.float32)


@dataclass
class ScriptedEngine:
    """Answers every search with `hits`; a search waits before hit number `hold_at` until `go_on` is set."""

    readers: dict[str, Reader] = field(default_factory=lambda: {FIRST: Reader()})
    hits: Sequence[Hit] = ()
    hold_at: int | None = None
    fail_at: int | None = None
    failure: Exception = field(default_factory=lambda: RuntimeError("a broken search"))
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    started: int = 0
    cancelled: int = 0
    graph_file: GraphFile | None = None
    damage: list[Damage] = field(default_factory=list)
    graphs: dict[str, list[Contribution]] = field(default_factory=dict)
    communities: CommunityView | None = None
    encoder_failure: Exception | None = None
    encoder: Words = field(default_factory=Words)
    reranker: ServedReranker | None = None

    @property
    def reader(self) -> Reader:
        return self.readers[FIRST]

    def load_encoder(self, settings: EmbeddingSettings, data_dir: Path) -> Words:
        if self.encoder_failure is not None:
            raise self.encoder_failure
        return self.encoder

    def open_tables(self, generation: Generation) -> Any:
        if generation.name not in self.readers:
            raise FileNotFoundError(f"Generation {generation.name} has no tables yet")
        return self.readers[generation.name]

    def newest_graph_file(self, generation: Generation, damaged: Collection[str] = ()) -> GraphFile | None:
        return None if self.graph_file is None or self.graph_file.name in damaged else self.graph_file

    def build_graph(self, generation: Generation, file: GraphFile | None) -> GraphView:
        if file is None:
            return GraphView.empty()
        return GraphView.from_contributions(self.graphs.get(file.name, []), file.position)

    def newest_communities(self, generation: Generation, known: Collection[str]) -> CommunityView | None:
        found = self.communities
        return None if found is None or found.name in known else found

    def damage_of(self, generation: Generation) -> Iterator[list[Damage]]:
        yield self.damage

    def is_in_index(self, damage: Damage) -> bool:
        return damage.path.startswith("lance/chunks")

    def snapshot(self, generation: Generation, tables: Any, graph: GraphView) -> Snapshot:
        return Snapshot(generation.name, tables, graph, "thalweg.documents.v1")

    def reranks(self, request: SearchRequest) -> bool:
        return self.reranker is not None and wants_reranker(request)

    async def search(
        self, request: SearchRequest, retrieval_id: str, snapshot: Snapshot, encoder: Any, executor: Executor
    ) -> AsyncGenerator[SearchFrame, None]:
        self.started += 1
        yield Meta(
            retrieval_id=retrieval_id,
            query=request.q,
            mode=request.mode,
            collection=request.collection,
            snapshot=snapshot.info(),
            budget_seconds=1.0,
        )
        yield Stage(name="vector", seconds=0.001, candidates=len(self.hits))
        try:
            for number, hit in enumerate(self.hits[: request.k]):
                if number == self.hold_at:
                    await self.go_on.wait()
                if number == self.fail_at:
                    raise self.failure
                yield hit
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        yield Done(
            retrieval_id=retrieval_id, hits=len(self.hits[: request.k]), timings={"vector": 0.001}, next_offset=None
        )


class SearchingEngine(ScriptedEngine):
    """Searches the pages of its reader as the real engine does; by words, since its encoder knows none."""

    calibration: FittedCalibration | None = fitted_calibration()

    async def search(
        self, request: SearchRequest, retrieval_id: str, snapshot: Snapshot, encoder: Any, executor: Executor
    ) -> AsyncGenerator[SearchFrame, None]:
        self.started += 1
        settings = SearchSettings(budgets=PATIENT, reranker=self.reranker, calibration=self.calibration)
        async for part in search(request, retrieval_id, snapshot, encoder, executor, settings):
            yield part


class UncertainEngine(SearchingEngine):
    """Without confidence nothing is refused, however few documents there are."""

    calibration = None


class WordEngine(UncertainEngine):
    """Searches by words alone."""

    def search(self, request: SearchRequest, *others: Any) -> AsyncGenerator[SearchFrame, None]:
        return super().search(request.model_copy(update={"mode": "keyword"}), *others)


def app_over(settings: ServiceSettings, engine: ScriptedEngine, **given: Any) -> FastAPI:
    """An app that reads and searches what a script says."""
    double: Any = engine
    return create_app(settings, stores=double, engine=double, load_encoder=double.load_encoder, **given)


def make_hit(rank: int, text: str = "The river is high.") -> Hit:
    return Hit.model_validate(
        {
            "rank": rank,
            "chunk_id": f"{rank:032x}",
            "passage_id": f"{rank + 1000:032x}",
            "document_id": f"notes/{rank}.md",
            "collection": "default",
            "title": f"Note {rank}",
            "text": text,
            "parent_text": text,
            "start": 0,
            "end": len(text),
            "parent_start": 0,
            "section": [f"Note {rank}", "Today"],
            "score": 1 / rank,
            "scores": {"vector": 0.9, "graph": 0.5},
            "ranks": {"vector": rank},
            "confidence": 0.7,
            "channels": ["vector", "graph"],
            "path": [{"from": "river", "edge": "mentions", "to": f"Note {rank}", "evidence": text}],
            "source": {"topic": "thalweg.documents.v1", "partition": 0, "offset": rank},
        }
    )
