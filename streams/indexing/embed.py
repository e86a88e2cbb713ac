"""Steps 4 and 5 of the commit: embed the texts of prepared documents, and link their chunks. Nothing is stored here."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

import msgspec
import numpy as np
from cachetools import LRUCache

from indexer.documents import PreparedDocument
from indexer.embedding.encoder import EncodedText, Encoder, text_hash
from indexer.errors import EncoderBusy, EncoderFailure, EncoderUnavailable
from indexer.extraction.entity_mentions import EntityMention, decode_spans, encode_spans, entity_mentions
from indexer.extraction.extractor import entities_of, statements_of
from indexer.extraction.mention_tagger import Tag
from indexer.linking import DEFAULT_RULES, LinkingRules, contribution
from schemas.errors import MalformedEvent
from schemas.graph_delta import encode_contribution
from schemas.ids import Position
from streams.indexing.document_steps import DecodedEvent, EmbeddedDocument, LinkedDocument, Refused
from streams.indexing.extract import ExtractorThreads
from streams.kafka.records import Stage
from streams.runtime.partition_progress import Progress
from streams.runtime.retry import Retrier, bisect
from streams.runtime.store_thread import StoreThread
from streams.worker_metrics import Stopwatch, WorkerMetrics

Result = TypeVar("Result")

FIRST_SHARE = 8  # of the usual number of texts: the first group is soon prepared, and until then the encoder is idle
ENCODE_TEXTS = 512  # more sorts better by length, fewer stops sooner
RECENT_VECTORS = 16_384  # 25 MB of 384 numbers each

PROBE = "a probe of the encoder"
RETRY_SECONDS = (1.0, 2.0, 4.0)
_FIRST_WAIT_SECONDS = 0.2
_MOST_TIMES_AWAY = 3


class EncoderBroken(EncoderUnavailable):
    """The encoder cannot even encode a few plain words."""


class WithoutVector(MalformedEvent):
    """A document is refused: one of its texts got no vector."""

    def __init__(self, texts: str, failure: Exception) -> None:
        """Of foreign errors only the type is shown: their messages may quote the text."""
        is_ours = isinstance(failure, EncoderFailure)
        reason = str(failure) if is_ours else f"The encoder failed ({type(failure).__name__})."
        super().__init__("embedding_failed", f"One of its {texts} got no vector, so none was stored. {reason}")


@dataclass(eq=False)
class EncoderThread:
    """One thread that feeds the encoder, and one for other computations beside it. `tag` finds entities in the
    encoder's own run; None where there is no tagger for the encoder."""

    encoder: Encoder
    metrics: WorkerMetrics
    progress: Progress
    _: KW_ONLY
    tag: Tag | None = None
    retry_seconds: Sequence[float] = RETRY_SECONDS
    first_wait_seconds: float = _FIRST_WAIT_SECONDS

    def __post_init__(self) -> None:
        self._retrier = Retrier(
            "encoder",
            (EncoderBroken, EncoderBusy),
            self.metrics,
            self.progress,
            first_wait_seconds=self.first_wait_seconds,
        )
        self._encoder_thread = ThreadPoolExecutor(1, thread_name_prefix="encode")
        self._compute_thread = ThreadPoolExecutor(1, thread_name_prefix="compute")

    @property
    def tags(self) -> bool:
        return self.tag is not None

    async def encode(self, texts: Sequence[str], *, tagged: bool = False) -> list[EncodedText | Exception]:
        """For each text its vector, and its entities if it is to be `tagged`, or what the encoder raised for it alone.

        1. A batch that fails with a transient error is retried three times.
        2. Where it still fails, a probe of a few plain words is encoded, until it succeeds. If the probe failed at
           first, the encoder was away: back to 1. An encoder that goes away with the same batch three times is taken
           for one that the batch brings down.
        3. Where the probe succeeds at once, the batch is bisected.
        4. A text that fails alone gets its error; but while the encoder is only busy, it is retried without limit.
        """
        size = self.encoder.batch_texts or max(1, len(texts))
        encoded: list[EncodedText | Exception] = []
        for start in range(0, len(texts), size):
            encoded += await self._encode_or_bisect(texts[start : start + size], tagged=tagged)
        return encoded

    async def compute(self, work: Callable[[], Result]) -> Result:
        """Run a computation beside the encoder, after those before it."""
        return await asyncio.get_running_loop().run_in_executor(self._compute_thread, work)

    def close(self) -> None:
        """Let running calls end, start no others."""
        self._compute_thread.shutdown(cancel_futures=True)
        self._encoder_thread.shutdown(cancel_futures=True)

    async def _encode_or_bisect(self, texts: Sequence[str], *, tagged: bool) -> list[EncodedText | Exception]:
        async def encode(part: Sequence[str]) -> Sequence[EncodedText | Exception]:
            return await self._attempt(part, is_half=len(part) < len(texts), tagged=tagged)

        async def give_up(_text: str, error: Exception) -> Exception:
            return error  # 4

        return await bisect(texts, encode, give_up, name="texts", log_traceback=False)  # 3

    async def _attempt(self, texts: Sequence[str], *, is_half: bool, tagged: bool) -> Sequence[EncodedText]:
        is_one = len(texts) == 1
        passing = EncoderBusy if is_half and not is_one else EncoderUnavailable  # a half fails fast: it is bisected

        def attempt() -> Awaitable[Sequence[EncodedText]]:
            encode = partial(self._encode, list(texts), tagged=tagged)
            return self._retrier.retry(encode, (passing,), self.retry_seconds)  # 1

        times_away = 0
        while True:
            try:
                return await (self._retrier.retry_forever(attempt) if is_one else attempt())
            except Exception:
                times_away += 1
                if not await self._was_away() or times_away == _MOST_TIMES_AWAY:  # 2
                    raise

    async def _encode(self, texts: list[str], *, tagged: bool = False) -> list[EncodedText]:
        run = partial(asyncio.get_running_loop().run_in_executor, self._encoder_thread)
        if self.tag is None or not tagged:
            return list(map(EncodedText, await run(self.encoder.encode, texts)))
        vectors, spans = await run(self.tag, texts)
        return [EncodedText(vector, encode_spans(of_text)) for vector, of_text in zip(vectors, spans, strict=True)]

    async def _was_away(self) -> bool:
        """Whether the encoder encoded nothing at all. If so, this returns when it does again."""
        failures = 0

        async def probe() -> None:
            nonlocal failures
            try:
                await self._encode([PROBE])
            except Exception as error:
                failures += 1
                message = str(error) if isinstance(error, EncoderFailure) else f"{type(error).__name__}: {error}"
                retry_after = error.retry_after_seconds if isinstance(error, EncoderUnavailable) else None
                raise EncoderBroken(message, retry_after) from error

        await self._retrier.retry_forever(probe)
        return failures > 0


