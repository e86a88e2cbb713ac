"""Generated histories of the documents topic: what is published, redelivered, where the worker dies."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import msgspec
from hypothesis import strategies as st

from streams.kafka.records import SourceRecord
from tests.support.fakes.worker import PowerCut
from tests.support.oracles.outcome import Change

PARTITIONS = 3
DOCUMENTS = tuple(f"notes/{letter}" for letter in "abcde")
GOOD = ("The Rhine is a river.", "# Basel\n\nBasel lies on the Rhine. See [b](b).", "Title-less words of one line.")
BAD = ("unparsable", "bug", "poison", "cut off")
CRASHES = ("replace", "after replace", "store_positions", "after store_positions", "graph", "indexed", "dead-letters")


class Crash(NamedTuple):
    """The worker dies at this point of its commit, when it comes there for the n-th time (from 0)."""

    point: str
    after: int


class Take(NamedTuple):
    """A batch: the next record of each of these partitions, in this order. Then, acknowledged or not because of a
    crash, each partition is read again from so many records earlier; `restarts` also without a crash."""

    partitions: tuple[int, ...]
    crash: Crash | None
    back: tuple[int, ...]
    restarts: bool


@dataclass(frozen=True)
class History:
    changes: tuple[Change, ...]
    takes: tuple[Take, ...]

    def log(self, first_offset: int = 0, collection: str = "notes") -> dict[int, list[SourceRecord]]:
        """The records by partition: a document's are all in one."""
        log: dict[int, list[SourceRecord]] = {partition: [] for partition in range(PARTITIONS)}
        for number, change in enumerate(self.changes):
            partition = partition_of(change.document)
            offset = first_offset + len(log[partition])
            log[partition].append(_record(change, collection, partition, offset, 1_000 + number))
        return log


def good(changes: Sequence[Change]) -> Iterator[Change]:
    """Those that can be indexed."""
    return (change for change in changes if change.text not in BAD)


def partition_of(document: str) -> int:
    return DOCUMENTS.index(document) % PARTITIONS


def _record(change: Change, collection: str, partition: int, offset: int, timestamp_ms: int) -> SourceRecord:
    document_id = change.document.partition("/")[2]
    key = f"{collection}/{document_id}".encode()
    if change.text is None and change.version is None:
        return SourceRecord(partition, offset, timestamp_ms, key, None)
    if change.text is None:
        sequence = ("ce_sequence", str(change.version).encode())
        headers = (("ce_specversion", b"1.0"), ("ce_type", b"page.deleted"), sequence)
        return SourceRecord(partition, offset, timestamp_ms, key, b"{}", headers)
    envelope = {"id": document_id, "collection": collection, "content": change.text, "version": change.version}
    value = msgspec.json.encode(envelope)
    return SourceRecord(partition, offset, timestamp_ms, key, value[:-1] if change.text == "cut off" else value)


_changes = st.builds(
    Change,
    st.sampled_from(DOCUMENTS),
    st.sampled_from(GOOD) | st.sampled_from(GOOD) | st.none() | st.sampled_from(BAD),
    st.none() | st.integers(0, 3),
)
_crashes = st.builds(Crash, st.sampled_from(CRASHES), st.integers(0, 2))
_takes = st.builds(
    Take,
    st.lists(st.integers(0, PARTITIONS - 1), min_size=1, max_size=6).map(tuple),
    st.none() | _crashes,
    st.tuples(*[st.integers(0, 3)] * PARTITIONS),
    st.booleans(),
)
histories = st.builds(
    History, st.lists(_changes, min_size=1, max_size=12).map(tuple), st.lists(_takes, max_size=8).map(tuple)
)


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
