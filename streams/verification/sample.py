"""A sample of the documents, derived again from the log by the generation's own pipeline, beside the stored ones."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np
import pyarrow as pa

from indexer.document_pipeline import EXTRACTOR_VERSION, NO_EXTRACTOR
from indexer.errors import DamagedStore
from indexer.extraction.mention_tagger import tag_with
from indexer.generation_folders import Generation, read_manifest
from indexer.graph.contributions import tables_of
from indexer.graph.snapshots import newest_intact_snapshot, read_graph
from indexer.read.lance_reader import LanceSnapshot
from indexer.read.rows import vector_matrix
from indexer.schema import CHUNKS, PASSAGES, DocumentRow
from indexer.store_verification import document_digests
from indexer.write.lance_rows import IndexedRows, chunks_table, passages_table
from schemas.errors import Failure, MalformedEvent
from schemas.events import decode_document_event
from schemas.graph_delta import Contribution, decode_contribution
from schemas.ids import DocumentKey, Position
from schemas.settings import LimitSettings
from streams.generations.role import WorkerRole
from streams.indexing.document_steps import DecodedEvent, EmbeddedDocument, LinkedDocument, Refused
from streams.indexing.embed import DocumentBuilder, EncoderThread, NoVectors
from streams.indexing.prepare import Parsers, Preparer
from streams.indexing.settings_reader import CollectionChoices
from streams.kafka.records import SourceRecord
from streams.runtime.partition_progress import Progress
from streams.runtime.store_thread import StoreThread
from streams.settings import WorkerSettings
from streams.worker_metrics import Stopwatch, WorkerMetrics

SHOWN = 20
BATCH_DOCUMENTS = 32
MOST_COSINE_LOST = 1e-3  # of a stored vector to the one that is encoded again, perhaps on another processor
# Vectors by their cosines, as another processor rounds otherwise; entities not at all, as they hang on the rounding.
NOT_COMPARED = ("vector", "entities", "checksum", "vector_checksum", "terms_checksum", "entities_checksum")


class SampleReport(msgspec.Struct, frozen=True, kw_only=True):
    """`documents` were derived again; `differing` names at most twenty that are stored otherwise, and how; `keys` are
    all of these."""

    documents: int
    seed: int
    differing_count: int
    differing: tuple[str, ...]
    skipped: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """The report for a person."""
        yield f"sample {self.documents:,} documents derived again (seed {self.seed}), {self.differing_count:,} differ"
        for each in self.differing:
            yield f"derived otherwise: {each}"
        if self.differing_count > len(self.differing):
            yield f"... and {self.differing_count - len(self.differing):,} more"
        yield from self.skipped


class Sample:
    """Documents chosen at random, and the records they came from as far as the log still holds them."""

    def __init__(self, rows: Iterable[DocumentRow], size: int, seed: int) -> None:
        live = sorted((row for row in rows if row.live), key=lambda row: row.key)
        chosen = random.Random(seed).sample(live, min(size, len(live)))
        self.seed = seed
        self.rows = {Position(row.partition, row.offset): row for row in chosen}
        self.records: list[SourceRecord] = []

    def take(self, record: SourceRecord) -> None:
        if record.position in self.rows:
            self.records.append(record)


@asynccontextmanager
async def open_builder(
    settings: WorkerSettings, role: WorkerRole, choices: CollectionChoices
) -> AsyncIterator[DocumentBuilder]:
    """The pipeline of the live generation. Raises EncoderFailure, or IncompatibleGeneration for another model."""
    metrics, progress = WorkerMetrics(), Progress()
    encoder = await asyncio.to_thread(role.load_encoder)
    encoding = EncoderThread(encoder, metrics, progress, tag=tag_with(encoder))
    thread = StoreThread("vectors", metrics, progress)
    parsers = Parsers.open(settings)
    try:
        yield DocumentBuilder(
            Preparer(parsers, encoding, role.chunking).prepare,
            encoding,
            thread,
            NoVectors(),
            linking_of=choices.linking_of,
        )
    finally:
        await parsers.close()
        thread.end()
        encoding.close()


def require_same_pipeline(generation: Generation) -> None:
    """Raises Failure where this program extracts by other rules than the generation was made with."""
    made_with = read_manifest(generation).extractor
    if made_with.partition("+")[0] != EXTRACTOR_VERSION:
        raise Failure(
            f"Generation {generation.name} was made by the rules {made_with}, and this program has "
            f"{EXTRACTOR_VERSION}: what is derived again would differ. 'thalweg rebuild' makes the next generation."
        )


@dataclass(eq=False)
class SampleComparison:
    """Compares documents with the tables of a snapshot, and with the newest snapshot of the graph."""

    builder: DocumentBuilder
    choices: CollectionChoices
    limits: LimitSettings
    generation: Generation
    snapshot: LanceSnapshot
    _differing: dict[DocumentKey, list[str]] = field(default_factory=dict)
    _contributions: dict[DocumentKey, Contribution] = field(default_factory=dict)
    _outdated: int = 0

    async def compare(self, sample: Sample, advance: Callable[[int], None]) -> SampleReport:
        for start in range(0, len(sample.records), BATCH_DOCUMENTS):
            records = sample.records[start : start + BATCH_DOCUMENTS]
            events = [event for record in records if (event := self._decoded(record, sample.rows[record.position]))]
            for position, document in (await self.builder.embed(events, Stopwatch())).items():
                await self._compare(sample.rows[position], document)
            advance(len(records))
        linking_changed = self.choices.changed
        for key in await asyncio.to_thread(_graph_differences, self.generation, self._contributions, linking_changed):
            self._differing.setdefault(key, []).append("its contribution to the graph")
        skipped = []
        if gone := len(sample.rows) - len(sample.records):
            skipped.append(f"{gone:,} others of the sample came from records that compaction has taken")
        if self._outdated:
            skipped.append(
                f"{self._outdated:,} others were made before another chunking or extractor was chosen for them"
            )
        named = [f"{key}: {', '.join(each)}" for key, each in sorted(self._differing.items())]
        return SampleReport(
            documents=len(sample.records) - self._outdated,
            seed=sample.seed,
            differing_count=len(named),
            differing=tuple(named[:SHOWN]),
            skipped=tuple(skipped),
            keys=tuple(map(str, sorted(self._differing))),
        )

    def _decoded(self, record: SourceRecord, row: DocumentRow) -> DecodedEvent | None:
        try:
            event = decode_document_event(record.key, record.value, record.headers, self.limits)
        except MalformedEvent as error:
            self._differing[row.key] = [f"its record is refused now: {error}"]
            return None
        collection = row.key.collection
        decoded = DecodedEvent.from_record(record, event, self.choices.chosen)
        if decoded.revision != row.revision and collection in self.choices.changed:
            self._outdated += 1
            return None
        return decoded

    async def _compare(self, row: DocumentRow, document: EmbeddedDocument | Refused) -> None:
        if isinstance(document, Refused):
            self._differing[row.key] = [f"its record is refused now: {document.error}"]
            return
        found, as_stored = await asyncio.to_thread(_text_differences, self.snapshot, row, document)
        if found:
            self._differing[row.key] = found
        if document.event.extractor not in (None, NO_EXTRACTOR):  # a model need not answer the same again
            return
        for linked in (await self.builder.link([as_stored])).values():
            if isinstance(linked, LinkedDocument):
                self._contributions[row.key] = decode_contribution(linked.contribution)


def _text_differences(
    snapshot: LanceSnapshot, row: DocumentRow, document: EmbeddedDocument
) -> tuple[list[str], EmbeddedDocument]:
    """What is stored otherwise; and the document with the stored vectors and entities, the derived ones where those do
    not fit."""
    (stored,) = snapshot.documents([row.key])
    prepared = document.prepared
    derived = DocumentRow.from_prepared(
        prepared,
        version=stored.version,
        partition=stored.partition,
        offset=stored.offset,
        timestamp_ms=stored.timestamp_ms,
        other_partitions=stored.other_partitions,
    )
    found = [name for name in vars(derived) if getattr(derived, name) != getattr(stored, name)]
    rows = IndexedRows(derived, prepared, document.vectors, document.hashes, document.spans)
    as_stored = document
    for name, expected in ((PASSAGES, passages_table([rows])), (CHUNKS, chunks_table([rows], snapshot.dimension))):
        try:
            tables = list(
                snapshot.rows_of_documents(
                    name, expected.schema.names, {str(row.key): row.revision or ""}, {str(row.key): expected.num_rows}
                )
            )
        except DamagedStore as error:
            found.append(f"{name} ({error})")
            continue
        actual = pa.concat_tables(tables).sort_by("ordinal") if tables else expected.schema.empty_table()
        found += [f"{column} of its {name}" for column in _differing_columns(expected, actual)]
        if name == CHUNKS and actual.num_rows == expected.num_rows and actual.num_rows:
            vectors = vector_matrix(actual)
            as_stored = replace(document, vectors=vectors, spans=tuple(actual["entities"].to_pylist()))
            cosines = np.einsum("ij,ij->i", vectors, document.vectors, dtype=np.float64)
            if (lost := 1.0 - float(cosines.min())) > MOST_COSINE_LOST:
                found.append(f"a vector, by {lost:.3f} of its cosine")
    return found, as_stored


def _differing_columns(expected: pa.Table, actual: pa.Table) -> list[str]:
    compared = [name for name in expected.schema.names if name not in NOT_COMPARED]
    return [name for name in compared if expected[name].to_pylist() != actual[name].to_pylist()]


def _graph_differences(
    generation: Generation, contributions: Mapping[DocumentKey, Contribution], relinked: Collection[str]
) -> list[DocumentKey]:
    """The documents whose part of the graph is not what their contributions make of an empty one. Edges between chunks
    are left out where a collection's linking was changed; documents of another revision are, as well."""
    newest = newest_intact_snapshot(generation.snapshots_dir)
    if newest is None or not contributions:
        return []
    graph = read_graph(generation.snapshots_dir, newest)
    found = document_digests(graph, contributions, relinked)
    derived = document_digests(tables_of(contributions.values()), contributions, relinked)
    return [
        key
        for key, (revision, digest) in derived.items()
        if key in found and found[key] != (revision, digest) and found[key][0] == revision
    ]