class VectorLookup(Protocol):
    """The part of the vector store that spares encoding a text again."""

    def known_vectors(self, hashes: Sequence[str]) -> dict[str, EncodedText]: ...


class NoVectors:
    """Knows none, so that every text is encoded again."""

    def known_vectors(self, hashes: Sequence[str]) -> dict[str, EncodedText]:
        del hashes
        return {}


@dataclass(frozen=True)
class _Group:
    """Prepared documents whose texts are encoded together, and the stored vectors of these texts by hash."""

    documents: list[tuple[DecodedEvent, PreparedDocument, tuple[str, ...]]]
    refused: list[Refused]
    stored: dict[str, EncodedText]


@dataclass(eq=False)
class DocumentBuilder:
    """From events to documents ready to be stored.

    What a document becomes depends on its event alone: every call may be repeated, and `embed` be called ahead of time.
    About `encode_texts` texts are encoded at a time; `linking_of` gives a collection's rules, `extractors` are those
    that collections may choose, by version.
    """

    prepare: Callable[[DecodedEvent], Awaitable[PreparedDocument]]
    encoder: EncoderThread
    thread: StoreThread
    lookup: VectorLookup
    _: KW_ONLY
    encode_texts: int = ENCODE_TEXTS
    linking_of: Callable[[str], LinkingRules] = lambda _collection: DEFAULT_RULES
    extractors: Mapping[str, ExtractorThreads] = field(default_factory=dict)
    _encoder_turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    # of batches that may not be stored yet
    _recent: LRUCache[str, EncodedText] = field(default_factory=lambda: LRUCache(RECENT_VECTORS))

    def without_lookup(self) -> "DocumentBuilder":
        """The same, which encodes every text again: the stored vectors may be wrong."""
        return replace(self, lookup=NoVectors())

    async def embed(
        self, events: Sequence[DecodedEvent], watch: Stopwatch
    ) -> dict[Position, EmbeddedDocument | Refused]:
        """Steps 3 and 4 for upserts; a group is encoded while the next ones are prepared.

        May be called for several batches at once: the encoder takes one after the other, in the order of the calls.
        """
        if not events:
            return {}
        groups: asyncio.Queue[_Group | None] = asyncio.Queue()
        preparing = asyncio.create_task(self._prepare_in_groups(events, groups))
        embedded: dict[Position, EmbeddedDocument | Refused] = {}
        try:
            async with self._encoder_turn:
                watch.restart()
                while (group := await groups.get()) is not None:
                    watch.lap("prepare")
                    embedded |= await self._extract(await self._embed(group))  # 4
                    watch.lap("embed")
            await preparing
        finally:
            preparing.cancel()
        return embedded

    async def _prepare_in_groups(self, events: Sequence[DecodedEvent], groups: asyncio.Queue[_Group | None]) -> None:
        """Put the events in groups, in their order, and None after the last."""
        tasks = [asyncio.create_task(self._prepare_or_refuse(event)) for event in events]
        try:
            documents: list[tuple[DecodedEvent, PreparedDocument, tuple[str, ...]]] = []
            refused: list[Refused] = []
            texts, enough = 0, self.encode_texts // FIRST_SHARE
            for event, task in zip(events, tasks, strict=True):
                prepared = await task  # 3
                if isinstance(prepared, Refused):
                    refused.append(prepared)
                else:
                    documents.append((event, prepared, tuple(map(text_hash, prepared.embedding_texts))))
                    texts += len(prepared.embedding_texts)
                if task is tasks[-1] or texts >= enough:
                    hashes = {digest for _, _, hashes in documents for digest in hashes if digest not in self._recent}
                    stored = await self.thread.run(self.lookup.known_vectors, list(hashes)) if hashes else {}
                    groups.put_nowait(_Group(documents, refused, stored))
                    documents, refused, texts, enough = [], [], 0, self.encode_texts
        finally:
            for task in tasks:
                task.cancel()
            groups.put_nowait(None)

    async def _prepare_or_refuse(self, event: DecodedEvent) -> PreparedDocument | Refused:
        try:
            return await self.prepare(event)
        except MalformedEvent as error:
            stage: Stage = "embed" if isinstance(error, WithoutVector) else "prepare"
            return Refused(event.record, stage, error, event.event)

    async def _embed(self, group: _Group) -> dict[Position, EmbeddedDocument | Refused]:
        texts = {
            digest: text
            for _, prepared, hashes in group.documents
            for digest, text in zip(hashes, prepared.embedding_texts, strict=True)
        }
        tagged = {digest for event, _, hashes in group.documents if event.extracts for digest in hashes}
        found_before = group.stored | {digest: self._recent[digest] for digest in texts if digest in self._recent}
        known = {digest: each for digest, each in found_before.items() if digest not in tagged or self._is_whole(each)}
        missing = [digest for digest in texts if digest not in known]
        made = await self._encode(texts, missing, tagged)
        encoded: dict[str, EncodedText | Exception] = {**known, **made}
        self._recent.update({digest: each for digest, each in encoded.items() if not isinstance(each, Exception)})
        return _embedded(group, encoded, set(missing))

    async def _encode(
        self, texts: Mapping[str, str], missing: Sequence[str], tagged: Collection[str]
    ) -> dict[str, EncodedText | Exception]:
        """The missing texts, by hash; those that are `tagged` with their entities."""
        made: dict[str, EncodedText | Exception] = {}
        for are_tagged in (True, False):
            together = [digest for digest in missing if (digest in tagged) == are_tagged]
            if together:
                encoded = await self.encoder.encode([texts[digest] for digest in together], tagged=are_tagged)
                made.update(zip(together, encoded, strict=True))
        return made

    async def _extract(
        self, embedded: dict[Position, EmbeddedDocument | Refused]
    ) -> dict[Position, EmbeddedDocument | Refused]:
        """The documents, those with what the extractor found that their collection chose."""
        return dict(zip(embedded, await asyncio.gather(*map(self._extract_one, embedded.values())), strict=True))

    async def _extract_one(self, document: EmbeddedDocument | Refused) -> EmbeddedDocument | Refused:
        if isinstance(document, Refused):
            return document
        extractor = self.extractors.get(document.event.extractor or "")
        if extractor is None:
            return document
        prepared, extractions = await extractor.extract(document.prepared)
        return replace(document, prepared=prepared, extractions=extractions)

    def _is_whole(self, stored: EncodedText) -> bool:
        """Whether it need not be encoded again: its entities may not have been tagged."""
        return stored.spans is not None or not self.encoder.tags

    async def link(self, documents: Sequence[EmbeddedDocument]) -> dict[Position, LinkedDocument]:
        """Step 5: edges within each document, by its collection's current rules, and its whole contribution."""
        linked = await self.encoder.compute(lambda: [self._link(each) for each in documents])
        return {document.event.position: document for document in linked}

    def _link(self, document: EmbeddedDocument) -> LinkedDocument:
        rules = self.linking_of(document.prepared.key.collection)
        entities = entities_of(document.prepared, document.extractions, _entities(document))
        statements = statements_of(document.prepared, document.extractions)
        prepared = msgspec.structs.replace(document.prepared, statements=statements)
        whole = contribution(prepared, document.vectors, rules, entities)
        names = {about.name for about in whole.about} | {mention.name for mention in whole.mentions}
        names |= {role.name for statement in whole.statements for role in statement.roles}
        return LinkedDocument(
            **vars(document),
            contribution=encode_contribution(whole),
            entities=len(names),
            statements=len(whole.statements),
        )


