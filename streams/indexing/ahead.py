"""Documents parsed before it is their slice's turn, so that the parsing processes work while a slice is stored."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from indexer.documents import PreparedDocument
from schemas.ids import Position
from streams.indexing.records import DecodedEvent


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
