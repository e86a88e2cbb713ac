"""Everything the worker process owns: opened and wired in order, closed in the reverse order."""

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

import faust
import structlog

from indexer.embedding.encoder import PromptedEncoder
from indexer.errors import EncoderUnavailable
from indexer.extraction.mention_tagger import tag_with
from indexer.generation_folders import Generation, republish_advice
from indexer.graph.snapshots import latest_snapshot
from indexer.graph.store import order_remake
from indexer.read.published_graph import is_due as is_publication_due
from indexer.runtime.resources import trim_memory_periodically
from indexer.schema import newest_mark
from indexer.write.kuzu_publication import default_buffer_bytes
from kafka_client.partitioner import murmur2_partition
from kafka_client.skipped_batches import SkippedBatches
from kafka_client.sync_clients import answers_metadata
from schemas.errors import InUse, Unreachable
from schemas.orders import RELINK, REPAIR, REPLAY
from schemas.topics import TopicNames
from streams.agents import documents_agent, graph_agent, provenance_agent
from streams.agents.batching import (
    BATCH_RECORDS,
    BATCH_WAIT_SECONDS,
    GATHER_SECONDS,
    LATER_BATCH_WAIT_SECONDS,
    MOST_GATHER_SECONDS,
    CommitPace,
    attach_agent,
)
from streams.agents.documents_agent import COMMIT_BYTES, COMMIT_DOCUMENTS, DocumentsAgent
from streams.agents.graph_agent import GRAPH_BATCH_RECORDS, GraphAgent
from streams.agents.provenance_agent import ProvenanceAgent
from streams.errors import StartAgain
from streams.faust_app import build_app, group_name, until_crashed
from streams.generations.build import BuildMonitor
from streams.generations.healing import require_undamaged
from streams.generations.role import WorkerRole
from streams.indexing.carry_over import CarryOver
from streams.indexing.commit import DocumentIndexer
from streams.indexing.embed import PROBE, DocumentBuilder, EncoderThread, VectorLookup
from streams.indexing.extract import open_extractors, outdated_note, versions_of
from streams.indexing.missed_deletes import AWAY_TOO_LONG, MissedDeletes
from streams.indexing.order_runner import OrderRunner, relink, repair, replay
from streams.indexing.prepare import Parsers, Preparer
from streams.indexing.reapply import Reapplier
from streams.indexing.settings_reader import CollectionSettings
from streams.kafka.log_identity import reconcile, topics_of_generation
from streams.kafka.partition_reader import AWAY, PartitionReader, SettingsTopic
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.topics import TopicReport, watch_partitions
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
from streams.runtime.partition_progress import Progress, TopicPartition
from streams.runtime.retry import Retrier, retry_for
from streams.runtime.snapshot_schedule import (
    SNAPSHOT_IDLE_SECONDS,
    SNAPSHOT_MAX_SECONDS,
    SNAPSHOT_MIN_SECONDS,
    SNAPSHOT_SHARE,
    Snapshots,
    SnapshotSchedule,
)
from streams.runtime.store_thread import StoreThread
from streams.runtime.trimming import Trimmer
from streams.runtime.watchdog import KafkaLog, Watchdog
from streams.runtime.worker_health import Health, HealthServer, Heartbeat
from streams.settings import WorkerSettings
from streams.supervisor.data_directory import WORKER_LOCK, locked, make_directory
from streams.worker_metrics import WorkerMetrics
from streams.worker_stores import OpenStores

_POLL_SECONDS = 0.25
_LOCK_SECONDS = 30.0
BROKER_WAIT_SECONDS = 60.0  # of a start, for the first broker to answer
_FIRST_WAIT_SECONDS = 0.5
_BUSY_WITHIN_SECONDS = MOST_GATHER_SECONDS + 1.0  # small updates are gathered for so long


