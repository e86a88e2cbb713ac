"""Documents parsed, texts looked up and encoded before it is their slice's turn: no core rests while one is stored."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from indexer.documents import PreparedDocument
from schemas.ids import Position
from streams.indexing.decoded_event import DecodedEvent


class PreparedAhead:
    """What an event is prepared to depends on it and its revision alone: whether that happens early decides nothing."""

    def __init__(self, prepare: Callable[[DecodedEvent], Awaitable[PreparedDocument]]) -> None:
        self._prepare = prepare
        self._begun: dict[Position, asyncio.Task[PreparedDocument]] = {}
        self._revisions: dict[Position, str | None] = {}

    def begin(self, events: Sequence[DecodedEvent]) -> None:
        """Prepare these, upserts, after what is being prepared already."""
        for event in events:
            if event.position not in self._begun:
                self._begun[event.position] = asyncio.create_task(self._now(event))
                self._revisions[event.position] = event.revision

    async def begun(self, events: Sequence[DecodedEvent]) -> list[PreparedDocument]:
        """What of these was begun and succeeds; it stays here for `prepare`."""
        tasks = [self._begun[event.position] for event in events if event.position in self._begun]
        if tasks:
            await asyncio.wait(tasks)  # which, cancelled, cancels none of them
        return [task.result() for task in tasks if not task.cancelled() and task.exception() is None]

    async def prepare(self, event: DecodedEvent) -> PreparedDocument:
        """The document, begun now or earlier. Raises what preparing it raises; an earlier failure only once."""
        if self._revisions.get(event.position) != event.revision:
            self.drop([event.position])  # its collection has chosen anew how it is cut
        begun = self._begun.pop(event.position, None)
        self._revisions.pop(event.position, None)
        return await (begun or self._now(event))

    def drop(self, positions: Iterable[Position] | None = None) -> None:
        """Cancel what was begun for these records and is not needed, or everything."""
        for position in list(self._begun if positions is None else positions):
            task = self._begun.pop(position, None)
            self._revisions.pop(position, None)
            if task is not None and not task.cancel() and not task.cancelled():
                task.exception()  # looked at, so that asyncio does not report it as forgotten

    async def _now(self, event: DecodedEvent) -> PreparedDocument:
        return await self._prepare(event)


Vector = NDArray[np.float32]  # (dimension,), L2-normalised
LookUp = Callable[[list[str]], Awaitable[Mapping[str, Vector]]]
MOST_KEPT = 16_384  # vectors of one slice: 25 MB of 384 numbers each; a slice of more is one large document


class KnownVectors:
    """A vector depends on its text alone, so none that was found is ever wrong; one that was missed costs only time.

    What a slice needs was mostly looked up while the one before was committed. Of what that one made the store then
    knew nothing yet; so its vectors stay here for a slice. All by the texts' hashes.
    """

    def __init__(self, look_up: LookUp) -> None:
        self._look_up = look_up
        self._found_ahead: dict[str, Vector] = {}
        self._absent_ahead: frozenset[str] = frozenset()
        self._just_made: dict[str, Vector] = {}

    async def look_ahead(self, hashes: Sequence[str]) -> None:
        """Look up what will most likely be asked for next, in the place of what was looked up ahead before."""
        self.forget_ahead()
        if not 0 < len(hashes) <= MOST_KEPT:
            return
        self._found_ahead = dict(await self._look_up(list(hashes)))
        self._absent_ahead = frozenset(hashes) - self._found_ahead.keys()

    async def of(self, hashes: Iterable[str]) -> dict[str, Vector]:
        """The vectors of those texts that have one."""
        wanted = list(hashes)
        at_hand = {digest: vector for digest in wanted if (vector := self.at_hand(digest)) is not None}
        unsure = [digest for digest in wanted if digest not in at_hand and digest not in self._absent_ahead]
        return at_hand | dict(await self._look_up(unsure)) if unsure else at_hand

    def at_hand(self, digest: str) -> Vector | None:
        """The vector, if it takes no look-up."""
        found = self._just_made.get(digest)
        return self._found_ahead.get(digest) if found is None else found

    def made(self, vectors: Mapping[str, Vector | Exception]) -> None:
        """These were needed for the slice that is stored next; those of the one before are forgotten."""
        if len(vectors) > MOST_KEPT:
            self._just_made = {}
            self.forget_ahead()
            return
        self._just_made = {digest: vector for digest, vector in vectors.items() if not isinstance(vector, Exception)}

    def forget_ahead(self) -> None:
        """What was looked up ahead will not be asked for."""
        self._found_ahead, self._absent_ahead = {}, frozenset()


Encode = Callable[[Sequence[str]], Awaitable[Sequence[Vector | Exception]]]
TEXTS_AT_ONCE = 64  # what a slice has at most to wait for when its own turn comes


class EncodedAhead:
    """A vector depends on its text alone: whether it is made early decides nothing."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._encoded: dict[str, Vector | Exception] = {}
        self._encoding: asyncio.Task[None] | None = None
        self._wanted = False

    async def begin(self, texts: Mapping[str, str]) -> None:
        """Encode these texts, by their hashes, group after group, until `stop`. What nobody took is forgotten."""
        await self.stop()
        self._encoded.clear()
        self._wanted = True
        self._encoding = asyncio.create_task(self._groups(texts))

    async def stop(self) -> None:
        """Begin no other group; returns when the one under way is encoded."""
        self._wanted = False
        encoding, self._encoding = self._encoding, None
        if encoding is not None:
            await asyncio.wait({encoding})
            if not encoding.cancelled():
                encoding.exception()  # looked at: what went wrong, the slice itself meets again

    def take(self, hashes: Iterable[str]) -> dict[str, Vector | Exception]:
        """The vectors made of these texts, or what the encoder raised for each of them alone."""
        return {digest: self._encoded.pop(digest) for digest in hashes if digest in self._encoded}

    def drop(self) -> None:
        """Forget everything; a group under way ends for nothing."""
        self._wanted = False
        if self._encoding is not None:
            self._encoding.cancel()
            self._encoding = None
        self._encoded.clear()

    async def _groups(self, texts: Mapping[str, str]) -> None:
        waiting = iter(texts.items())
        while self._wanted and (group := dict(islice(waiting, TEXTS_AT_ONCE))):
            vectors = await self._encode(list(group.values()))
            self._encoded |= dict(zip(group, vectors, strict=True))
