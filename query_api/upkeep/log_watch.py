"""What the log holds: end offsets, seen once a second, so that lag can be told truthfully without asking on demand.

While Kafka does not answer, nobody knows what was written meanwhile, so then nothing is told.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from query_api.upkeep.tailing import LocateBroker, LogUnavailable, Span, connect, missing, spans_by_topic

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
ANSWER_SECONDS = 4.0
SMALL_FETCH_BYTES = 1024 * 1024
REMEMBERED_ENDS = 3_600


@dataclass(frozen=True)
class Lag:
    """At most `records` are not applied (compaction may have taken some); the oldest has waited at least `seconds`."""

    records: int
    seconds: float


@dataclass(frozen=True)
class HeldBack:
    """A transaction is open at `offset`; it and what follows it, at most `records`, nobody reads before it ends. So it
    has been for at least `seconds`."""

    topic: str
    partition: int
    offset: int
    records: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.topic} partition {self.partition}: a transaction has been open for at least {self.seconds:.0f} s "
            f"at offset {self.offset}, and up to {self.records} records wait for its end. Its producer has to commit "
            "or abort it, or Kafka does after its time-out."
        )


def too_late(lags: Iterable[Lag], limit_seconds: float) -> str | None:
    """A sentence, where a record has waited longer than the limit to become searchable."""
    late = [lag for lag in lags if lag.records and lag.seconds > limit_seconds]
    if not late:
        return None
    return (
        f"{sum(lag.records for lag in late):,} records are not searchable yet, the oldest for "
        f"{max(lag.seconds for lag in late):.0f} s, and THALWEG_SERVICE__MAX_LAG_SECONDS is {limit_seconds:g}: "
        "see whether the worker runs and what it waits for."
    )


@dataclass
class _Partition:
    span: Span
    ends: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED_ENDS))


class LogWatch:
    """Keeps the offsets of the topics `topics()` names, and whether Kafka answers."""

    def __init__(
        self,
        locate_broker: LocateBroker,
        topics: Callable[[], tuple[str, ...]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.problem: str | None = "not asked yet"
        self.missing: str | None = None
        self._locate_broker = locate_broker
        self._topics = topics
        self._clock = clock
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._open_since: dict[tuple[str, int, int], tuple[float, int]] = {}

    @property
    def held_back(self) -> list[HeldBack]:
        """The open transactions; none while Kafka does not answer."""
        if not self.reachable:
            return []
        now = self._clock()
        return [HeldBack(*place, records, now - since) for place, (since, records) in sorted(self._open_since.items())]

    @property
    def reachable(self) -> bool:
        return self.problem is None

    async def run(self) -> None:
        while True:
            try:
                await self._look_for_ever()
            except (KafkaError, OSError, TimeoutError, LogUnavailable) as error:
                problem = str(error) or "Kafka does not answer"
                if self.problem is None:
                    log.warning("kafka out of reach", problem=problem)
                self.problem = problem
            await asyncio.sleep(LOOK_SECONDS)

    async def _look_for_ever(self) -> None:
        servers = self._locate_broker()
        async with asyncio.timeout(ANSWER_SECONDS):
            consumer = await connect(servers, SMALL_FETCH_BYTES)
        try:
            while self._locate_broker() == servers:
                async with asyncio.timeout(ANSWER_SECONDS):
                    await self._look(consumer)
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await consumer.stop()

    async def _look(self, consumer: Any) -> None:
        topics = self._topics()
        spans = await spans_by_topic(consumer, topics)
        if self.problem is not None:
            log.info("kafka reached")
        self.problem = None
        absent = [topic for topic in topics if topic not in spans]
        self.missing = missing(absent[-1]) if absent else None
        self._partitions = {of: seen for of, seen in self._partitions.items() if of[0] in spans}
        for topic, seen in spans.items():
            self.see(topic, seen)
        places = [TopicPartition(topic, partition) for topic, seen in spans.items() for partition in seen]
        if places:
            self.see_watermarks(spans, await consumer.high_watermarks(places))

    def see_watermarks(self, spans: Mapping[str, Mapping[int, Span]], watermarks: Mapping[TopicPartition, int]) -> None:
        """Take note of the transactions that are open: their partitions go on behind the end of what may be read."""
        now = self._clock()
        opened = {}
        for place, watermark in watermarks.items():
            end = spans[place.topic][place.partition].end
            if watermark > end:
                since, _ = self._open_since.get((*place, end), (now, 0))
                opened[*place, end] = since, watermark - end
        self._open_since = opened

    def see(self, topic: str, spans: Mapping[int, Span]) -> None:
        """Take note of what the partitions hold now, as Kafka has just answered."""
        self.problem = None
        now = self._clock()
        for partition, span in spans.items():
            known = self._partitions.setdefault((topic, partition), _Partition(span))
            if span.end < known.span.end:  # the topic was made anew
                known.ends.clear()
            if not known.ends or span.end > known.ends[-1][1]:
                known.ends.append((now, span.end))
            known.span = span

    def partition_count(self, topic: str) -> int | None:
        """None until the topic has been seen."""
        partitions = [partition for name, partition in self._partitions if name == topic]
        return max(partitions) + 1 if partitions else None

    def ends(self, topic: str) -> dict[int, int]:
        """By partition; empty while Kafka does not answer."""
        if not self.reachable:
            return {}
        return {partition: seen.span.end for (name, partition), seen in self._partitions.items() if name == topic}

    def lag(self, topic: str, reached: Mapping[int, int]) -> dict[int, Lag]:
        """By partition, for a reader that has applied everything up to and including `reached`; empty while Kafka does
        not answer."""
        lags: dict[int, Lag] = {}
        if not self.reachable:
            return lags
        for (name, partition), seen in self._partitions.items():
            if name != topic:
                continue
            following = max(reached.get(partition, -1) + 1, seen.span.beginning)
            while len(seen.ends) > 1 and seen.ends[0][1] <= following:
                seen.ends.popleft()
            waiting_since = next((at for at, end in seen.ends if end > following), None)
            seconds = 0.0 if waiting_since is None else self._clock() - waiting_since
            lags[partition] = Lag(max(0, seen.span.end - following), seconds)
        return lags
