"""What extraction costs beside embedding: the same documents ingested with the default extractors and with none.

`python -m tests.bench.knowledge_graph.ingest_ratio [--corpus FOLDER] [--documents 1000]`

Batches as large as the worker's commits take all of its steps but Kafka: prepare, encode and tag, link, the tables, the
graph. Each batch is taken twice, into stores of its own each time: with extraction, and as a collection whose extractor
is `none`; in turn the one goes first. Seconds by stage are the processor's, of all threads; the last line is JSON.
"""

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import PreparationTask, decode_prepared, encode_task, prepare_bytes
from indexer.documents import PreparedDocument
from indexer.embedding.backends import load_encoder
from indexer.embedding.encoder import EncodedText, PromptedEncoder, text_hash
from indexer.extraction.entity_mentions import decode_spans, encode_spans, entity_mentions
from indexer.extraction.mention_tagger import tag_with
from indexer.generation_folders import open_generation
from indexer.graph.store import GraphStore
from indexer.linking import contribution
from indexer.runtime.resources import tune_gc
from indexer.schema import DocumentRow
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import LanceWriter
from schemas.events import DocumentUpsert
from schemas.graph_delta import decode_contribution, encode_contribution
from schemas.ids import DocumentKey
from schemas.settings import EmbeddingSettings
from streams.app import GC_THRESHOLDS
from tests.bench.bench import commit, machine, say
from tests.bench.corpora import read_corpus
from tests.support.fixtures.manifest import MANIFEST

COMMIT_DOCUMENTS, COMMIT_BYTES = 500, 512 * 1024  # the worker's defaults
GRAPH_DOCUMENTS = 500
TIMESTAMP_MS = 1_700_000_000_000

Result = TypeVar("Result")


@dataclass
class Ingest:
    """One installation's share of the work, and the seconds that its stages took."""

    tables: LanceWriter
    graph: GraphStore
    encoder: PromptedEncoder
    extracts: bool
    processor: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    wall: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    documents: int = 0
    chunks: int = 0
    contributions: list[bytes] = field(default_factory=list)

    @classmethod
    def open(cls, data_dir: Path, encoder: PromptedEncoder, extracts: bool) -> "Ingest":
        manifest = msgspec.structs.replace(MANIFEST, embedding_digest=encoder.digest, dimension=encoder.dimension)
        generation = open_generation(data_dir, manifest)
        return cls(LanceWriter.open(generation, encoder.dimension), GraphStore.open(generation), encoder, extracts)

    def take(self, batch: Sequence[DocumentUpsert]) -> None:
        prepared = self._timed("prepare", lambda: [self._prepared(each) for each in batch])
        encoded = self._timed(
            "encode", lambda: self._encoded([one for each in prepared for one in each.embedding_texts])
        )
        left = iter(encoded)
        of_documents = [list(islice(left, len(each.embedding_texts))) for each in prepared]
        pairs = list(zip(prepared, of_documents, strict=True))
        self.contributions += self._timed("link", lambda: [_contribution(*each) for each in pairs])
        self._timed("tables", lambda: self.tables.replace([self._rows(*each) for each in pairs]))
        if len(self.contributions) >= GRAPH_DOCUMENTS:
            self.apply()

    def apply(self) -> None:
        """What was contributed, into the graph."""
        while self.contributions:
            part, self.contributions = self.contributions[:GRAPH_DOCUMENTS], self.contributions[GRAPH_DOCUMENTS:]
            self._timed("graph", lambda part=part: self._apply(part))  # type: ignore[misc]

    def close(self) -> None:
        self.tables.close()

    def _timed(self, stage: str, work: Callable[[], Result]) -> Result:
        began = time.process_time(), time.perf_counter()
        result = work()
        self.processor[stage] += time.process_time() - began[0]
        self.wall[stage] += time.perf_counter() - began[1]
        return result

    def _prepared(self, upsert: DocumentUpsert) -> PreparedDocument:
        return decode_prepared(
            prepare_bytes(encode_task(PreparationTask(upsert, ChunkingParameters(), extracts=self.extracts)))
        )

    def _encoded(self, texts: Sequence[str]) -> list[EncodedText]:
        self.chunks += len(texts)
        tag = tag_with(self.encoder) if self.extracts else None
        if tag is None:
            return [EncodedText(vector) for vector in self.encoder.encode(texts)]
        vectors, spans = tag(texts)
        return [EncodedText(vector, encode_spans(of_text)) for vector, of_text in zip(vectors, spans, strict=True)]

    def _rows(self, prepared: PreparedDocument, encoded: Sequence[EncodedText]) -> IndexedRows:
        self.documents += 1
        row = DocumentRow.from_prepared(
            prepared, version=None, partition=0, offset=self.documents, timestamp_ms=TIMESTAMP_MS
        )
        hashes = tuple(map(text_hash, prepared.embedding_texts))
        return IndexedRows(row, prepared, _vectors(encoded), hashes, tuple(each.spans for each in encoded))

    def _apply(self, part: Sequence[bytes]) -> None:
        decoded = map(decode_contribution, part)
        changes = [(DocumentKey(each.collection, each.document_id), each) for each in decoded]
        self.graph.apply(changes, self.documents)


