"""A consumer in a test's hand: it delivers a history to an indexer, again and again where the history says so."""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from streams.kafka.records import SourceRecord
from tests.unit.streams.log_histories import PARTITIONS, Crash, Take
from tests.unit.streams.worker_doubles import PowerCut


class Indexing(Protocol):
    """A worker's text half. `index` ends in PowerCut at the crash it is told of; then it has to be `restart`ed."""

    async def index(self, records: Sequence[SourceRecord], crash: Crash | None) -> None: ...
    def restart(self) -> None: ...


async def deliver(log: dict[int, list[SourceRecord]], takes: Sequence[Take], worker: Indexing) -> None:
    """Every record at least once, in the order of its partition; after the history what is left, undisturbed."""
    at = [0] * PARTITIONS
    for take in takes:
        batch, reached = _batch(log, take.partitions, at)
        try:
            await worker.index(batch, take.crash)
            at = reached
            died = False
        except PowerCut:
            died = True
        at = [max(0, place - back) for place, back in zip(at, take.back, strict=True)]
        if died or take.restarts:
            worker.restart()
    rest = [record for partition, records in sorted(log.items()) for record in records[at[partition] :]]
    if rest:
        await worker.index(rest, None)


def _batch(
    log: dict[int, list[SourceRecord]], partitions: Sequence[int], at: Sequence[int]
) -> tuple[list[SourceRecord], list[int]]:
    """(the next records of these partitions, where each partition then is)."""
    reached = list(at)
    batch = []
    for partition in partitions:
        if reached[partition] < len(log[partition]):
            batch.append(log[partition][reached[partition]])
            reached[partition] += 1
    return batch, reached


def countdown(crash: Crash | None) -> Callable[[str], None]:
    """What a double calls with the name of a point it comes to: it ends in PowerCut at the crash."""
    left: Iterator[int] = iter(range(crash.after, -1, -1)) if crash is not None else iter(())

    def come_to(point: str) -> None:
        if crash is not None and point == crash.point and next(left, None) == 0:
            raise PowerCut

    return come_to