def _entities(document: EmbeddedDocument) -> list[EntityMention] | None:
    """Those that were tagged; None where there is no tagger, or nothing is to be extracted: the rules' then."""
    spans = [each for each in document.spans if each is not None]
    if len(spans) < len(document.prepared.chunked.chunks):
        return None
    return entity_mentions(document.prepared, [decode_spans(each) for each in spans])


def _embedded(
    group: _Group, encoded: Mapping[str, EncodedText | Exception], fresh: set[str]
) -> dict[Position, EmbeddedDocument | Refused]:
    """The documents of a group with their vectors; what was encoded just now, `fresh`, counts for the first that has
    it."""
    embedded: dict[Position, EmbeddedDocument | Refused] = {each.record.position: each for each in group.refused}
    for event, prepared, hashes in group.documents:
        found = [each for digest in hashes if isinstance(each := encoded[digest], EncodedText)]
        failure = next((each for digest in hashes if isinstance(each := encoded[digest], Exception)), None)
        if failure is not None:
            embedded[event.position] = Refused(event.record, "embed", WithoutVector("chunks", failure), event.event)
            continue
        count = len(fresh.intersection(hashes))
        fresh.difference_update(hashes)
        embedded[event.position] = EmbeddedDocument(
            event,
            prepared,
            hashes,
            np.asarray([each.vector for each in found], dtype=np.float32),
            count,
            tuple(each.spans if event.extracts else None for each in found),
        )
    return embedded
