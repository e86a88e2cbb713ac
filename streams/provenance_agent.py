"""The provenance agent: retrievals from the topic into their table."""

from collections.abc import Sequence
from typing import Protocol

import structlog

from schemas.errors import MalformedEvent
from schemas.provenance import Retrieval, decode_retrieval
from streams.delivery.dead_letters import DeadLetter
from streams.delivery.outbox import Outbox
from streams.indexing.records import SourceRecord
from streams.progress.partitions import Progress
from streams.progress.stores import DATA_ERRORS, StoreThread
from streams.taking import Taken, work_off

STAGE = "provenance"

Kept = tuple[SourceRecord, Retrieval]


class RetrievalWriter(Protocol):
    """Keeps retrievals by their id; one that is already there stays as it is."""

    def add_retrievals(self, retrievals: Sequence[tuple[str, Retrieval]]) -> None: ...


class ProvenanceAgent:
    def __init__(
        self, *, topic: str, writer: RetrievalWriter, thread: StoreThread, outbox: Outbox, progress: Progress
    ) -> None:
        self._topic = topic
        self._writer = writer
        self._thread = thread
        self._outbox = outbox
        self._progress = progress
        self._log = structlog.get_logger("thalweg.worker")

    async def run(self, batches: Taken) -> None:
        """Store each batch of retrievals, then acknowledge it."""
        await work_off(batches, self.keep, self._progress, STAGE, self._topic)

    async def keep(self, records: Sequence[SourceRecord]) -> None:
        """May be called again with the same records; each retrieval is kept once. What is none goes to dead letters."""
        retrievals: list[Kept] = []
        letters: list[DeadLetter] = []
        for record in records:
            if record.value is None:
                continue
            try:
                retrieval = decode_retrieval(record.value)
            except ValueError as error:
                letters.append(self._letter(record, MalformedEvent("bad_retrieval", f"Not a retrieval: {error}.")))
                continue
            retrievals.append((record, retrieval))
        await self._outbox.bury(letters)
        if retrievals:
            await self._add(retrievals)

    async def _add(self, kept: Sequence[Kept]) -> None:
        by_id = {retrieval.retrieval_id: retrieval for _, retrieval in kept}
        try:
            await self._thread.run(self._writer.add_retrievals, list(by_id.items()))
        except DATA_ERRORS as error:
            self._log.warning("a batch of retrievals failed", records=len(kept), error=type(error).__name__)
            if len(kept) > 1:
                half = len(kept) // 2
                await self._add(kept[:half])
                await self._add(kept[half:])
            else:
                await self._outbox.bury([self._letter(kept[0][0], error)])

    def _letter(self, record: SourceRecord, error: Exception) -> DeadLetter:
        return record.letter(self._topic, "decode" if isinstance(error, MalformedEvent) else "store", error)
