"""Doubles for the worker's ports: a vector store and a broker in memory, and parts that fail when told."""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from indexer.changes import Commit
from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.documents import PreparedDocument
from indexer.embedding.encoder import EncodedText, HashingEncoder
from indexer.errors import TransientStoreError, UnparsableDocument
from indexer.extraction.extractor import Extractor
from indexer.graph.store import InGraph, contributed
from indexer.linking import DEFAULT_RULES, LinkingRules
from indexer.schema import DocumentRow, StoredPosition
from indexer.write.lance_rows import IndexedRows
from indexer.write.lance_writer import _is_equal
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey, Position
from schemas.receipts import Receipt, decode_receipt
from schemas.settings import LimitSettings
from schemas.topics import TopicNames
from streams.indexing.batch import DocumentsTopic
from streams.indexing.commit import DocumentIndexer
from streams.indexing.document_steps import Choices, DecodedEvent
from streams.indexing.embed import DocumentBuilder, EncoderThread
from streams.indexing.extract import ExtractorThreads
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import SourceRecord
from streams.runtime.partition_progress import Progress
from streams.runtime.store_thread import StoreThread
from streams.worker_metrics import WorkerMetrics
from tests.support.contributions import Logged, commits_of, graph_of

NAMES = TopicNames("t.")
GENERATION = "g0001"
CONTRIBUTIONS = NAMES.contributions(GENERATION)


class PowerCut(BaseException):
    """The process ends here: nothing after it runs, nobody catches it."""


@dataclass
class InMemoryDocuments:
    """A vector store that holds what the real one would. `failing` is called before each write with its name."""

    rows: dict[DocumentKey, DocumentRow] = field(default_factory=dict)
    chunks: dict[DocumentKey, tuple[str, ...]] = field(default_factory=dict)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    stored: dict[int, StoredPosition] = field(default_factory=dict)
    failing: Callable[[str], None] = lambda _call: None
    refusing: Callable[[Sequence[IndexedRows]], None] = lambda _documents: None
    writes: list[str] = field(default_factory=list)

    def positions(self) -> dict[int, StoredPosition]:
        return dict(self.stored)

    def stored_documents(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, DocumentRow]:
        return {key: self.rows[key] for key in keys if key in self.rows}

    def live_keys(self, partition: int, offset: int) -> list[DocumentKey]:
        return [
            row.key for row in self.rows.values() if row.live and row.partition == partition and row.offset <= offset
        ]

    def known_vectors(self, hashes: Sequence[str]) -> dict[str, EncodedText]:
        return {digest: EncodedText(self.vectors[digest]) for digest in hashes if digest in self.vectors}

    def live_positions(self, collection: str | None = None) -> dict[DocumentKey, Position]:
        return {
            row.key: Position(row.partition, row.offset)
            for row in self.rows.values()
            if row.live and collection in (None, row.key.collection)
        }

    def replace(self, documents: Sequence[IndexedRows]) -> None:
        self.failing("replace")
        self.refusing(documents)
        self.writes.append("replace")
        for document in documents:
            key = document.row.key
            self.rows[key] = document.row
            if document.prepared is not None:
                assert document.vectors is not None
                self.chunks[key] = tuple(chunk.id for chunk in document.prepared.chunked.chunks)
                self.vectors |= dict(zip(document.hashes, document.vectors, strict=True))
            elif document.row.deleted_at_ms is not None:
                self.chunks.pop(key, None)
        self.failing("after replace")

    def rewrite(self, documents: Sequence[IndexedRows]) -> None:
        self.failing("rewrite")
        self.replace(documents)

    def equal_to_stored(self, documents: Sequence[IndexedRows]) -> set[DocumentKey]:
        return {document.row.key for document in documents if self._holds(document)}

    def _holds(self, document: IndexedRows) -> bool:
        if not _is_equal(document.row, self.rows.get(document.row.key)):
            return False
        made = document.prepared.chunked.chunks if document.prepared is not None else ()
        return not document.row.live or self.chunks.get(document.row.key) == tuple(chunk.id for chunk in made)

    def store_positions(self, reached: Mapping[int, StoredPosition]) -> None:
        self.failing("store_positions")
        self.stored |= reached
        self.failing("after store_positions")