class WorkerContext:
    """`create` may be cancelled or fail at any point; `aclose` closes what was opened by then. `failure` is set to what
    ends a running worker."""

    def __init__(self, settings: WorkerSettings, build: str | None = None) -> None:
        """`build` names the generation to build beside the live one, which is run else."""
        self._settings = settings
        self._role = WorkerRole(settings, build)
        self._names = TopicNames(settings.kafka.topic_prefix)
        self._metrics = WorkerMetrics()
        self._metrics.measure_disk(settings.storage.data_dir)
        self._health = Health(["kafka", "encoder", "stores", "partitions"])
        self._progress = Progress()
        self.heartbeat = Heartbeat(make_directory(self._role.folder), self._health, self._progress)
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_loading_encoder = False
        self.is_running = False
        self._skipped = SkippedBatches(lambda: settings.kafka, self._names.curation)
        self._commit_lock = asyncio.Lock()  # whoever contributes to the graph takes it
        self._is_paused = False
        self._indexer: DocumentIndexer | None = None
        self._cleanup = AsyncExitStack()
        self._background: list[asyncio.Task[None]] = []
        self._log = structlog.get_logger("thalweg.worker")

    async def create(self) -> None:
        """Returns when the agents take records."""
        began = time.monotonic()
        worker = self._settings.worker
        server = HealthServer(self._metrics.registry, self._health, worker.metrics_port, worker.metrics_host)
        self.heartbeat.metrics_url = server.url
        self._cleanup.push_async_callback(asyncio.to_thread, server.close)
        parsers = Parsers.open(self._settings)
        self._cleanup.push_async_callback(parsers.close)
        encoder, _, _ = await asyncio.gather(self._load_encoder(), self._find_broker(), parsers.warm_up())
        generation = self._role.open_generation(encoder)
        require_undamaged(generation)
        if (note := self._role.note()) is not None:
            self._health.note_for_good(note)
        await retry_for(_LOCK_SECONDS, lambda: self._lock(generation), InUse, every_seconds=_POLL_SECONDS)
        topics = await topics_of_generation(self._settings.kafka, self._settings.kafka, generation)
        for report in topics.values():
            if report.differences:
                self._log.warning("a topic is not as it should be; it is used as it is", topic=report.sentence())
        stores = await self._open_stores(generation, encoder.dimension)
        if self._settings.language_model.base_url is not None:
            stored = await stores.graph_thread.run(stores.graph.extractors)
            if (note := outdated_note(stored, self._settings)) is not None:
                self._health.note_for_good(note)
        communities, publisher = self._communities(generation), self._publisher(generation)
        snapshots = self._snapshots(generation, stores, communities.changed, publisher.changed)
        self._cleanup.push_async_callback(snapshots.make)
        app = await self._app(generation, topics, stores)
        await self._attach_agents(app, generation, topics, stores, snapshots, parsers, encoder)
        self._cleanup.push_async_callback(app.stop)
        self._run(snapshots.run())
        self._run(snapshots.check())
        self._run(communities.run())
        self._run(communities.check())
        if worker.publish_graph:
            self._run(publisher.run())
            self._run(publisher.check())
        watchdog = self._watchdog()
        self._run(watchdog.run())
        self._run(
            maintain_tables(stores.vectors, self._store_thread("lance maintenance"), self._metrics, self._settings)
        )
        self._run(check_files(generation, is_live=self._role.build is None))
        self._run(record_checksums(stores.vectors, self._store_thread("checksums")))
        partitions = topics[self._names.documents].partitions
        self._run(watch_partitions(self._settings.kafka, self._names.documents, partitions))
        self._run(until_crashed(app))
        self._run(trim_memory_periodically())
        await app.start()
        if self._role.build is not None:
            self._run(self._build_monitor(generation, stores, snapshots, watchdog, partitions).run())
        self._log.info(
            "worker started",
            generation=generation.name,
            metrics=server.url,
            seconds=round(time.monotonic() - began, 2),
        )

    def stand_by(self, why: str) -> None:
        """Nothing is indexed, and all goes on else, until another generation can be run."""
        self._health.stand_by(why)
        self._log.warning("standing by", why=why)

    async def pause(self) -> Mapping[int, int]:
        """From the next commit's end on nothing is committed, until `resume`; the last offset of the documents topic
        stored, by partition."""
        await self._commit_lock.acquire()
        self._is_paused = True
        return self._reached()

    def resume(self) -> None:
        """Let commits go on; nothing where they were not paused."""
        if self._is_paused:
            self._is_paused = False
            self._commit_lock.release()

    def _reached(self) -> dict[int, int]:
        """Nothing before the stores are open."""
        reached = {} if self._indexer is None else self._indexer.reached
        return {partition: stored.offset for partition, stored in reached.items()}

    async def aclose(self) -> None:
        """Cancel what is running, make a last snapshot, close the stores. Every step is tried."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._cleanup.aclose()

    async def _load_encoder(self) -> PromptedEncoder:
        """An encoder that has encoded something. Waits for an endpoint that is away."""
        retrier = self._retrier("encoder", EncoderUnavailable)
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
        self._cleanup.enter_context(locked(generation.root, WORKER_LOCK, "worker"))

    async def _open_stores(self, generation: Generation, dimension: int) -> OpenStores:
        lance, graph_thread = self._store_thread("lance"), self._store_thread("graph")
        kept = self._settings.worker.kept_snapshots
        stores = await OpenStores.open(generation, dimension, kept, lance, graph_thread, self._cleanup)
        self._health.up("stores")
        return stores

    def _communities(self, generation: Generation) -> Communities:
        schedule = SnapshotSchedule(
            idle_seconds=SNAPSHOT_IDLE_SECONDS,
            min_seconds=COMMUNITY_MIN_SECONDS,
            max_seconds=COMMUNITY_MAX_SECONDS,
            share=COMMUNITY_SHARE,
            pending=is_due(generation, latest_snapshot(generation.snapshots_dir)),
            is_busy=self._is_indexing,
        )
        return Communities(CommunityFinder(generation), self._store_thread("communities"), schedule)

    def _publisher(self, generation: Generation) -> GraphPublisher:
        schedule = SnapshotSchedule(
            idle_seconds=SNAPSHOT_IDLE_SECONDS,
            min_seconds=SNAPSHOT_MIN_SECONDS,
            max_seconds=math.inf,
            share=SHARE,
            idle_share=SHARE,
            pending=is_publication_due(generation),
            is_busy=self._is_indexing,
        )
        log_file = make_directory(generation.data_dir / "logs") / f"publication-{generation.name}.log"
        start = partial(publishing_process, generation, log_file, default_buffer_bytes())
        return GraphPublisher(generation, start, schedule, self._metrics)

    def _is_indexing(self) -> bool:
        return self._progress.is_busy(documents_agent.STAGE, _BUSY_WITHIN_SECONDS)

    def _snapshots(self, generation: Generation, stores: OpenStores, *published: Callable[[], None]) -> Snapshots:
        newest = latest_snapshot(generation.snapshots_dir)
        schedule = SnapshotSchedule(
            idle_seconds=SNAPSHOT_IDLE_SECONDS,
            min_seconds=SNAPSHOT_MIN_SECONDS,
            max_seconds=SNAPSHOT_MAX_SECONDS,
            share=SNAPSHOT_SHARE,
            pending=newest is None or newest.graph_position < stores.graph.position(),
            is_busy=self._is_indexing,
        )
        return Snapshots(
            writer=stores.graph,
            thread=stores.graph_thread,
            beside=self._store_thread("graph snapshots"),
            schedule=schedule,
            metrics=self._metrics,
            newest=newest,
            published=published,
        )

    async def _app(self, generation: Generation, topics: Mapping[str, TopicReport], stores: OpenStores) -> faust.App:
        """The Faust app; before it reads, the group's offsets are set back to what the stores hold. Raises StartAgain
        where the graph has to be made again."""
        group = group_name(self._settings.kafka.topic_prefix, generation.name)
        documents_topic, provenance_topic = self._names.documents, self._names.provenance
        contributions_topic = self._names.contributions(generation.name)
        stages = {
            documents_topic: documents_agent.STAGE,
            contributions_topic: graph_agent.STAGE,
            provenance_topic: provenance_agent.STAGE,
        }
        beginning = await self._partition_reader(contributions_topic, 0).beginning()
        if not stores.graph.follows(beginning, newest_mark(stores.reached)):
            problem = f"{contributions_topic} no longer has what follows the graph, which is made again from the log."
            self._log.error(problem)
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
        states = await reconcile(self._settings.kafka, group, stored, advice, is_restored=is_restored)
        for done_path in (generation.reread_path, generation.restored_path):
            done_path.unlink(missing_ok=True)
        for place, offset in stored.items():
            done = (states[place].committed or 0) - 1 if offset is None else offset
            self._progress.expect(stages[place.topic], place.topic, place.partition, done)
        return build_app(
            self._settings,
            self._settings.kafka,
            group,
            self._skipped,
            self._progress.unreadable,
            partitions=topics[documents_topic].partitions,
        )

    async def _attach_agents(
        self,
        app: faust.App,
        generation: Generation,
        topics: Mapping[str, TopicReport],
        stores: OpenStores,
        snapshots: Snapshots,
        parsers: Parsers,
        encoder: PromptedEncoder,
    ) -> None:
        names = self._names
        contributions_topic = names.contributions(generation.name)
        is_new = self._role.is_new_letter(generation, names.documents)
        producer = ConfirmedProducer(app.producer, names, generation.name, self._metrics, self._progress, is_new=is_new)
        collection_settings = self._collection_settings(producer)
        vectors = self._role.vectors(generation, stores.vectors)
        builder = self._builder(parsers, encoder, vectors, stores, collection_settings)
        partition_of = murmur2_partition(topics[names.documents].partitions)
        indexer = self._document_indexer(generation, stores, producer, collection_settings, builder, partition_of)
        self._indexer = indexer
        missed_deletes = self._missed_deletes(generation, stores, producer)
        await missed_deletes.find(stores.reached, topics[names.documents].delete_retention_ms)
        if missed_deletes.were_found:
            self._health.note_for_good(AWAY_TOO_LONG)
        self._run(missed_deletes.delete())
        readers = [self._partition_reader(names.documents, at) for at in range(topics[names.documents].partitions)]
        reapplier = Reapplier(readers, indexer, stores, snapshots.make, self._commit_lock)
        retrier = self._retrier("kafka", *AWAY)
        orders: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()
        if self._role.build is None:  # all that is built is linked by the current rules
            orders = OrderRunner(
                generation.name,
                collection_settings,
                {
                    RELINK: partial(relink, reapplier, partial(stores.lance.run, stores.vectors.live_positions)),
                    REPAIR: partial(repair, reapplier, partial(order_remake, generation)),
                    REPLAY: partial(replay, reapplier),
                },
                producer,
                retrier,
                self._commit_lock,
            ).loops()
            self._run(CarryOver(collection_settings, producer, partition_of).run())
        self._run(self._complete_graph(stores, reapplier, snapshots, retrier, orders))

        pace = CommitPace(GATHER_SECONDS)
        documents_agent = DocumentsAgent(names.documents, indexer, self._progress, COMMIT_DOCUMENTS, COMMIT_BYTES, pace)
        graph_agent = self._graph_agent(contributions_topic, stores, producer, snapshots)
        provenance_agent = ProvenanceAgent(
            topic=names.provenance,
            writer=stores.vectors,
            thread=stores.lance,
            producer=producer,
            progress=self._progress,
        )
        attach = partial(attach_agent, app, fail=self._fail)
        quick, slow = BATCH_WAIT_SECONDS, LATER_BATCH_WAIT_SECONDS
        attach("documents", names.documents, documents_agent.run, BATCH_RECORDS, quick, pause=pace.wait)
        attach("graph", contributions_topic, graph_agent.run, GRAPH_BATCH_RECORDS, slow)
        attach("provenance", names.provenance, provenance_agent.run, BATCH_RECORDS, slow)
        self._run(Trimmer(self._settings.kafka, contributions_topic, generation, stores.mark).run())
        app.on_partitions_assigned.connect(self._on_assigned, weak=False)  # type: ignore[arg-type]  # Faust's own stub

    async def _complete_graph(
        self,
        stores: OpenStores,
        reapplier: Reapplier,
        snapshots: Snapshots,
        retrier: Retrier,
        afterwards: Sequence[Callable[[], Coroutine[Any, Any, None]]],
    ) -> None:
        """Where the graph lacks documents, make them again and publish it; what compares with the graph begins
        afterwards."""
        if not stores.graph.is_complete:
            await retrier.retry_forever(reapplier.complete_graph)
            stores.graph.complete()
            snapshots.schedule.changed()
            await snapshots.make()
        for run in afterwards:
            self._run(run())

    def _document_indexer(
        self,
        generation: Generation,
        stores: OpenStores,
        producer: ConfirmedProducer,
        collection_settings: CollectionSettings,
        builder: DocumentBuilder,
        partition_of: Callable[[bytes], int],
    ) -> DocumentIndexer:
        return DocumentIndexer(
            topic=self._names.documents,
            generation=generation.name,
            limits=self._settings.limits,
            writer=stores.vectors,
            thread=stores.lance,
            builder=builder,
            producer=producer,
            metrics=self._metrics,
            collection_settings=collection_settings,
            reached=stores.reached,
            commit_lock=self._commit_lock,
            partition_of=partition_of,
        )

    def _missed_deletes(self, generation: Generation, stores: OpenStores, producer: ConfirmedProducer) -> MissedDeletes:
        return MissedDeletes(
            open_partition=lambda partition: self._partition_reader(self._names.documents, partition),
            documents=stores.vectors,
            thread=stores.lance,
            producer=producer,
            retrier=self._retrier("kafka", *AWAY),
            commit_lock=self._commit_lock,
            to_check=generation.missed_deletes_path,
        )

    def _graph_agent(
        self, topic: str, stores: OpenStores, producer: ConfirmedProducer, snapshots: Snapshots
    ) -> GraphAgent:
        return GraphAgent(
            topic=topic,
            writer=stores.graph,
            thread=stores.graph_thread,
            producer=producer,
            snapshots=snapshots,
            progress=self._progress,
            metrics=self._metrics,
        )

    def _build_monitor(
        self, generation: Generation, stores: OpenStores, snapshots: Snapshots, watchdog: Watchdog, partitions: int
    ) -> BuildMonitor:
        documents_log = KafkaLog(
            self._settings.kafka, [TopicPartition(self._names.documents, number) for number in range(partitions)]
        )
        self._cleanup.push_async_callback(documents_log.close)
        return BuildMonitor(
            generation=generation,
            base=self._role.intact_base(generation),
            documents_log=documents_log,
            progress=self._progress,
            reached=self._reached,
            lag_seconds=lambda: (watchdog.lag_seconds or {}).get(documents_agent.STAGE),
            graph_is_current=stores.graph_is_current,
            make_snapshot=snapshots.make,
            count_chunks=lambda: stores.lance.run(stores.vectors.count_chunks),
        )

    def _builder(
        self,
        parsers: Parsers,
        encoder: PromptedEncoder,
        vectors: VectorLookup,
        stores: OpenStores,
        collection_settings: CollectionSettings,
    ) -> DocumentBuilder:
        encoder_thread = EncoderThread(encoder, self._metrics, self._progress, tag=tag_with(encoder))
        self._cleanup.push_async_callback(asyncio.to_thread, encoder_thread.close)
        extractors = open_extractors(self._settings, self._metrics, self._progress)
        for each in extractors.values():
            self._cleanup.callback(each.close)
        return DocumentBuilder(
            Preparer(parsers, encoder_thread, self._role.chunking).prepare,
            encoder_thread,
            stores.lance,
            vectors,
            linking_of=collection_settings.linking_of,
            extractors=extractors,
        )

    def _collection_settings(self, producer: ConfirmedProducer) -> CollectionSettings:
        settings_topic = SettingsTopic(
            self._settings.kafka,
            self._names.curation,
            group_name(self._settings.kafka.topic_prefix, "settings"),  # shared by all generations
            self._skipped,
            self._progress.unreadable,
        )
        self._cleanup.push_async_callback(settings_topic.close)
        return CollectionSettings(
            self._names.curation,
            settings_topic,
            producer,
            self._role.chunking,
            self._retrier("kafka", *AWAY),
            versions_of(self._settings),
        )

    def _partition_reader(self, topic: str, partition: int) -> PartitionReader:
        return PartitionReader(self._settings.kafka, topic, partition, self._skipped, self._progress.unreadable)

    def _watchdog(self) -> Watchdog:
        kafka_log = KafkaLog(self._settings.kafka, list(self._progress.partitions))
        self._cleanup.push_async_callback(kafka_log.close)
        return Watchdog(
            kafka_log,
            self._progress,
            self._metrics,
            self._health,
        )

    def _retrier(self, target: str, *errors: type[Exception]) -> Retrier:
        return Retrier(target, errors, self._metrics, self._progress, first_wait_seconds=_FIRST_WAIT_SECONDS)

    def _store_thread(self, name: str) -> StoreThread:
        thread = StoreThread(name, self._metrics, self._progress)
        self._cleanup.callback(thread.end)
        return thread

    async def _on_assigned(self, _app: Any, *_: Any, **__: Any) -> None:
        self._log.info("partitions assigned")
        self._health.up("partitions")

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        """In the background; its failure is the worker's."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._on_background_end)
        self._background.append(task)

    def _on_background_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self.failure.done():
            self.failure.set_exception(error)
