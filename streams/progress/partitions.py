"""How far each partition is done, what is in hand, what the worker waits for: for lag and the watchdog."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


class TopicPartition(NamedTuple):
    topic: str
    partition: int


@dataclass
class Reached:
    """`offset` is the last one done, -1 for none; `in_hand_since_ms` is the record time of the oldest one taken. By the
    clock, `moved_at` is when there was last nothing wrong with it, `done_at` when something was last done."""

    stage: str
    offset: int = -1
    done_ms: int | None = None
    in_hand_since_ms: int | None = None
    moved_at: float = 0.0
    done_at: float = float("-inf")


@dataclass
class Progress:
    """Kept by the agents, read by the watchdog and the metrics; all on the event loop.

    `waiting_for` names what is being retried: the worker is not stuck while it knows what it waits for.
    """

    clock: Callable[[], float] = time.monotonic
    reached: dict[TopicPartition, Reached] = field(default_factory=dict)
    waiting_for: set[str] = field(default_factory=set)

    def expect(self, stage: str, topic: str, partition: int, offset: int) -> None:
        """A partition this worker reads, and the last offset already done (-1 for none)."""
        self.reached[TopicPartition(topic, partition)] = Reached(stage, offset, moved_at=self.clock())

    def taken(self, stage: str, topic: str, partition: int, timestamp_ms: int) -> None:
        """A record was taken in hand; `timestamp_ms` is its own."""
        reached = self._of(stage, topic, partition)
        if reached.in_hand_since_ms is None or timestamp_ms < reached.in_hand_since_ms:
            reached.in_hand_since_ms = timestamp_ms

    def done(self, stage: str, topic: str, partition: int, offset: int, timestamp_ms: int) -> None:
        """Everything up to `offset` is done; `timestamp_ms` is that record's own."""
        reached = self._of(stage, topic, partition)
        reached.offset = max(reached.offset, offset)
        reached.done_ms = timestamp_ms
        reached.in_hand_since_ms = None
        reached.moved_at = reached.done_at = self.clock()

    def is_busy(self, stage: str, within_seconds: float) -> bool:
        """Whether records of the stage are in hand, or were done so short a time ago that the next are on their way."""
        since = self.clock() - within_seconds
        return any(
            reached.in_hand_since_ms is not None or reached.done_at > since
            for reached in self.reached.values()
            if reached.stage == stage
        )

    def _of(self, stage: str, topic: str, partition: int) -> Reached:
        return self.reached.setdefault(TopicPartition(topic, partition), Reached(stage, moved_at=self.clock()))
