"""Retrievals on their way to the topic: sent behind the answers, kept while Kafka is away, never lost silently."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from query_api.ingest.producer import BrokerUnavailable, OutgoingRecord, RecordRefused
from query_api.provenance_queue import ProvenanceQueue
from schemas.ids import Position
from schemas.provenance import Retrieval, decode_retrieval
from tests.support.waiting import eventually


class FlakyWriter:
    """A log that is away for the first `failures` writes, and takes no record with a key in `refused`."""

    def __init__(self, failures: int = 0, refused: Sequence[bytes] = ()) -> None:
        self.failures = failures
        self.refused = refused
        self.taken: list[OutgoingRecord] = []

    async def publish(self, topic: str, records: Sequence[OutgoingRecord]) -> list[Position]:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise BrokerUnavailable("away")
        if any(record.key in self.refused for record in records):
            raise RecordRefused("too large")
        self.taken += records
        return [Position(0, number) for number, _ in enumerate(records)]


class Dropped:
    count = 0

    def __call__(self) -> None:
        self.count += 1


def retrieval(name: str, outcome: str = "done") -> Retrieval:
    return Retrieval(
        retrieval_id=name, query="q", collection=None, mode="hybrid", at_ms=1, snapshot={}, parameters={}, hits=[],
        outcome=outcome,
    )  # fmt: skip


def queue_on(writer: FlakyWriter, capacity: int = 10, **more: Any) -> tuple[ProvenanceQueue, Dropped]:
    dropped = Dropped()
    return ProvenanceQueue(writer, "provenance", capacity, 10, dropped, **more), dropped  # type: ignore[arg-type]


@asynccontextmanager
async def sending(queue: ProvenanceQueue) -> AsyncIterator[None]:
    task = asyncio.create_task(queue.run())
    try:
        yield
    finally:
        task.cancel()


async def test_every_retrieval_arrives_in_order_under_its_id() -> None:
    writer = FlakyWriter()
    queue, dropped = queue_on(writer)
    async with sending(queue):
        for name in ("r_1", "r_2", "r_3"):
            queue.add(retrieval(name))
        assert await queue.flush(5)
    assert [record.key for record in writer.taken] == [b"r_1", b"r_2", b"r_3"]
    assert decode_retrieval(writer.taken[0].value or b"") == retrieval("r_1")
    assert (len(queue), dropped.count) == (0, 0)


async def test_while_kafka_is_away_they_wait_and_go_when_it_is_back(monkeypatch: Any) -> None:
    monkeypatch.setattr("query_api.provenance_queue.MIN_RETRY_SECONDS", 0.001)
    writer = FlakyWriter(failures=3)
    queue, _ = queue_on(writer)
    queue.add(retrieval("r_1"))
    async with sending(queue):
        assert not await queue.flush(0)
        queue.add(retrieval("r_2"))
        assert await queue.flush(5)
    assert [record.key for record in writer.taken] == [b"r_1", b"r_2"]


async def test_what_the_full_buffer_cannot_take_is_counted() -> None:
    queue, dropped = queue_on(FlakyWriter(), capacity=2)
    for number in range(5):
        queue.add(retrieval(f"r_{number}"))
    assert (len(queue), dropped.count, queue.dropped) == (2, 3, 3)


async def test_a_record_the_topic_refuses_does_not_hold_up_the_others() -> None:
    writer = FlakyWriter(refused=[b"r_1"])
    queue, dropped = queue_on(writer)
    async with sending(queue):
        for name in ("r_0", "r_1", "r_2"):
            queue.add(retrieval(name))
        assert await queue.flush(5)
    assert [record.key for record in writer.taken] == [b"r_0", b"r_2"]
    assert dropped.count == 1


async def test_recent_ones_are_found_before_they_are_sent_and_only_the_last_of_them() -> None:
    queue, _ = queue_on(FlakyWriter(), capacity=100)
    for number in range(11):
        queue.add(retrieval(f"r_{number}"))
    assert queue.recent("r_0") is None
    assert queue.recent("r_10") == retrieval("r_10")


async def test_a_retrieval_that_was_cut_off_is_sent_once_it_can_no_longer_be_finished() -> None:
    now = [100.0]
    writer = FlakyWriter()
    queue, _ = queue_on(writer, clock=lambda: now[0])
    queue.delay(retrieval("r_cut", "cancelled"), 60)
    queue.delay(retrieval("r_finished", "cancelled"), 60)
    queue.add(retrieval("r_finished"))
    async with sending(queue):
        await eventually(lambda: len(writer.taken) == 1)
        queue.release()
        assert len(queue) == 1
        now[0] += 61
        queue.release()
        assert await queue.flush(5)
    sent = [msgspec.json.decode(record.value or b"", type=Retrieval) for record in writer.taken]
    assert [(each.retrieval_id, each.outcome) for each in sent] == [("r_finished", "done"), ("r_cut", "cancelled")]


async def test_a_stop_sends_those_held_back_too() -> None:
    writer = FlakyWriter()
    queue, _ = queue_on(writer)
    queue.delay(retrieval("r_cut", "cancelled"), 600)
    async with sending(queue):
        assert await queue.flush(5)
    assert [record.key for record in writer.taken] == [b"r_cut"]


async def test_what_waits_and_what_is_remembered_is_bounded_by_bytes_too() -> None:
    queue, dropped = queue_on(FlakyWriter(), capacity=1_000, max_bytes=8_000)
    many = [msgspec.structs.replace(retrieval(f"r_{number}"), query="q" * 900) for number in range(20)]
    for number, each in enumerate(many):
        if number % 2:
            queue.add(each)
        else:
            queue.delay(each, 60)
    assert (len(queue), dropped.count) == (8, 12)  # of about 1,000 bytes each
    assert [queue.recent(each.retrieval_id) for each in many] == [None] * 20  # a share of the bytes holds none of them
    queue.add(retrieval("r_small"))
    assert queue.recent("r_small") == retrieval("r_small")
