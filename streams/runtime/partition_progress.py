"""How far each partition is, what is in flight, what the worker waits for: for lag and the watchdog."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kafka_client.topic_offsets import TopicPartition
from kafka_client.unreadable_batches import UnreadableBatch


class Unreadable(dict[TopicPartition, UnreadableBatch]):
    """The unreadable batches at which partitions stopped, until an operator skips them."""

    @contextmanager
    def noting(self, place: TopicPartition) -> Iterator[None]:
        """Record the batch that the block meets, until a block succeeds."""
        try:
            yield
        except UnreadableBatch as found:
            self[place] = found
            raise
        self.pop(place, None)


@dataclass
class PartitionProgress:
    """`offset` is the last one done, -1 for none; `in_flight` are those taken and not done."""

    stage: str
    offset: int = -1
    in_flight: set[int] = field(default_factory=set)
    moved_at: float = 0.0


@dataclass
class Progress:
    """Written by the agents, read by the watchdog and the metrics; all on the event loop.

    `waiting_for` names what is being retried, with the failure: a worker that waits for something known is not stuck.
    """

    clock: Callable[[], float] = time.monotonic
    partitions: dict[TopicPartition, PartitionProgress] = field(default_factory=dict)
    waiting_for: dict[str, str] = field(default_factory=dict)
    unreadable: Unreadable = field(default_factory=Unreadable)

    def expect(self, stage: str, topic: str, partition: int, offset: int) -> None:
        """A partition this worker reads, and the last offset already done (-1 for none)."""
        self.partitions[TopicPartition(topic, partition)] = PartitionProgress(stage, offset, moved_at=self.clock())

    def taken(self, stage: str, topic: str, partition: int, offset: int) -> None:
        """A record is in flight from now on, until it is done."""
        self._of(stage, topic, partition).in_flight.add(offset)

    def done(self, stage: str, topic: str, partition: int, offset: int) -> None:
        """Everything up to `offset` is done."""
        progress = self._of(stage, topic, partition)
        progress.offset = max(progress.offset, offset)
        progress.in_flight = {later for later in progress.in_flight if later > offset}
        progress.moved_at = self.clock()

    def reached(self) -> dict[str, dict[int, int]]:
        """The last offset done, by topic and partition."""
        reached: dict[str, dict[int, int]] = {}
        for place, progress in self.partitions.items():
            reached.setdefault(place.topic, {})[place.partition] = progress.offset
        return reached

    def is_busy(self, stage: str, within_seconds: float) -> bool:
        """Whether records of the stage are in flight, or were done so recently that the next are on their way."""
        since = self.clock() - within_seconds
        return any(
            progress.in_flight or progress.moved_at > since
            for progress in self.partitions.values()
            if progress.stage == stage
        )

    def _of(self, stage: str, topic: str, partition: int) -> PartitionProgress:
        return self.partitions.setdefault(
            TopicPartition(topic, partition), PartitionProgress(stage, moved_at=self.clock())
        )
