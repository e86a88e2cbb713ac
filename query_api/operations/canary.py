"""The canary: in quiet times a record now and then through log, text stores and index, so that how fresh searches are
is known before somebody waits for it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

import structlog

from kafka_client.partitioner import murmur2_partition
from kafka_client.topic_lag import LagMonitor
from query_api.errors import AnotherLog
from query_api.index.manager import SnapshotManager, covers
from query_api.index.worker_state import WorkerMonitor
from query_api.ingest.producer import LogWriter, NotConfirmed, OutgoingRecord
from schemas.ids import CANARY_COLLECTION, DocumentKey

log = structlog.get_logger(__name__)

CANARY_SECONDS = 60.0  # without a document that measures freshness


@dataclass(eq=False)
class Canary:
    """Deletes, in each partition, a document that does not exist.

    Such a tombstone goes through the log, the text stores and their readers, and leaves nothing that a search, a list
    or a count shows (`schemas.ids.is_canary`), and nothing in the graph; freshness is measured on it as on any other.
    None is sent while documents measure it, while no worker runs, or before the last one was shown. One round after
    each quiet `seconds`.
    """

    topic: str
    writer: LogWriter
    snapshots: SnapshotManager
    log_watch: LagMonitor
    worker_watch: WorkerMonitor
    seconds: float
    now_seconds: Callable[[], float] = time.time
    _sent: dict[int, int] = field(default_factory=dict)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(self.seconds)
            if self.is_due():
                await self.send()

    def is_due(self) -> bool:
        """Whether it would measure something that nobody else measures just now."""
        current = self.snapshots.current
        newest = self.snapshots.freshness.newest
        is_quiet = newest is None or self.now_seconds() - newest[1] >= self.seconds
        is_shown = current is not None and covers(current, self._sent)
        return is_quiet and is_shown and self.worker_watch.status().state == "running"

    async def send(self) -> None:
        """One record into each partition, where Kafka takes them."""
        partitions = self.log_watch.partition_count(self.topic)
        if partitions is None:
            return
        records = [OutgoingRecord(str(key).encode(), None) for key in canary_keys(partitions)]
        try:
            positions = await self.writer.publish(self.topic, records)
        except (NotConfirmed, AnotherLog) as error:
            log.debug("no canary sent", error=str(error))
            return
        self._sent = dict(positions)


def canary_keys(partitions: int) -> list[DocumentKey]:
    """One for each partition: the first of `0`, `1`, … that belongs to it."""
    partition_of = murmur2_partition(partitions)
    found: dict[int, DocumentKey] = {}
    for number in count():
        key = DocumentKey(CANARY_COLLECTION, str(number))
        found.setdefault(partition_of(str(key).encode()), key)
        if len(found) == partitions:
            break
    return [found[partition] for partition in sorted(found)]
