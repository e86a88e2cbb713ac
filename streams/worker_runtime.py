"""What all parts of a worker share: settings, metrics, health, progress, what runs until it ends; and its stores."""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Self

from indexer.generation_folders import Generation
from indexer.graph.store import GraphStore, InGraph
from indexer.schema import StoredPosition, newest_mark
from indexer.write.lance_writer import LanceWriter
from kafka_client.skipped_batches import SkippedBatches
from schemas.ids import DocumentKey, Position
from schemas.topics import TopicNames
from streams.generations.role import WorkerRole
from streams.kafka.partition_reader import PartitionReader
from streams.runtime.partition_progress import Progress
from streams.runtime.retry import Retrier
from streams.runtime.store_thread import StoreThread
from streams.runtime.worker_health import Health
from streams.settings import WorkerSettings
from streams.worker_metrics import WorkerMetrics

_FIRST_WAIT_SECONDS = 0.5
COMPARED_TOGETHER = 2_000  # documents
POLL_SECONDS = 0.25


class WorkerRuntime:
    """`cleanup` closes what was opened, in the reverse order; `failure` is set to what ends a running worker. What
    contributes to the graph takes `commit_lock`."""

    def __init__(self, settings: WorkerSettings, role: WorkerRole) -> None:
        self.settings = settings
        self.role = role
        self.names = TopicNames(settings.kafka.topic_prefix)
        self.metrics = WorkerMetrics()
        self.metrics.measure_disk(settings.storage.data_dir)
        self.health = Health(["kafka", "encoder", "stores", "partitions"])
        self.progress = Progress()
        self.skipped = SkippedBatches(lambda: settings.kafka, self.names.curation)
        self.commit_lock = asyncio.Lock()
        self.cleanup = AsyncExitStack()
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._background: list[asyncio.Task[None]] = []

    def run(self, *works: Coroutine[Any, Any, None]) -> None:
        """In the background; the failure of any is the worker's."""
        for work in works:
            task = asyncio.create_task(work)
            task.add_done_callback(self._on_end)
            self._background.append(task)

    def _on_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        if not self.failure.done():
            self.failure.set_exception(error)

    async def aclose(self) -> None:
        """Cancel what is running, close what was opened. Every step is tried."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.cleanup.aclose()

    def retrier(self, target: str, *errors: type[Exception]) -> Retrier:
        return Retrier(target, errors, self.metrics, self.progress, first_wait_seconds=_FIRST_WAIT_SECONDS)

    def store_thread(self, name: str) -> StoreThread:
        thread = StoreThread(name, self.metrics, self.progress)
        self.cleanup.callback(thread.end)
        return thread

    def partition_reader(self, topic: str, partition: int) -> PartitionReader:
        return PartitionReader(self.settings.kafka, topic, partition, self.skipped, self.progress.unreadable)


@dataclass(frozen=True)
class OpenStores:
    """`reached` is how far the tables were when they were opened."""

    generation: Generation
    vectors: LanceWriter
    lance: StoreThread
    graph: GraphStore
    graph_thread: StoreThread
    reached: Mapping[int, StoredPosition]

    @classmethod
    async def open(cls, generation: Generation, dimension: int, runtime: WorkerRuntime) -> Self:
        """The tables are closed with the worker, also where the rest cannot be opened."""
        lance, graph_thread = runtime.store_thread("lance"), runtime.store_thread("graph")
        vectors = await lance.call(LanceWriter.open, generation, dimension)
        runtime.cleanup.push_async_callback(lance.close, vectors.close)
        reached = await lance.call(vectors.positions)
        needed = newest_mark(reached) if reached else None
        positions = {partition: each.offset for partition, each in reached.items()}
        kept = runtime.settings.worker.kept_snapshots
        graph = await graph_thread.call(GraphStore.open, generation, kept, needed, positions)
        return cls(generation, vectors, lance, graph, graph_thread, reached)

    async def graph_is_current(self) -> bool:
        """Whether the graph has what the tables have."""
        return self.graph.is_complete and self.graph.position() >= await self.mark()

    async def graph_caught_up(self) -> None:
        """Returns when the graph has read what the tables have by now."""
        needed = await self.mark()
        while self.graph.position() < needed:  # noqa: ASYNC110 -- a thread moves it
            await asyncio.sleep(POLL_SECONDS)

    async def in_graph(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, InGraph]:
        """What the graph has of these documents, once it has read what the tables have by now."""
        await self.graph_caught_up()
        return await self.graph_thread.run(self.graph.documents, keys)

    async def out_of_step(self) -> Mapping[DocumentKey, Position | None]:
        """The documents that the graph has in another revision than the tables, or with other numbers of chunks: with
        the record that each came from, None for those that the graph alone has. What is written meanwhile may look
        so."""
        await self.graph_caught_up()
        live = await self.lance.run(self.vectors.live_positions)
        keys = list(live.keys() | await self.graph_thread.run(self.graph.keys))
        found: dict[DocumentKey, Position | None] = {}
        for start in range(0, len(keys), COMPARED_TOGETHER):
            compared = keys[start : start + COMPARED_TOGETHER]
            rows = await self.lance.run(self.vectors.stored_documents, compared)
            in_text = {key: (row.revision, row.chunks) for key, row in rows.items() if row.live}
            in_graph = {key: each[:2] for key, each in (await self.in_graph(compared)).items()}
            found |= {key: live.get(key) for key in compared if in_graph.get(key) != in_text.get(key)}
        return found

    async def mark(self) -> int:
        """The newest mark that the tables include; -1 for none."""
        return newest_mark(await self.lance.run(self.vectors.positions))
