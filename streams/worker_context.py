"""A worker from its start to its end: its parts opened and wired in order, and closed in the reverse order."""

import asyncio
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

import faust

from indexer.embedding.encoder import PromptedEncoder
from indexer.errors import EncoderUnavailable
from indexer.generation_folders import Generation, republish_advice
from indexer.graph.store import order_remake
from indexer.schema import newest_mark
from kafka_client.sync_clients import answers_metadata
from kafka_client.topic_lag import LagMonitor
from kafka_client.topic_offsets import TopicPartition
from schemas.errors import InUse, Unreachable
from streams.agents import documents_agent, graph_agent, provenance_agent
from streams.errors import StartAgain
from streams.faust_app import build_app, group_name, until_crashed
from streams.generations.build import BuildMonitor
from streams.generations.healing import require_undamaged
from streams.generations.role import WorkerRole
from streams.indexing.commit import DocumentIndexer
from streams.indexing.embed import PROBE
from streams.indexing.extract import outdated_note
from streams.indexing.prepare import Parsers
from streams.kafka.group_offsets import reconcile
from streams.kafka.stores_log import topics_of_generation
from streams.kafka.topics import TopicReport, watch_partitions
from streams.runtime.retry import retry_for
from streams.runtime.snapshot_schedule import Snapshots
from streams.runtime.watchdog import Watchdog
from streams.runtime.worker_health import HealthServer, Heartbeat
from streams.settings import WorkerSettings
from streams.supervisor.data_directory import WORKER_LOCK, locked, make_directory
from streams.worker_agents import attach_agents
from streams.worker_log import log
from streams.worker_runtime import OpenStores, WorkerRuntime
from streams.worker_upkeep import Upkeep

_POLL_SECONDS = 0.25
_LOCK_SECONDS = 30.0
BROKER_WAIT_SECONDS = 60.0  # of a start, for the first broker to answer


