"""The provenance agent: retrievals, and feedback on their hits, from the topic into their tables."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from indexer.write.lance_writer import LanceWriter
from schemas.errors import MalformedEvent
from schemas.provenance import Feedback, Retrieval, decode_provenance
from streams.agents.batching import Batches, CommitPace, process
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import DeadLetter, SourceRecord
from streams.runtime.partition_progress import Progress
from streams.runtime.retry import bisect
from streams.runtime.store_thread import DATA_ERRORS, StoreThread

STAGE = "provenance"
GATHER_SECONDS = 5.0  # nobody waits for a stored retrieval: the service remembers its own

Decoded = tuple[SourceRecord, Retrieval | Feedback]


@dataclass(eq=False)
class ProvenanceAgent:
    topic: str
    writer: LanceWriter
    thread: StoreThread
    producer: ConfirmedProducer
    progress: Progress
    _pace: CommitPace = field(default_factory=lambda: CommitPace(GATHER_SECONDS))

    async def run(self, batches: Batches) -> None:
        """Store each batch, then acknowledge it."""
        await process(batches, self.store, self.progress, STAGE, self.topic, self._pace.wait)

    async def store(self, records: Sequence[SourceRecord]) -> None:
        """May be called again with the same records; each is stored once.

        What is neither retrieval nor feedback goes to the dead letters.
        """
        decoded: list[Decoded] = []
        letters: list[DeadLetter] = []
        for record in records:
            if record.is_gap or record.value is None:
                continue
            try:
                decoded.append((record, decode_provenance(record.value)))
            except ValueError as error:
                reason = f"Neither a retrieval nor feedback on one: {error}."
                letters.append(record.dead_letter(self.topic, "decode", MalformedEvent("bad_retrieval", reason)))
        await self.producer.send_to_dlq(letters)
        if decoded:
            began = time.monotonic()
            await bisect(decoded, self._add, self._reject, errors=DATA_ERRORS, name="provenance", log_traceback=False)
            self._pace.committed(time.monotonic() - began)

    async def _add(self, decoded: Sequence[Decoded]) -> list[None]:
        retrievals = {each.retrieval_id: each for _, each in decoded if isinstance(each, Retrieval)}
        feedback = [(each, record.offset) for record, each in decoded if isinstance(each, Feedback)]
        if retrievals:
            await self.thread.run(self.writer.add_retrievals, list(retrievals.items()))
        if feedback:
            await self.thread.run(self.writer.put_feedback, feedback)
        return []

    async def _reject(self, decoded: Decoded, error: Exception) -> None:
        await self.producer.send_to_dlq([decoded[0].dead_letter(self.topic, "store", error)])
