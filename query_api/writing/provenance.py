"""Every retrieval goes to the log, behind the answers: buffered, sent in the background, never lost silently."""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from itertools import islice

import structlog

from query_api.writing.publishing import BrokerUnavailable, LogWriter, OutgoingRecord, RecordRefused
from schemas.provenance import Retrieval, encode_retrieval

log = structlog.get_logger(__name__)

BATCH_RETRIEVALS = 200
FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 5.0


class ProvenanceQueue:
    """Retrievals on their way to the provenance topic. Used on the event loop only.

    Each is delivered at least once, in order of arrival, keyed by its id; while Kafka is away they wait. When the
    buffer is full a further one is not taken: that is counted (`on_dropped`) and logged once for each such spell.
    """

    def __init__(
        self,
        writer: LogWriter,
        topic: str,
        capacity: int,
        recent: int,
        on_dropped: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._writer = writer
        self._topic = topic
        self._capacity = capacity
        self._on_dropped = on_dropped
        self._clock = clock
        self._waiting: deque[Retrieval] = deque()
        self._held: dict[str, tuple[float, Retrieval]] = {}
        self._recent: OrderedDict[str, Retrieval] = OrderedDict()
        self._max_recent = recent
        self._news = asyncio.Event()
        self._sent = asyncio.Event()
        self._sent.set()
        self._overflowing = False
        self.dropped = 0

    def __len__(self) -> int:
        """Retrievals not sent yet."""
        return len(self._waiting) + len(self._held)

    def add(self, retrieval: Retrieval) -> None:
        """Take a retrieval; returns at once. It takes the place of one held back under the same id."""
        self._held.pop(retrieval.retrieval_id, None)
        self._remember(retrieval)
        if len(self) >= self._capacity:
            self._drop()
            if not self._overflowing:
                log.error("provenance buffer full, retrievals are dropped", capacity=self._capacity)
            self._overflowing = True
            return
        self._waiting.append(retrieval)
        self._sent.clear()
        self._news.set()

    def hold(self, retrieval: Retrieval, seconds: float) -> None:
        """Take a retrieval that was cut off and may yet be finished under its id; it is sent after so long if not."""
        if len(self) >= self._capacity:
            self.add(retrieval)
            return
        self._remember(retrieval)
        self._held[retrieval.retrieval_id] = (self._clock() + seconds, retrieval)

    def release(self, *, everything: bool = False) -> None:
        """Let those go whose time is over, or everything."""
        now = self._clock()
        due = [retrieval for at, retrieval in self._held.values() if everything or at <= now]
        for retrieval in due:
            self.add(retrieval)

    def recent(self, retrieval_id: str) -> Retrieval | None:
        """A retrieval of the last minutes, sent or not."""
        return self._recent.get(retrieval_id)

    async def run(self) -> None:
        """Send what comes, for ever."""
        pause = FIRST_PAUSE_SECONDS
        while True:
            await self._news.wait()
            try:
                await self._send_some()
                pause = FIRST_PAUSE_SECONDS
            except BrokerUnavailable as error:
                log.warning("provenance waits for kafka", waiting=len(self._waiting), reason=str(error))
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_SECONDS)

    async def flush(self, seconds: float) -> bool:
        """Wait until all is sent, while `run` is running; False when the time was too short."""
        self.release(everything=True)
        try:
            async with asyncio.timeout(seconds):
                await self._sent.wait()
        except TimeoutError:
            log.exception("retrievals not sent at the stop", lost=len(self._waiting))
            return False
        return True

    async def _send_some(self) -> None:
        batch = list(islice(self._waiting, BATCH_RETRIEVALS))
        records = [OutgoingRecord(each.retrieval_id.encode(), encode_retrieval(each)) for each in batch]
        try:
            await self._writer.publish(self._topic, records)
        except RecordRefused:
            await self._send_one_by_one(records)
        for _ in batch:
            self._waiting.popleft()
        self._overflowing = False
        if not self._waiting:
            self._news.clear()
            self._sent.set()

    async def _send_one_by_one(self, records: list[OutgoingRecord]) -> None:
        """A batch with a record that the topic refuses: the others go, that one is counted as dropped."""
        for record in records:
            try:
                await self._writer.publish(self._topic, [record])
            except RecordRefused:
                self._drop()
                log.exception("retrieval dropped", retrieval_id=(record.key or b"").decode())

    def _remember(self, retrieval: Retrieval) -> None:
        self._recent[retrieval.retrieval_id] = retrieval
        self._recent.move_to_end(retrieval.retrieval_id)
        while len(self._recent) > self._max_recent:
            self._recent.popitem(last=False)

    def _drop(self) -> None:
        self.dropped += 1
        self._on_dropped()