class WorkerContext:
    """`create` may be cancelled or fail at any point; `aclose` closes what was opened by then. `failure` is set to what
    ends a running worker."""

    def __init__(self, settings: WorkerSettings, build: str | None = None) -> None:
        """`build` names the generation to build beside the live one, which is run else."""
        self._settings = settings
        self._role = WorkerRole(settings, build)
        self._runtime = WorkerRuntime(settings, self._role)
        self._health = self._runtime.health
        self._names = self._runtime.names
        self.failure = self._runtime.failure
        self._lag = LagMonitor(lambda: settings.kafka, self._runtime.progress.reached, skip=self._runtime.skipped)
        self.heartbeat = Heartbeat(make_directory(self._role.folder), self._health, self._runtime.progress)
        self.is_loading_encoder = False
        self.is_running = False
        self._is_paused = False
        self._indexer: DocumentIndexer | None = None

    async def create(self) -> None:
        """Returns when the agents take records."""
        began = time.monotonic()
        runtime, kafka = self._runtime, self._settings.kafka
        worker = self._settings.worker
        server = HealthServer(runtime.metrics.registry, self._health, worker.metrics_port, worker.metrics_host)
        self.heartbeat.metrics_url = server.url
        runtime.cleanup.push_async_callback(asyncio.to_thread, server.close)
        parsers = Parsers.open(self._settings)
        runtime.cleanup.push_async_callback(parsers.close)
        encoder, _, _ = await asyncio.gather(self._load_encoder(), self._find_broker(), parsers.warm_up())
        generation = self._role.open_generation(encoder)
        require_undamaged(generation)
        if (note := self._role.note()) is not None:
            self._health.note_for_good(note)
        await retry_for(_LOCK_SECONDS, lambda: self._lock(generation), InUse, every_seconds=_POLL_SECONDS)
        topics = await topics_of_generation(kafka, kafka, generation)
        for report in topics.values():
            if report.differences:
                log.warning("a topic is not as it should be; it is used as it is", topic=report.sentence())
        stores = await OpenStores.open(generation, encoder.dimension, runtime)
        self._health.up("stores")
        await self._note_outdated(stores)
        upkeep = Upkeep(runtime, stores)
        app = await self._app(topics, stores)
        documents = topics[self._names.documents]
        self._indexer = await attach_agents(runtime, app, documents, stores, upkeep.snapshots, parsers, encoder)
        app.on_partitions_assigned.connect(self._on_assigned, weak=False)  # type: ignore[arg-type]  # Faust's own stub
        runtime.cleanup.push_async_callback(app.stop)
        upkeep.start()
        runtime.cleanup.push_async_callback(self._lag.close)
        watchdog = Watchdog(self._lag, runtime.progress, runtime.metrics, self._health)
        count = partial(self._lag.partition_count, documents.name)
        runtime.run(watchdog.run(), watch_partitions(count, documents.name, documents.partitions), until_crashed(app))
        await app.start()
        if self._role.build is not None:
            runtime.run(self._build_monitor(stores, upkeep.snapshots, watchdog).run())
        seconds = round(time.monotonic() - began, 2)
        log.info("worker started", generation=generation.name, metrics=server.url, seconds=seconds)

    def stand_by(self, why: str) -> None:
        """Nothing is indexed, and all else continues, until another generation can be run."""
        self._health.stand_by(why)
        log.warning("standing by", why=why)

    async def pause(self) -> Mapping[int, int]:
        """From the next commit's end on nothing is committed, until `resume`; the last offset of the documents topic
        stored, by partition."""
        await self._runtime.commit_lock.acquire()
        self._is_paused = True
        return self._reached()

    def resume(self) -> None:
        """Let commits go on; nothing where they were not paused."""
        if self._is_paused:
            self._is_paused = False
            self._runtime.commit_lock.release()

    def _reached(self) -> dict[int, int]:
        """Nothing before the stores are open."""
        reached = {} if self._indexer is None else self._indexer.reached
        return {partition: stored.offset for partition, stored in reached.items()}

    async def aclose(self) -> None:
        """Cancel what is running, make a last snapshot, close the stores. Every step is tried."""
        await self._runtime.aclose()

    async def _load_encoder(self) -> PromptedEncoder:
        """An encoder that has encoded something. Waits for an endpoint that is away."""
        retrier = self._runtime.retrier("encoder", EncoderUnavailable)
        encoder = await retrier.retry_forever(lambda: asyncio.to_thread(self._warm_encoder))
        self._health.up("encoder")
        return encoder

    def _warm_encoder(self) -> PromptedEncoder:
        """Loaded, and its first text encoded, which takes longest. Nothing can end the thread this runs in."""
        self.is_loading_encoder = True
        try:
            encoder = self._role.load_encoder()
            encoder.encode([PROBE])
        finally:
            self.is_loading_encoder = False
        return encoder

    async def _find_broker(self) -> None:
        async def look() -> None:
            if not await asyncio.to_thread(answers_metadata, self._settings.kafka, seconds=2.0):
                raise Unreachable(
                    f"No Kafka broker answered at {self._settings.kafka} for {BROKER_WAIT_SECONDS:.0f} s. Start one "
                    "with 'thalweg up' or 'thalweg kafka', or set THALWEG_KAFKA__BOOTSTRAP_SERVERS."
                )

        await retry_for(BROKER_WAIT_SECONDS, look, Unreachable, every_seconds=_POLL_SECONDS)
        self._health.up("kafka")

    async def _lock(self, generation: Generation) -> None:
        """The worker that built it may still be closing it."""
        self._runtime.cleanup.enter_context(locked(generation.root, WORKER_LOCK, "worker"))

    async def _note_outdated(self, stores: OpenStores) -> None:
        if self._settings.language_model.base_url is not None:
            stored = await stores.graph_thread.run(stores.graph.extractors)
            if (note := outdated_note(stored, self._settings)) is not None:
                self._health.note_for_good(note)

    async def _app(self, topics: Mapping[str, TopicReport], stores: OpenStores) -> faust.App:
        """The Faust app; before it reads, the group's offsets are set back to what the stores hold. Raises StartAgain
        where the graph has to be made again."""
        runtime, kafka, generation = self._runtime, self._settings.kafka, stores.generation
        group = group_name(kafka.topic_prefix, generation.name)
        documents_topic, provenance_topic = self._names.documents, self._names.provenance
        contributions_topic = self._names.contributions(generation.name)
        stages = {
            documents_topic: documents_agent.STAGE,
            contributions_topic: graph_agent.STAGE,
            provenance_topic: provenance_agent.STAGE,
        }
        beginning = await runtime.partition_reader(contributions_topic, 0).beginning()
        if not stores.graph.follows(beginning, newest_mark(stores.reached)):
            problem = f"{contributions_topic} no longer has what follows the graph, which is made again from the log."
            log.error(problem)
            order_remake(generation)
            raise StartAgain(problem)
        stored: dict[TopicPartition, int | None] = {TopicPartition(contributions_topic, 0): stores.graph.position()}
        for partition in range(topics[documents_topic].partitions):
            reached = stores.reached.get(partition)
            stored[TopicPartition(documents_topic, partition)] = -1 if reached is None else reached.offset
        knows = stores.reached and not generation.reread_path.exists()
        for partition in range(topics[provenance_topic].partitions):
            stored[TopicPartition(provenance_topic, partition)] = None if knows else -1  # the group knows
        advice, is_restored = republish_advice(generation.data_dir), generation.restored_path.exists()
        states = await reconcile(kafka, group, stored, advice, is_restored=is_restored)
        for done_path in (generation.reread_path, generation.restored_path):
            done_path.unlink(missing_ok=True)
        for place, offset in stored.items():
            done = (states[place].committed or 0) - 1 if offset is None else offset
            runtime.progress.expect(stages[place.topic], place.topic, place.partition, done)
        partitions = topics[documents_topic].partitions
        return build_app(self._settings, kafka, group, runtime.skipped, partitions=partitions)

    def _build_monitor(self, stores: OpenStores, snapshots: Snapshots, watchdog: Watchdog) -> BuildMonitor:
        documents, progress = self._names.documents, self._runtime.progress
        return BuildMonitor(
            generation=stores.generation,
            base=self._role.intact_base(stores.generation),
            spans=lambda: self._lag.spans(documents),
            done=lambda: progress.reached().get(documents, {}),
            reached=self._reached,
            lag_seconds=lambda: (watchdog.lag_seconds or {}).get(documents_agent.STAGE),
            graph_is_current=stores.graph_is_current,
            make_snapshot=snapshots.make,
            count_chunks=lambda: stores.lance.run(stores.vectors.count_chunks),
        )

    async def _on_assigned(self, _app: Any, *_: Any, **__: Any) -> None:
        log.info("partitions assigned")
        self._health.up("partitions")
