"""Steps 3 to 5 of the commit: from events to everything that will be stored, with nothing stored yet."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.documents import PreparedDocument
from indexer.embedding.encoder import text_hash
from indexer.linking import DEFAULT_RULES, LinkingRules, contribution
from schemas.contributions import encode_contribution
from schemas.errors import MalformedEvent
from schemas.ids import Position
from streams.indexing.decoded_event import DecodedEvent
from streams.indexing.embed import Encoding, WithoutVector
from streams.indexing.prefetch import EncodedAhead, KnownVectors, PreparedAhead, Vector
from streams.kafka.dead_letters import Stage
from streams.metrics import Stopwatch
from streams.runtime.store_thread import StoreThread

FIRST_SHARE = 8  # of the usual number of texts: the first group is soon parsed, and until then the encoder rests


class VectorLookup(Protocol):
    """The part of the vector store that spares encoding a text again."""

    def known_vectors(self, hashes: Sequence[str]) -> dict[str, Vector]: ...


@dataclass(frozen=True)
class Made:
    """A document ready to be stored. `vectors` is (n_chunks, dimension); `embedded` counts texts encoded for it."""

    event: DecodedEvent
    prepared: PreparedDocument
    vectors: NDArray[np.float32]
    hashes: tuple[str, ...]
    contribution: bytes
    entities: int
    statements: int
    embedded: int


@dataclass(frozen=True)
class Refused:
    """An event that no retry can help, and where that showed."""

    event: DecodedEvent
    stage: Stage
    error: Exception


@dataclass(frozen=True)
class _Embedded:
    event: DecodedEvent
    prepared: PreparedDocument
    hashes: tuple[str, ...]
    vectors: NDArray[np.float32]
    embedded: int


class Maker:
    """Prepares in child processes, embeds in one thread, links in another. Changes nothing, so it may be repeated."""

    def __init__(
        self,
        prepare: Callable[[DecodedEvent], Awaitable[PreparedDocument]],
        encoding: Encoding,
        thread: StoreThread,
        lookup: VectorLookup,
        *,
        encode_texts: int,
        max_contribution_bytes: int,
        linking_of: Callable[[str], LinkingRules] = lambda _collection: DEFAULT_RULES,
    ) -> None:
        """About `encode_texts` texts are encoded at a time, while later documents are still being parsed.

        `linking_of` tells a collection's rules, by its name.
        """
        self._ahead = PreparedAhead(prepare)
        self._encoded_ahead = EncodedAhead(encoding.encode)
        self._encoding = encoding
        self._known = KnownVectors(lambda hashes: thread.run(lookup.known_vectors, hashes))
        self._encode_texts = encode_texts
        self._max_contribution_bytes = max_contribution_bytes
        self._linking_of = linking_of

    async def make(self, events: Sequence[DecodedEvent], watch: Stopwatch) -> tuple[list[Made], list[Refused]]:
        """Each event, an upsert, either made or refused; in their order."""
        made: list[Made] = []
        refused: list[Refused] = []
        known: dict[str, Vector | Exception] = {}
        group: list[tuple[DecodedEvent, PreparedDocument]] = []
        linking: list[asyncio.Task[tuple[list[Made], list[Refused]]]] = []
        preparing = [asyncio.create_task(self._prepared(event)) for event in events]
        try:
            for event, task in zip(events, preparing, strict=True):
                prepared = await task  # 3
                watch.lap("prepare")
                if isinstance(prepared, Refused):
                    refused.append(prepared)
                else:
                    group.append((event, prepared))
                last = task is preparing[-1]
                enough = self._encode_texts if linking else self._encode_texts // FIRST_SHARE
                if last or sum(len(document.embedding_texts) for _, document in group) >= enough:
                    embedded, failed = await self._embed(group, known)  # 4
                    watch.lap("embed")
                    linking.append(asyncio.create_task(self._link(embedded)))  # 5, while the next ones are embedded
                    refused += failed
                    group = []
            for linked, too_large in await asyncio.gather(*linking):
                made += linked
                refused += too_large
            watch.lap("link")
        finally:
            for task in preparing:
                task.cancel()
            for each in linking:
                each.cancel()
            self._known.made(known)
        return made, refused

    def begin(self, events: Sequence[DecodedEvent]) -> None:
        """Start to prepare events that will most likely have to be made next."""
        self._ahead.begin(events)

    async def unknown_texts(self, events: Sequence[DecodedEvent]) -> dict[str, str]:
        """The texts, by their hashes, that will have to be encoded for what was begun of these, as far as known now."""
        prepared = await self._ahead.begun(events)
        texts = {text_hash(text): text for document in prepared for text in document.embedding_texts}
        await self._known.look_ahead(list(texts))
        return {digest: text for digest, text in texts.items() if self._known.at_hand(digest) is None}

    async def begin_encoding(self, texts: Mapping[str, str]) -> None:
        """Encode texts that will most likely be needed next, until `make` needs the encoder."""
        unknown = {digest: text for digest, text in texts.items() if self._known.at_hand(digest) is None}
        await self._encoded_ahead.begin(unknown)

    def drop(self, positions: Iterable[Position] | None = None) -> None:
        """Leave what was begun for these records and not made, or everything."""
        self._ahead.drop(positions)
        if positions is None:
            self._encoded_ahead.drop()
            self._known.forget_ahead()

    async def _prepared(self, event: DecodedEvent) -> PreparedDocument | Refused:
        try:
            return await self._ahead.prepare(event)
        except MalformedEvent as error:
            return Refused(event, "embed" if isinstance(error, WithoutVector) else "prepare", error)

    async def _embed(
        self, group: Sequence[tuple[DecodedEvent, PreparedDocument]], known: dict[str, Vector | Exception]
    ) -> tuple[list[_Embedded], list[Refused]]:
        hashed = [(event, prepared, tuple(map(text_hash, prepared.embedding_texts))) for event, prepared in group]
        texts = {
            digest: text
            for _, prepared, hashes in hashed
            for digest, text in zip(hashes, prepared.embedding_texts, strict=True)
            if digest not in known
        }
        await self._encoded_ahead.stop()
        early = self._encoded_ahead.take(texts)
        known |= early
        unknown = [digest for digest in texts if digest not in known]
        known |= await self._known.of(unknown)
        missing = [digest for digest in unknown if digest not in known]
        known |= dict(zip(missing, await self._encoding.encode([texts[digest] for digest in missing]), strict=True))
        fresh = {*early, *missing}
        embedded: list[_Embedded] = []
        refused: list[Refused] = []
        for event, prepared, hashes in hashed:
            vectors = [known[digest] for digest in hashes]
            failure = next((vector for vector in vectors if isinstance(vector, Exception)), None)
            if failure is not None:
                refused.append(Refused(event, "embed", WithoutVector("chunks", failure)))
                continue
            count = len(fresh.intersection(hashes))
            embedded.append(_Embedded(event, prepared, hashes, np.asarray(vectors, dtype=np.float32), count))
            fresh.difference_update(hashes)
        return embedded, refused

    async def _link(self, embedded: Sequence[_Embedded]) -> tuple[list[Made], list[Refused]]:
        made: list[Made] = []
        refused: list[Refused] = []
        for document in await self._encoding.compute(lambda: [self._linked(each) for each in embedded]):
            size = len(document.contribution)
            if size <= self._max_contribution_bytes:
                made.append(document)
                continue
            error = MalformedEvent(
                "too_large_for_graph",
                f"What the document adds to the graph takes {size:,} bytes; the limit is "
                f"{self._max_contribution_bytes:,}. Split the document or raise THALWEG_KAFKA__MAX_GRAPH_RECORD_BYTES.",
            )
            refused.append(Refused(document.event, "link", error))
        return made, refused

    def _linked(self, document: _Embedded) -> Made:
        linked = contribution(document.prepared, document.vectors, self._linking_of(document.prepared.key.collection))
        names = {about.name for about in linked.about} | {mention.name for mention in linked.mentions}
        names |= {role.name for statement in linked.statements for role in statement.roles}
        return Made(
            event=document.event,
            prepared=document.prepared,
            vectors=document.vectors,
            hashes=document.hashes,
            contribution=encode_contribution(linked),
            entities=len(names),
            statements=len(linked.statements),
            embedded=document.embedded,
        )
