"""Trimming of the contributions topic: commits that nothing starts from are deleted from the log."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from kafka import TopicPartition
from kafka.errors import KafkaError

from indexer.generation_folders import Generation
from indexer.graph.snapshot_publication import KEPT_SNAPSHOTS
from indexer.graph.snapshots import GraphSnapshot, published_snapshots
from kafka_client.sync_clients import AdminClient
from schemas.errors import Failure
from schemas.settings import KafkaConnection
from streams.runtime.snapshot_schedule import check_periodically
from streams.worker_log import log

TRIM_SECONDS = 60.0


def first_needed(snapshots: Sequence[GraphSnapshot], mark: int) -> int:
    """The first offset that a start from one of the newest snapshots, or from tables that include `mark`, may
    still read; 0 before so many were made. `snapshots` are the newest first."""
    if len(snapshots) < KEPT_SNAPSHOTS:
        return 0
    return min(snapshots[KEPT_SNAPSHOTS - 1].graph_position, mark) + 1


class Trimmer:
    """Deletes what is needed no more. Where the cluster does not allow that, the topic's retention does."""

    def __init__(
        self, kafka: KafkaConnection, topic: str, generation: Generation, mark: Callable[[], Awaitable[int]]
    ) -> None:
        """`mark` asks for that of the tables."""
        self._kafka = kafka
        self._topic = topic
        self._snapshots_dir = generation.snapshots_dir
        self._mark = mark
        self._trimmed = 0
        self._problem = ""

    async def run(self) -> None:
        """At once, and every minute until cancelled."""
        await check_periodically(self.trim, TRIM_SECONDS)

    async def trim(self) -> None:
        """Delete what is before the first offset that is needed. May be repeated."""
        try:
            snapshots = await asyncio.to_thread(published_snapshots, self._snapshots_dir)
            first = first_needed(snapshots, await self._mark())
            if first <= self._trimmed:
                return
            await asyncio.to_thread(self._delete_before, first)
        except (KafkaError, Failure, OSError) as error:
            problem = str(error) or type(error).__name__
            if problem != self._problem:
                log.warning("the contributions topic is not trimmed", topic=self._topic, reason=problem)
            self._problem = problem
            return
        self._trimmed, self._problem = first, ""

    def _delete_before(self, offset: int) -> None:
        admin = AdminClient(self._kafka)
        try:
            admin.delete_records({TopicPartition(self._topic, 0): offset})
        finally:
            admin.close()
