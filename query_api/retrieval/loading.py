"""What takes seconds to import, behind the port `Engine`. Only `load_engine` imports this module."""

import gc
from collections.abc import AsyncGenerator, Collection, Iterator
from concurrent.futures import Executor
from contextlib import aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

from indexer.embedding.encoder import PromptedEncoder, load_encoder
from indexer.errors import EncoderFailure
from indexer.generations import Generation, kept_manifest
from indexer.graph_schema import SCHEMA_VERSION
from indexer.integrity.check import damage_of, is_in_tables
from indexer.integrity.damage import Damage
from indexer.read.graph_snapshots import published_snapshots
from indexer.read.graph_tables import read_graph
from indexer.read.lance import INDEX_TABLES, VectorReader
from query_api.index.engine import GraphFile, SearchPart, SearchUnanswered, tables_of
from query_api.index.graph.view import GraphView
from query_api.index.snapshot import QueryEncoder, Snapshot
from query_api.index.text_cache import CachedText, TextCache
from query_api.rerankers.served import ServedReranker
from query_api.retrieval.pipeline import search
from query_api.retrieval.rerank import asks_reranker
from query_api.retrieval.results.confidence import fitted_judge
from query_api.retrieval.stages import SearchBudgets, SearchFailed, SearchSettings
from query_api.settings import SearchBudgetSettings
from schemas.search import SearchRequest
from schemas.settings import EmbeddingSettings

COLLECT_EVERY = (10_000, 10, 10)  # a search leaves fewer objects; Python's own 700 cost it .4 ms
NOT_LOADED = ""


class LoadedEngine:
    """The stores, the search and the model as they are."""

    def __init__(self) -> None:
        self._texts = TextCache()
        self._judge = fitted_judge().for_model(NOT_LOADED)  # what needs no model is answered before it is there
        self._reranker: ServedReranker | None = None

    def load_encoder(self, settings: EmbeddingSettings, data_dir: Path) -> PromptedEncoder:
        """The garbage collector rests meanwhile, which saves a fifth of the time, and from then on passes over the
        objects the model's libraries have made, and looks more seldom: its pauses were paid by searches."""
        gc.disable()
        try:
            encoder = load_encoder(settings, kept_manifest(data_dir))
            with suppress(EncoderFailure):  # an endpoint that is away is asked again by each search
                encoder.encode_queries(["The first text a model encodes takes longest."])
            self._judge = fitted_judge().for_model(encoder.model if encoder.is_plain else encoder.digest)
            gc.freeze()
            gc.set_threshold(*COLLECT_EVERY)
        finally:
            gc.enable()
        return encoder

    def open_tables(self, generation: Generation, resident_text_bytes: int) -> VectorReader:
        return VectorReader.open(generation, most_text_bytes=resident_text_bytes)

    def newest_graph_file(self, generation: Generation, passed_over: Collection[str] = ()) -> GraphFile | None:
        for file in published_snapshots(generation.snapshots_dir):
            if file.schema == SCHEMA_VERSION and file.name not in passed_over:
                return GraphFile(file.name, file.graph_position, file.checksum)
        return None

    def build_graph(self, generation: Generation, file: GraphFile | None) -> GraphView:
        if file is None:
            return GraphView.empty()
        return GraphView.build(read_graph(generation.snapshots_dir / file.name, file.checksum), file.position)

    def damage_of(self, generation: Generation) -> Iterator[list[Damage]]:
        return damage_of(generation)

    def is_in_index(self, damage: Damage) -> bool:
        return is_in_tables(damage, INDEX_TABLES)

    def snapshot(
        self, generation: Generation, reader: VectorReader, graph: GraphView, documents_topic: str
    ) -> Snapshot:
        text = reader.snapshot()
        in_memory = text.holds_texts and text.resident.vectors is not None
        return Snapshot(generation.name, text, graph, documents_topic, in_memory)

    def rerank_by(self, reranker: ServedReranker) -> None:
        self._reranker = reranker

    def reranks(self, request: SearchRequest) -> bool:
        return self._reranker is not None and asks_reranker(request)

    async def search(
        self,
        request: SearchRequest,
        retrieval_id: str,
        snapshot: Snapshot,
        encoder: QueryEncoder,
        executor: Executor,
        budgets: SearchBudgetSettings,
    ) -> AsyncGenerator[SearchPart, None]:
        settings = SearchSettings(
            budgets=SearchBudgets(**budgets.model_dump()), judge=self._judge, reranker=self._reranker
        )
        if not tables_of(snapshot).holds_texts:
            snapshot = replace(snapshot, text=CachedText(snapshot.text, self._texts))
        parts = search(request, retrieval_id, snapshot, encoder, executor, settings)
        try:
            async with aclosing(cast("AsyncGenerator[SearchPart, None]", parts)):
                async for part in parts:
                    yield part
        except SearchFailed as error:
            raise SearchUnanswered(str(error)) from error
