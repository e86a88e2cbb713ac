"""The provenance agent: retrievals, and feedback on their hits, from the topic into their tables."""

import time
from collections.abc import Sequence
from typing import Protocol

import structlog

from schemas.errors import MalformedEvent
from schemas.provenance import Feedback, Retrieval, decode_provenance
from streams.agents.batching import CommitPace, Taken, work_off
from streams.kafka.dead_letters import DeadLetter
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.source_record import SourceRecord
from streams.runtime.progress import Progress
from streams.runtime.store_thread import DATA_ERRORS, StoreThread

STAGE = "provenance"
GATHER_SECONDS = 5.0  # nobody waits for a stored retrieval: the service remembers its own

Kept = tuple[SourceRecord, Retrieval | Feedback]


class RetrievalWriter(Protocol):
    """May be called again with the same arguments; leaves the same rows."""

    def add_retrievals(self, retrievals: Sequence[tuple[str, Retrieval]]) -> None:
        """Keeps retrievals by their id; one that is already there stays as it is."""
        ...

    def put_feedback(self, said: Sequence[tuple[Feedback, int]]) -> None:
        """Keeps feedback by hit and caller, with the offset of its record; the later record wins."""
        ...


class ProvenanceAgent:
    def __init__(
        self,
        *,
        topic: str,
        writer: RetrievalWriter,
        thread: StoreThread,
        producer: ConfirmedProducer,
        progress: Progress,
    ) -> None:
        self._topic = topic
        self._writer = writer
        self._thread = thread
        self._producer = producer
        self._progress = progress
        self._pace = CommitPace(GATHER_SECONDS)
        self._log = structlog.get_logger("thalweg.worker")

    async def run(self, batches: Taken) -> None:
        """Store each batch, then acknowledge it."""
        await work_off(batches, self.keep, self._progress, STAGE, self._topic, self._pace.turn)

    async def keep(self, records: Sequence[SourceRecord]) -> None:
        """May be called again with the same records; each is kept once. What is neither retrieval nor feedback
        goes to dead letters."""
        kept: list[Kept] = []
        letters: list[DeadLetter] = []
        for record in records:
            if record.is_gap or record.value is None:
                continue
            try:
                decoded = decode_provenance(record.value)
            except ValueError as error:
                reason = f"Neither a retrieval nor feedback on one: {error}."
                letters.append(self._letter(record, MalformedEvent("bad_retrieval", reason)))
                continue
            kept.append((record, decoded))
        await self._producer.send_to_dlq(letters)
        if kept:
            began = time.monotonic()
            await self._add(kept)
            self._pace.committed(time.monotonic() - began)

    async def _add(self, kept: Sequence[Kept]) -> None:
        by_id = {each.retrieval_id: each for _, each in kept if isinstance(each, Retrieval)}
        said = [(each, record.offset) for record, each in kept if isinstance(each, Feedback)]
        try:
            if by_id:
                await self._thread.run(self._writer.add_retrievals, list(by_id.items()))
            if said:
                await self._thread.run(self._writer.put_feedback, said)
        except DATA_ERRORS as error:
            self._log.warning("a batch of retrievals or feedback failed", records=len(kept), error=type(error).__name__)
            if len(kept) > 1:
                half = len(kept) // 2
                await self._add(kept[:half])
                await self._add(kept[half:])
            else:
                await self._producer.send_to_dlq([self._letter(kept[0][0], error)])

    def _letter(self, record: SourceRecord, error: Exception) -> DeadLetter:
        return record.letter(self._topic, "decode" if isinstance(error, MalformedEvent) else "store", error)
