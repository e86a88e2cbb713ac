"""The queue of retrievals for the provenance topic: bounded, sent in the background, never lost silently."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice

import structlog
from cachetools import FIFOCache
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type, wait_exponential

from query_api.errors import AnotherLog
from query_api.ingest.producer import BrokerUnavailable, LogWriter, OutgoingRecord, RecordRefused
from schemas.provenance import Retrieval, decode_retrieval, encode_retrieval

log = structlog.get_logger(__name__)

CAPACITY = 10_000  # retrievals that wait while Kafka is away
FLUSH_SECONDS = 5.0  # that a stop waits for unsent ones
BATCH_RETRIEVALS = 200
MAX_BYTES = 64 * 1024 * 1024  # of unsent retrievals
RECENT_SHARE = 8  # of so many bytes, for recent ones, sent or not
MIN_RETRY_SECONDS = 0.5
MAX_RETRY_SECONDS = 5.0


@dataclass(eq=False)
class ProvenanceQueue:
    """Retrievals on their way to the provenance topic. Used on the event loop only.

    Each is delivered at least once, in order of arrival, keyed by its id; they wait while Kafka is away. When the queue
    is full, by number or by bytes, a further one is dropped: that is counted (`on_dropped`) and logged once until there
    is room again. They are queued as encoded records, which take a tenth of the objects.
    """

    writer: LogWriter
    topic: str
    capacity: int
    remembered: int
    on_dropped: Callable[[], None]
    clock: Callable[[], float] = time.monotonic
    max_bytes: int = MAX_BYTES
    dropped: int = 0
    _waiting: deque[OutgoingRecord] = field(default_factory=deque)
    _delayed: dict[str, tuple[float, OutgoingRecord]] = field(default_factory=dict)
    _unsent_bytes: int = 0
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)
    _sent: asyncio.Event = field(default_factory=asyncio.Event)
    _overflowing: bool = False

    def __post_init__(self) -> None:
        recent_bytes = self.max_bytes // RECENT_SHARE
        least_bytes = recent_bytes // max(1, self.remembered)
        self._recent: FIFOCache[str, OutgoingRecord] = FIFOCache(
            recent_bytes, getsizeof=lambda record: max(_size(record), least_bytes)
        )
        self._sent.set()

    def __len__(self) -> int:
        """Retrievals not sent yet."""
        return len(self._waiting) + len(self._delayed)

    def add(self, retrieval: Retrieval) -> None:
        """Queue a retrieval; it replaces a delayed one with the same id."""
        self._cancel_delay(retrieval.retrieval_id)
        record = _record(retrieval)
        self._remember(retrieval.retrieval_id, record)
        self._add(record)

    def _add(self, record: OutgoingRecord) -> None:
        if self._full:
            self._drop()
            if not self._overflowing:
                log.error("provenance queue full, retrievals are dropped", capacity=self.capacity)
            self._overflowing = True
            return
        self._waiting.append(record)
        self._unsent_bytes += _size(record)
        self._sent.clear()
        self._arrived.set()

    def delay(self, retrieval: Retrieval, seconds: float) -> None:
        """Queue a retrieval that was interrupted; sent after `seconds` unless it is finished under its id before."""
        self._cancel_delay(retrieval.retrieval_id)
        record = _record(retrieval)
        self._remember(retrieval.retrieval_id, record)
        if self._full:
            self._add(record)
            return
        self._delayed[retrieval.retrieval_id] = (self.clock() + seconds, record)
        self._unsent_bytes += _size(record)

    def release(self, *, everything: bool = False) -> None:
        """Send the delayed ones that are due, or all."""
        now = self.clock()
        due = [retrieval_id for retrieval_id, (at, _) in self._delayed.items() if everything or at <= now]
        for retrieval_id in due:
            if (record := self._cancel_delay(retrieval_id)) is not None:
                self._add(record)

    def recent(self, retrieval_id: str) -> Retrieval | None:
        """A recent retrieval, sent or not."""
        record = self._recent.get(retrieval_id)
        return None if record is None else decode_retrieval(record.value or b"")

    async def run(self) -> None:
        """Send what is queued, until cancelled."""
        until_sent = AsyncRetrying(
            retry=retry_if_exception_type((BrokerUnavailable, AnotherLog)),
            wait=wait_exponential(multiplier=MIN_RETRY_SECONDS, max=MAX_RETRY_SECONDS),
            before_sleep=self._log_retry,
        )
        while True:
            await self._arrived.wait()
            await until_sent(self._send_some)

    async def flush(self, seconds: float) -> bool:
        """Wait until all is sent, while `run` runs; False on a timeout."""
        self.release(everything=True)
        try:
            async with asyncio.timeout(seconds):
                await self._sent.wait()
        except TimeoutError:
            log.exception("retrievals lost at shutdown", lost=len(self._waiting))
            return False
        return True

    async def _send_some(self) -> None:
        batch = list(islice(self._waiting, BATCH_RETRIEVALS))
        try:
            await self.writer.publish(self.topic, batch)
        except RecordRefused:
            await self._send_one_by_one(batch)
        for _ in batch:
            self._unsent_bytes -= _size(self._waiting.popleft())
        self._overflowing = False
        if not self._waiting:
            self._arrived.clear()
            self._sent.set()

    async def _send_one_by_one(self, records: list[OutgoingRecord]) -> None:
        """After a record that the topic refuses: the others are sent, that one is counted as dropped."""
        for record in records:
            try:
                await self.writer.publish(self.topic, [record])
            except RecordRefused:
                self._drop()
                log.exception("retrieval dropped", retrieval_id=(record.key or b"").decode())

    @property
    def _full(self) -> bool:
        return len(self) >= self.capacity or self._unsent_bytes >= self.max_bytes

    def _cancel_delay(self, retrieval_id: str) -> OutgoingRecord | None:
        _, record = self._delayed.pop(retrieval_id, (0.0, None))
        if record is not None:
            self._unsent_bytes -= _size(record)
        return record

    def _remember(self, retrieval_id: str, record: OutgoingRecord) -> None:
        self._recent.pop(retrieval_id, None)
        with suppress(ValueError):  # larger than the whole cache
            self._recent[retrieval_id] = record

    def _log_retry(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        log.warning("provenance waits for kafka", waiting=len(self._waiting), reason=str(error))

    def _drop(self) -> None:
        self.dropped += 1
        self.on_dropped()


def _record(retrieval: Retrieval) -> OutgoingRecord:
    return OutgoingRecord(retrieval.retrieval_id.encode(), encode_retrieval(retrieval))


def _size(record: OutgoingRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")
