"""Steps 3 to 5 of the commit: parse and chunk in limited child processes, embed in one thread, link in another.

Nothing is stored here, and what a document becomes depends on its event alone. So all of it may be repeated, and steps
3 and 4 may run ahead of a batch's turn.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from indexer.chunking.semantic import topic_boundaries
from indexer.chunking.splitter import ChunkingParameters
from indexer.documents import PreparedDocument
from indexer.embedding.encoder import text_hash
from indexer.linking import DEFAULT_RULES, LinkingRules, contribution
from indexer.pipeline import decode_prepared, decode_sentences, encode_sentences_task, encode_task, revision_of
from indexer.runtime.resources import usable_processors
from indexer.sandbox.sandbox import Sandbox, SandboxFailure, SandboxLimits
from schemas.errors import MalformedEvent
from schemas.events import DEFAULT_CONTENT_TYPE, DocumentDelete, DocumentEvent, DocumentUpsert
from schemas.graph_delta import encode_contribution
from schemas.ids import DocumentKey, Position
from streams.errors import ParserFailure
from streams.indexing.embed import EncoderThread, WithoutVector
from streams.kafka.records import SourceRecord, Stage
from streams.metrics import Stopwatch
from streams.runtime.store_thread import StoreThread
from streams.settings import WorkerSettings

FIRST_SHARE = 8  # of the usual number of texts: the first group is soon parsed, and until then the encoder is idle
RECENT_VECTORS = 16_384  # 25 MB of 384 numbers each
_TASK = "indexer.pipeline:prepare_bytes"
_MOST_PARSERS_BY_DEFAULT = 2
_WARM_UP = DocumentUpsert(
    key=DocumentKey("warm-up", "1"), content=b"# Warm-up\n\nA few words.", content_type=DEFAULT_CONTENT_TYPE
)

Vector = NDArray[np.float32]  # (dimension,), L2-normalised


@dataclass(frozen=True)
class DecodedEvent:
    """A record and its event. `revision` is None for a delete; `chunking` is None where its collection chose none."""

    record: SourceRecord
    event: DocumentEvent
    revision: str | None
    chunking: ChunkingParameters | None = None

    @classmethod
    def of(
        cls, record: SourceRecord, event: DocumentEvent, chunking: ChunkingParameters | None = None
    ) -> "DecodedEvent":
        revision = revision_of(event, chunking) if isinstance(event, DocumentUpsert) else None
        return cls(record, event, revision, chunking)

    @property
    def key(self) -> DocumentKey:
        return self.event.key

    @property
    def upsert(self) -> DocumentUpsert:
        """Raises TypeError for a delete."""
        if isinstance(self.event, DocumentDelete):
            raise TypeError(f"{self.key} is deleted by {self.position}; there is nothing to prepare.")
        return self.event

    @property
    def position(self) -> Position:
        return self.record.position

    @property
    def timestamp_ms(self) -> int:
        return self.record.timestamp_ms

    @property
    def version(self) -> int | None:
        return self.event.version

    @property
    def deletes(self) -> bool:
        return isinstance(self.event, DocumentDelete)


@dataclass(frozen=True)
class EmbeddedDocument:
    """`vectors` is (n_chunks, dimension); `encoded` counts the texts that were encoded for this document."""

    event: DecodedEvent
    prepared: PreparedDocument
    hashes: tuple[str, ...]
    vectors: NDArray[np.float32]
    encoded: int


@dataclass(frozen=True)
class BuiltDocument:
    """A document ready to be stored, and what it contributes to the graph."""

    embedded: EmbeddedDocument
    contribution: bytes
    entities: int
    statements: int

    @property
    def event(self) -> DecodedEvent:
        return self.embedded.event

    @property
    def prepared(self) -> PreparedDocument:
        return self.embedded.prepared


@dataclass(frozen=True)
class Refused:
    """An event that no retry can help, and the stage in which that showed."""

    event: DecodedEvent
    stage: Stage
    error: Exception


class Parsers:
    """Child processes that parse and chunk. Methods raise UnparsableDocument, or ParserFailure when no document is to
    blame."""

    def __init__(self, sandbox: Sandbox, processes: int, max_metadata_bytes: int) -> None:
        self._sandbox = sandbox
        self._processes = processes
        self._max_metadata_bytes = max_metadata_bytes

    @classmethod
    def open(cls, settings: WorkerSettings) -> "Parsers":
        worker = settings.worker
        limits = SandboxLimits(
            cpu_seconds=worker.parser_cpu_seconds,
            wall_seconds=worker.parser_wall_seconds,
            memory_bytes=worker.parser_memory_bytes,
            output_bytes=worker.parser_output_bytes,
        )
        processes = worker.parsers or min(_MOST_PARSERS_BY_DEFAULT, usable_processors())
        return cls(Sandbox(_TASK, limits, processes=processes), processes, settings.limits.max_metadata_bytes)

    async def warm_up(self) -> None:
        """Start every child, so that the first document does not wait for it."""
        task = encode_task(_WARM_UP, ChunkingParameters())
        await asyncio.gather(*(self._run(task) for _ in range(self._processes)))

    async def sentences(self, upsert: DocumentUpsert, chunking: ChunkingParameters) -> list[list[str]]:
        """The sentences of each section."""
        return decode_sentences(await self._run(encode_sentences_task(upsert, chunking)))

    async def prepare(
        self, upsert: DocumentUpsert, chunking: ChunkingParameters, revision: str | None, boundaries: Sequence[int]
    ) -> PreparedDocument:
        return decode_prepared(
            await self._run(encode_task(upsert, chunking, revision, boundaries, self._max_metadata_bytes))
        )

    async def _run(self, task: bytes) -> bytes:
        try:
            return await self._sandbox.run(task)
        except SandboxFailure as failure:
            raise ParserFailure(str(failure)) from failure

    async def close(self) -> None:
        await self._sandbox.close()


class Preparer:
    """Step 3 for one document: parsed and chunked as its collection has chosen."""

    def __init__(self, parsers: Parsers, encoder: EncoderThread, defaults: ChunkingParameters) -> None:
        self._parsers = parsers
        self._encoder = encoder
        self._defaults = defaults

    async def prepare(self, event: DecodedEvent) -> PreparedDocument:
        """For semantic chunking the sentences are embedded first, and boundaries found by their vectors.

        Raises UnparsableDocument, or WithoutVector for a sentence that the encoder cannot take.
        """
        chunking = event.chunking or self._defaults
        boundaries: list[int] = []
        if chunking.method == "semantic":
            sections = await self._parsers.sentences(event.upsert, chunking)
            vectors = await self._encoder.encode(list(chain.from_iterable(sections)))
            failure = next((vector for vector in vectors if isinstance(vector, Exception)), None)
            if failure is not None:
                raise WithoutVector("sentences", failure)
            array = np.asarray(vectors, dtype=np.float32)
            boundaries = await self._encoder.compute(
                lambda: topic_boundaries([len(section) for section in sections], array)
            )
        return await self._parsers.prepare(event.upsert, chunking, event.revision, boundaries)


class VectorLookup(Protocol):
    """The part of the vector store that spares encoding a text again."""

    def known_vectors(self, hashes: Sequence[str]) -> dict[str, Vector]: ...


@dataclass(frozen=True)
class _Group:
    """Parsed documents whose texts are encoded together, and the stored vectors of these texts by hash."""

    documents: list[tuple[DecodedEvent, PreparedDocument, tuple[str, ...]]]
    refused: list[Refused]
    stored: dict[str, Vector]


class DocumentBuilder:
    """From events to documents ready to be stored."""

    def __init__(
        self,
        prepare: Callable[[DecodedEvent], Awaitable[PreparedDocument]],
        encoder: EncoderThread,
        thread: StoreThread,
        lookup: VectorLookup,
        *,
        encode_texts: int,
        max_contribution_bytes: int,
        linking_of: Callable[[str], LinkingRules] = lambda _collection: DEFAULT_RULES,
    ) -> None:
        """About `encode_texts` texts are encoded at a time; `linking_of` gives a collection's rules."""
        self._prepare = prepare
        self._encoder = encoder
        self._encoder_turn = asyncio.Lock()
        self._thread = thread
        self._lookup = lookup
        self._recent: LRUCache[str, Vector] = LRUCache(RECENT_VECTORS)  # of batches that may not be stored yet
        self._encode_texts = encode_texts
        self._max_contribution_bytes = max_contribution_bytes
        self._linking_of = linking_of

    async def embed(
        self, events: Sequence[DecodedEvent], watch: Stopwatch
    ) -> dict[Position, EmbeddedDocument | Refused]:
        """Steps 3 and 4 for upserts; a group is encoded while the next ones are parsed.

        May be called for several batches at once: the encoder takes one after the other, in the order of the calls.
        """
        if not events:
            return {}
        groups: asyncio.Queue[_Group | None] = asyncio.Queue()
        parsing = asyncio.create_task(self._parse(events, groups))
        embedded: dict[Position, EmbeddedDocument | Refused] = {}
        try:
            async with self._encoder_turn:
                watch.restart()
                while (group := await groups.get()) is not None:
                    watch.lap("prepare")
                    embedded |= await self._embed(group)  # 4
                    watch.lap("embed")
            await parsing
        finally:
            parsing.cancel()
        return embedded

    async def _parse(self, events: Sequence[DecodedEvent], groups: asyncio.Queue[_Group | None]) -> None:
        """Put the events in groups, in their order, and None after the last."""
        tasks = [asyncio.create_task(self._parsed(event)) for event in events]
        try:
            documents: list[tuple[DecodedEvent, PreparedDocument, tuple[str, ...]]] = []
            refused: list[Refused] = []
            texts, enough = 0, self._encode_texts // FIRST_SHARE
            for event, task in zip(events, tasks, strict=True):
                parsed = await task  # 3
                if isinstance(parsed, Refused):
                    refused.append(parsed)
                else:
                    documents.append((event, parsed, tuple(map(text_hash, parsed.embedding_texts))))
                    texts += len(parsed.embedding_texts)
                if task is tasks[-1] or texts >= enough:
                    hashes = {digest for _, _, hashes in documents for digest in hashes if digest not in self._recent}
                    stored = await self._thread.run(self._lookup.known_vectors, list(hashes)) if hashes else {}
                    groups.put_nowait(_Group(documents, refused, stored))
                    documents, refused, texts, enough = [], [], 0, self._encode_texts
        finally:
            for task in tasks:
                task.cancel()
            groups.put_nowait(None)

    async def _parsed(self, event: DecodedEvent) -> PreparedDocument | Refused:
        try:
            return await self._prepare(event)
        except MalformedEvent as error:
            return Refused(event, "embed" if isinstance(error, WithoutVector) else "prepare", error)

    async def _embed(self, group: _Group) -> dict[Position, EmbeddedDocument | Refused]:
        texts = {
            digest: text
            for _, prepared, hashes in group.documents
            for digest, text in zip(hashes, prepared.embedding_texts, strict=True)
        }
        known = group.stored | {digest: self._recent[digest] for digest in texts if digest in self._recent}
        missing = [digest for digest in texts if digest not in known]
        encoded = await self._encoder.encode([texts[digest] for digest in missing])
        vectors: dict[str, Vector | Exception] = {**known, **dict(zip(missing, encoded, strict=True))}
        fresh = set(missing)
        embedded: dict[Position, EmbeddedDocument | Refused] = {
            refused.event.position: refused for refused in group.refused
        }
        for event, prepared, hashes in group.documents:
            found = [vectors[digest] for digest in hashes]
            failure = next((vector for vector in found if isinstance(vector, Exception)), None)
            if failure is not None:
                embedded[event.position] = Refused(event, "embed", WithoutVector("chunks", failure))
                continue
            count = len(fresh.intersection(hashes))
            fresh.difference_update(hashes)
            embedded[event.position] = EmbeddedDocument(
                event, prepared, hashes, np.asarray(found, dtype=np.float32), count
            )
        self._recent.update({digest: v for digest, v in vectors.items() if not isinstance(v, Exception)})
        return embedded

    async def link(self, documents: Sequence[EmbeddedDocument]) -> tuple[list[BuiltDocument], list[Refused]]:
        """Step 5: edges within each document, by its collection's rules of now, and its whole contribution."""
        built: list[BuiltDocument] = []
        refused: list[Refused] = []
        for document in await self._encoder.compute(lambda: [self._linked(each) for each in documents]):
            size = len(document.contribution)
            if size <= self._max_contribution_bytes:
                built.append(document)
                continue
            error = MalformedEvent(
                "too_large_for_graph",
                f"What the document adds to the graph takes {size:,} bytes; the limit is "
                f"{self._max_contribution_bytes:,}. Split the document or raise THALWEG_KAFKA__MAX_GRAPH_RECORD_BYTES.",
            )
            refused.append(Refused(document.event, "link", error))
        return built, refused

    def _linked(self, document: EmbeddedDocument) -> BuiltDocument:
        linked = contribution(document.prepared, document.vectors, self._linking_of(document.prepared.key.collection))
        names = {about.name for about in linked.about} | {mention.name for mention in linked.mentions}
        names |= {role.name for statement in linked.statements for role in statement.roles}
        return BuiltDocument(document, encode_contribution(linked), len(names), len(linked.statements))