@dataclass
class InMemoryBroker:
    """Takes records as Faust's producer does. `failing` may raise for a topic before a record is taken."""

    topics: dict[str, list[tuple[bytes | None, bytes | None, int | None, list[tuple[str, bytes]]]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    failing: Callable[[str, bytes | None], None] = lambda _topic, _value: None

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: list[tuple[str, bytes]] | None,
    ) -> Awaitable[Any]:
        self.failing(topic, value)
        self.topics[topic].append((key, value, partition, headers or []))
        confirmed: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        confirmed.set_result(SimpleNamespace(offset=len(self.topics[topic]) - 1))
        return confirmed

    def receipts(self) -> list[Receipt]:
        return [decode_receipt(value or b"") for _, value, _, _ in self.topics[NAMES.indexed]]

    def outcomes(self) -> list[str]:
        return [receipt.outcome for receipt in self.receipts()]

    def letters(self) -> list[dict[str, str]]:
        return [{name: value.decode() for name, value in headers} for *_, headers in self.topics[NAMES.dead_letters]]

    def commits(self) -> list[Commit[Logged]]:
        return commits_of((key, value) for key, value, *_ in self.topics[CONTRIBUTIONS])

    def graph(self) -> dict[str, bytes]:
        """What a reader of all contributions ends up with: the live contribution of each document."""
        return graph_of(self.commits())


@dataclass
class StoresInMemory:
    """What the graph has is what was contributed, but for the documents that are `lost` to it."""

    documents: InMemoryDocuments
    broker: InMemoryBroker
    lost: set[DocumentKey] = field(default_factory=set)

    async def graph_caught_up(self) -> None:
        """It always is."""

    async def in_graph(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, InGraph]:
        found = contributed({DocumentKey.parse(key): value for key, value in self.broker.graph().items()})
        return {key: each for key, each in found.items() if key in keys and key not in self.lost}

    async def out_of_step(self) -> dict[DocumentKey, Position | None]:
        live = self.documents.live_positions()
        in_graph = await self.in_graph([DocumentKey.parse(key) for key in self.broker.graph()])
        return {key: live.get(key) for key in live.keys() ^ in_graph.keys()}


class ChokingPreparer:
    """Prepares in this process; refuses content that says "unparsable", breaks on content that says "bug".

    `prepared` are the keys it was given, in order; content that says "slow" waits for ever.
    """

    def __init__(self) -> None:
        self.prepared: list[str] = []
        self.cancelled: list[str] = []

    async def __call__(self, event: DecodedEvent) -> PreparedDocument:
        upsert = event.upsert
        self.prepared.append(str(upsert.key))
        if b"slow" in upsert.content:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.append(str(upsert.key))
                raise
        if b"unparsable" in upsert.content:
            raise UnparsableDocument("unparsable", "It says so itself.")
        if b"bug" in upsert.content:
            raise KeyError("a bug of ours, met by this document only")
        return prepare(upsert, event.chunking or ChunkingParameters(), event.revision, extracts=event.extracts)


@dataclass
class ChosenInMemory:
    """How collections are cut and extracted; a story changes it between two commits."""

    chunking: dict[str, ChunkingParameters] = field(default_factory=dict)
    extractors: dict[str, str] = field(default_factory=dict)

    @property
    def known(self) -> Choices:
        return Choices(dict(self.chunking), dict(self.extractors))

    async def current(self) -> Choices:
        return self.known


class CountingEncoder(HashingEncoder):
    """Counts texts; fails for texts that hold `poison`, and for every text the first `failures_left` times."""

    def __init__(self) -> None:
        self.encoded: list[str] = []
        self.failures_left = 0

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.failures_left:
            self.failures_left -= 1
            raise RuntimeError("the model is out of memory")
        if any("poison" in text for text in texts):
            raise RuntimeError("the model chokes on one of these")
        self.encoded += texts
        return super().encode(texts)


@dataclass
class Bench:
    """An indexer on doubles. `restarted` is a new process on the same store and broker."""

    documents: InMemoryDocuments = field(default_factory=InMemoryDocuments)
    broker: InMemoryBroker = field(default_factory=InMemoryBroker)
    encoder: CountingEncoder = field(default_factory=CountingEncoder)
    metrics: WorkerMetrics = field(default_factory=WorkerMetrics)
    progress: Progress = field(default_factory=Progress)
    preparer: ChokingPreparer = field(default_factory=ChokingPreparer)
    choices: ChosenInMemory = field(default_factory=ChosenInMemory)
    linking: dict[str, LinkingRules] = field(default_factory=dict)
    commit_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    partition_of: Callable[[bytes], int | None] = lambda _key: None
    extractor: Extractor | None = None

    def __post_init__(self) -> None:
        self.thread = StoreThread("lance", self.metrics, self.progress, first_wait_seconds=0.001)
        self.encoding = EncoderThread(
            self.encoder, self.metrics, self.progress, retry_seconds=(0.001, 0.002, 0.004), first_wait_seconds=0.001
        )
        self.extractors = {
            each.version: ExtractorThreads(
                each, self.metrics, self.progress, retry_seconds=(0.001, 0.002, 0.004), reset_seconds=0.001
            )
            for each in (self.extractor,)
            if each is not None
        }
        self.producer = ConfirmedProducer(
            self.broker, NAMES, GENERATION, self.metrics, self.progress, first_wait_seconds=0.001
        )
        self.indexer = DocumentIndexer(
            topic=DocumentsTopic(NAMES.documents, GENERATION, self.partition_of),
            limits=LimitSettings(),
            writer=self.documents,
            thread=self.thread,
            builder=DocumentBuilder(
                self.preparer,
                self.encoding,
                self.thread,
                self.documents,
                encode_texts=2,
                linking_of=lambda collection: self.linking.get(collection, DEFAULT_RULES),
                extractors=self.extractors,
            ),
            producer=self.producer,
            metrics=self.metrics,
            collection_settings=self.choices,
            reached=self.documents.positions(),
            now_ms=lambda: 5_000,
            commit_lock=self.commit_lock,
        )

    def restarted(self) -> "Bench":
        self.close()
        return Bench(self.documents, self.broker, self.encoder)

    def close(self) -> None:
        self.thread.end()
        self.encoding.close()
        for each in self.extractors.values():
            each.close()

    def state(self) -> tuple[Any, ...]:
        """All that must not depend on how the log was cut, or how often it was read."""
        return (dict(self.documents.rows), dict(self.documents.chunks), self.broker.graph())


def upsert(
    offset: int, key: str = "default/a", text: str = "Some text.", partition: int = 0, **envelope: Any
) -> SourceRecord:
    collection, _, document = key.partition("/")
    value = msgspec.json.encode({"id": document, "collection": collection, "content": text, **envelope})
    return SourceRecord(partition, offset, 1_000 + offset, key.encode(), value)


def delete(offset: int, key: str = "default/a", partition: int = 0) -> SourceRecord:
    return SourceRecord(partition, offset, 1_000 + offset, key.encode(), None)


def gap(offset: int, partition: int = 0) -> SourceRecord:
    return SourceRecord(partition, offset, 1_000 + offset, None, None, is_gap=True)


def versioned_delete(offset: int, version: int, key: str = "default/a") -> SourceRecord:
    headers = (("ce_specversion", b"1.0"), ("ce_type", b"page.deleted"), ("ce_sequence", str(version).encode()))
    return SourceRecord(0, offset, 1_000 + offset, key.encode(), b"{}", headers)


def failing_times(times: int, call: str, error: BaseException) -> Callable[[str], None]:
    """Fails the first so many calls of that name."""
    left = [times]

    def fail(name: str) -> None:
        if name == call and left[0]:
            left[0] -= 1
            raise error

    return fail


def disk_full() -> TransientStoreError:
    return TransientStoreError("No space left on device")


def contribution_of(key: str, **fields: Any) -> Contribution:
    collection, _, document = key.partition("/")
    lists = ("sections", "chunks", "about", "mentions", "statements", "edges", "links")
    return Contribution(
        collection=collection,
        document_id=document,
        revision="r1",
        title=document,
        **{**{name: [] for name in lists}, **fields},
    )
