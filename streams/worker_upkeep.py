"""What a worker does beside its agents: snapshots of the graph and what is made of them, maintenance, checks."""

import math
from functools import partial

from indexer.graph.snapshots import latest_snapshot
from indexer.read.published_graph import is_due as is_publication_due
from indexer.runtime.resources import trim_memory_periodically
from indexer.write.kuzu_publication import default_buffer_bytes
from streams.agents import documents_agent
from streams.agents.batching import MOST_GATHER_SECONDS
from streams.runtime.community_schedule import (
    COMMUNITY_MAX_SECONDS,
    COMMUNITY_MIN_SECONDS,
    COMMUNITY_SHARE,
    Communities,
    CommunityFinder,
    is_due,
)
from streams.runtime.kuzu_schedule import SHARE, GraphPublisher, publishing_process
from streams.runtime.maintenance import check_files, maintain_tables, record_checksums
from streams.runtime.snapshot_schedule import (
    SNAPSHOT_IDLE_SECONDS,
    SNAPSHOT_MAX_SECONDS,
    SNAPSHOT_MIN_SECONDS,
    SNAPSHOT_SHARE,
    Snapshots,
    SnapshotSchedule,
)
from streams.runtime.trimming import Trimmer
from streams.supervisor.data_directory import make_directory
from streams.worker_runtime import OpenStores, WorkerRuntime

_BUSY_WITHIN_SECONDS = MOST_GATHER_SECONDS + 1.0  # small updates are gathered for so long


class Upkeep:
    """Nothing runs before `start`. A last snapshot is made when the worker is closed."""

    def __init__(self, runtime: WorkerRuntime, stores: OpenStores) -> None:
        self._runtime = runtime
        self._stores = stores
        generation = stores.generation
        newest = latest_snapshot(generation.snapshots_dir)
        is_busy = partial(runtime.progress.is_busy, documents_agent.STAGE, _BUSY_WITHIN_SECONDS)
        schedule = partial(SnapshotSchedule, idle_seconds=SNAPSHOT_IDLE_SECONDS, is_busy=is_busy)
        communities_due = schedule(
            min_seconds=COMMUNITY_MIN_SECONDS,
            max_seconds=COMMUNITY_MAX_SECONDS,
            share=COMMUNITY_SHARE,
            is_pending=is_due(generation, newest),
        )
        finder, thread = CommunityFinder(generation), runtime.store_thread("communities")
        self._communities = Communities(communities_due, finder, thread)
        log_file = make_directory(generation.data_dir / "logs") / f"publication-{generation.name}.log"
        publication_due = schedule(
            min_seconds=SNAPSHOT_MIN_SECONDS,
            max_seconds=math.inf,
            share=SHARE,
            idle_share=SHARE,
            is_pending=is_publication_due(generation),
        )
        start = partial(publishing_process, generation, log_file, default_buffer_bytes())
        self._publisher = GraphPublisher(publication_due, generation, start, runtime.metrics)
        is_outdated = newest is None or newest.graph_position < stores.graph.position()
        self.snapshots = Snapshots(
            writer=stores.graph,
            thread=stores.graph_thread,
            beside=runtime.store_thread("graph snapshots"),
            schedule=schedule(
                min_seconds=SNAPSHOT_MIN_SECONDS,
                max_seconds=SNAPSHOT_MAX_SECONDS,
                share=SNAPSHOT_SHARE,
                is_pending=is_outdated,
            ),
            metrics=runtime.metrics,
            newest=newest,
            published=(self._communities.changed, self._publisher.changed),
        )
        runtime.cleanup.push_async_callback(self.snapshots.make)

    def start(self) -> None:
        runtime, stores, vectors = self._runtime, self._stores, self._stores.vectors
        settings, generation = runtime.settings, stores.generation
        runtime.run(self.snapshots.run(), self.snapshots.check(), self._communities.run(), self._communities.check())
        if settings.worker.publish_graph:
            runtime.run(self._publisher.run(), self._publisher.check())
        topic = runtime.names.contributions(generation.name)
        runtime.run(
            maintain_tables(vectors, runtime.store_thread("lance maintenance"), runtime.metrics, settings),
            check_files(generation, is_live=runtime.role.build is None),
            record_checksums(vectors, runtime.store_thread("checksums")),
            Trimmer(settings.kafka, topic, generation, stores.mark).run(),
            trim_memory_periodically(),
        )
