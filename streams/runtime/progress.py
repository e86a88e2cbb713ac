"""How far each partition is done, what is in hand, what the worker waits for: for lag and the watchdog."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_client.unreadable_batches import UnreadableBatch


class TopicPartition(NamedTuple):
    topic: str
    partition: int


class Unreadable(dict[TopicPartition, UnreadableBatch]):
    """The batches that partitions stand before, until a person passes them by."""

    @contextmanager
    def noting(self, place: TopicPartition) -> Iterator[None]:
        """Keep what the block meets, until a block gets through."""
        try:
            yield
        except UnreadableBatch as found:
            self[place] = found
            raise
        self.pop(place, None)


@dataclass
class Reached:
    """`offset` is the last one done, -1 for none; `in_hand_since_ms` is the record time of the oldest one taken."""

    stage: str
    offset: int = -1
    in_hand_since_ms: int | None = None
    moved_at: float = 0.0


@dataclass
class Progress:
    """Kept by the agents, read by the watchdog and the metrics; all on the event loop.

    `waiting_for` names what is being retried, with the failure: the worker is not stuck while it knows what it waits
    for.
    """

    clock: Callable[[], float] = time.monotonic
    reached: dict[TopicPartition, Reached] = field(default_factory=dict)
    waiting_for: dict[str, str] = field(default_factory=dict)
    unreadable: Unreadable = field(default_factory=Unreadable)

    def expect(self, stage: str, topic: str, partition: int, offset: int) -> None:
        """A partition this worker reads, and the last offset already done (-1 for none)."""
        self.reached[TopicPartition(topic, partition)] = Reached(stage, offset, moved_at=self.clock())

    def taken(self, stage: str, topic: str, partition: int, timestamp_ms: int) -> None:
        """A record was taken in hand; `timestamp_ms` is its own."""
        reached = self._of(stage, topic, partition)
        if reached.in_hand_since_ms is None or timestamp_ms < reached.in_hand_since_ms:
            reached.in_hand_since_ms = timestamp_ms

    def done(self, stage: str, topic: str, partition: int, offset: int) -> None:
        """Everything up to `offset` is done."""
        reached = self._of(stage, topic, partition)
        reached.offset = max(reached.offset, offset)
        reached.in_hand_since_ms = None
        reached.moved_at = self.clock()

    def is_busy(self, stage: str, within_seconds: float) -> bool:
        """Whether records of the stage are in hand, or were done so short a time ago that the next are on their way."""
        since = self.clock() - within_seconds
        return any(
            reached.in_hand_since_ms is not None or reached.moved_at > since
            for reached in self.reached.values()
            if reached.stage == stage
        )

    def _of(self, stage: str, topic: str, partition: int) -> Reached:
        return self.reached.setdefault(TopicPartition(topic, partition), Reached(stage, moved_at=self.clock()))
