"""Stores of a benchmark: a generation written in this process by the project's own writers."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from indexer.chunking.splitter import ChunkingParameters
from indexer.documents import PreparedDocument
from indexer.embedding.encoder import Encoder
from indexer.generation_folders import Generation, Manifest, current_generation, open_generation
from indexer.graph.store import GraphStore
from indexer.linking import contribution
from indexer.schema import DocumentRow, StoredPosition
from indexer.write.lance_maintenance import MaintenanceParameters
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import LanceWriter
from schemas.ids import sha256_hex
from schemas.settings import EmbeddingSettings

BATCH = 1_000  # documents
SPREAD = 0.4  # length of what is added to a unit vector: the cosine with its model is .93

Grown = Iterable[tuple[int, int, PreparedDocument]]


def open_stores(data_dir: Path, documents: Grown, encoder: Encoder) -> Generation:
    """The generation there, or a new one with these documents. Indexes are made as the worker makes them."""
    kept = current_generation(data_dir)
    if kept is not None and (data_dir / "complete").exists():
        return kept
    chunking = ChunkingParameters()
    generation = open_generation(
        data_dir,
        Manifest(
            generation="g0001",
            embedding_provider=encoder.provider,
            embedding_model=EmbeddingSettings().model,
            embedding_digest=encoder.digest,
            dimension=encoder.dimension,
            chunk_characters=chunking.chunk_characters,
            chunk_overlap=chunking.chunk_overlap,
            passage_characters=chunking.passage_characters,
            passage_overlap=chunking.passage_overlap,
            extractor="rules-1",
        ),
    )
    maintenance = MaintenanceParameters(busy_share=1.0, idle_seconds=0.0, load_seconds=0.0)
    tables, graph = LanceWriter.open(generation, encoder.dimension, maintenance), GraphStore.open(generation)
    try:
        models: dict[int, NDArray[np.float32]] = {}
        position = -1
        for batch in _batches(documents):
            rows = [
                _rows(prepared, _vectors(turn, number, prepared, models, encoder)) for turn, number, prepared in batch
            ]
            tables.replace([_at(row, position + 1 + at) for at, row in enumerate(rows)])
            changes = [
                (row.prepared.key, contribution(row.prepared, row.vectors))
                for row in rows
                if row.prepared is not None and row.vectors is not None
            ]
            position += len(batch)
            graph.apply(changes, position)
        tables.store_positions({0: StoredPosition(position, position)})
        graph.snapshot()
        while (done := tables.maintain()).optimised or done.indexed:
            pass
    finally:
        tables.close()
    (data_dir / "complete").touch()
    return generation


def _batches(documents: Grown) -> Iterator[list[tuple[int, int, PreparedDocument]]]:
    left = iter(documents)
    while batch := list(islice(left, BATCH)):
        yield batch


def _vectors(
    turn: int, number: int, prepared: PreparedDocument, models: dict[int, NDArray[np.float32]], encoder: Encoder
) -> NDArray[np.float32]:
    """(n_chunks, dimension): encoded in the first round, near those of the first round in the others."""
    if not turn:
        models[number] = encoder.encode(prepared.embedding_texts)
        return models[number]
    model = models[number]
    count, dimension = len(prepared.embedding_texts), model.shape[1]
    moved = np.random.default_rng((turn, number)).normal(scale=SPREAD / dimension**0.5, size=(count, dimension))
    vectors = model[np.arange(count) % len(model)] + moved.astype(np.float32)
    normalised: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return normalised


def _rows(prepared: PreparedDocument, vectors: NDArray[np.float32]) -> IndexedRows:
    row = DocumentRow.from_prepared(
        prepared,
        version=None,
        partition=0,
        offset=0,
        timestamp_ms=1_700_000_000_000,
    )
    return IndexedRows(row, prepared, vectors, [sha256_hex(text.encode())[:32] for text in prepared.embedding_texts])


def _at(rows: IndexedRows, offset: int) -> IndexedRows:
    return replace(rows, row=replace(rows.row, offset=offset))
