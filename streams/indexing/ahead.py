"""Documents parsed before it is their slice's turn, so that the parsing processes work while a slice is stored."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from indexer.documents import PreparedDocument
from schemas.events import DocumentUpsert
from schemas.ids import Position
from streams.indexing.records import DecodedEvent


class PreparedAhead:
    """What an event is prepared to depends on the event alone: whether that happens early decides nothing."""

    def __init__(self, prepare: Callable[[DocumentUpsert], Awaitable[PreparedDocument]]) -> None:
        self._prepare = prepare
        self._begun: dict[Position, asyncio.Task[PreparedDocument]] = {}

    def begin(self, events: Sequence[DecodedEvent]) -> None:
        """Prepare these, upserts, after what is being prepared already."""
        for event in events:
            if event.position not in self._begun:
                self._begun[event.position] = asyncio.create_task(self._now(event))

    async def prepare(self, event: DecodedEvent) -> PreparedDocument:
        """The document, begun now or earlier. Raises what preparing it raises; an earlier failure only once."""
        begun = self._begun.pop(event.position, None)
        return await (begun or self._now(event))

    def drop(self, positions: Iterable[Position] | None = None) -> None:
        """Cancel what was begun for these records and is not needed, or everything."""
        for position in list(self._begun if positions is None else positions):
            task = self._begun.pop(position, None)
            if task is not None and not task.cancel() and not task.cancelled():
                task.exception()  # looked at, so that asyncio does not report it as forgotten

    async def _now(self, event: DecodedEvent) -> PreparedDocument:
        return await self._prepare(event.upsert)