def _vectors(encoded: Sequence[EncodedText]) -> NDArray[np.float32]:
    return np.asarray([each.vector for each in encoded], dtype=np.float32)


def _contribution(prepared: PreparedDocument, encoded: Sequence[EncodedText]) -> bytes:
    spans = [decode_spans(each.spans) for each in encoded if each.spans is not None]
    entities = entity_mentions(prepared, spans) if spans else None
    return encode_contribution(contribution(prepared, _vectors(encoded), entities=entities))


def _batches(documents: Iterable[DocumentUpsert]) -> Iterator[list[DocumentUpsert]]:
    batch: list[DocumentUpsert] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document.content)
        if len(batch) == COMMIT_DOCUMENTS or size >= COMMIT_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def measure(documents: Sequence[DocumentUpsert], encoder: PromptedEncoder, folder: Path) -> dict[str, Any]:
    sides = [Ingest.open(folder / name, encoder, extracts) for name, extracts in (("none", False), ("default", True))]
    for number, batch in enumerate(_batches(documents)):
        for side in sides if number % 2 else reversed(sides):
            side.take(batch)
    for side in sides:
        side.apply()
        side.close()
    without, extracting = sides
    return {
        "processor_ratio": round(sum(without.processor.values()) / sum(extracting.processor.values()), 3),
        "wall_ratio": round(sum(without.wall.values()) / sum(extracting.wall.values()), 3),
        "processor_seconds": {
            stage: {"none": round(without.processor[stage], 2), "default": round(seconds, 2)}
            for stage, seconds in extracting.processor.items()
        },
        "wall_seconds": [round(sum(side.wall.values()), 1) for side in sides],
        "documents": len(documents),
        "chunks": extracting.chunks,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a BEIR-style folder; without it, the shipped sample is repeated")
    parser.add_argument("--documents", type=int, default=1_000)
    arguments = parser.parse_args()
    corpus = read_corpus(arguments.corpus)
    encoder = load_encoder(EmbeddingSettings())
    tune_gc(GC_THRESHOLDS)
    first, *others = corpus.documents[: arguments.documents + 1]
    with tempfile.TemporaryDirectory() as folder:
        measure([first], encoder, Path(folder) / "first")  # wakes everything up
        say(f"ingesting {len(others)} documents of {corpus.name} twice ...")
        figures = measure(others, encoder, Path(folder) / "measured")
    about = {"corpus": corpus.name, "encoder": encoder.provider, "machine": machine(), "commit": commit()}
    print(json.dumps(figures | about))


if __name__ == "__main__":
    main()
