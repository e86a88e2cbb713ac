"""The parts of the worker process: made in order, wired together, stopped in the reverse order."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any

import faust
import structlog

from indexer.embedding.encoder import Encoder, load_encoder
from indexer.errors import EncoderUnavailable
from indexer.generations import (
    Generation,
    Manifest,
    how_to_publish_again,
    kept_manifest,
    new_generation_name,
    open_generation,
)
from indexer.pipeline import EXTRACTOR_VERSION
from indexer.read.graph_snapshots import latest_snapshot
from indexer.runtime.memory import keep_memory_small
from indexer.schema import StoredPosition
from indexer.write.kuzu import GraphWriter
from indexer.write.lance import VectorWriter
from kafka_client.skipped_batches import SkippedBatches
from kafka_client.sync_clients import answers_metadata
from schemas.errors import Unreachable
from schemas.topics import TopicNames
from streams.agents import documents as documents_agent
from streams.agents import graph as graph_agent
from streams.agents import provenance as provenance_agent
from streams.agents.batching import CommitPace, Taken, fatal_on_error, no_pause
from streams.agents.documents import DocumentsAgent
from streams.agents.graph import GraphAgent
from streams.agents.provenance import ProvenanceAgent
from streams.faust_app import attach_agent, build_app, group_name, until_crashed
from streams.indexing.collection_settings import CollectionSettings
from streams.indexing.commit import DocumentIndexer
from streams.indexing.contributed import ContributedRecords
from streams.indexing.embed import PROBE, EncoderThread
from streams.indexing.missed_deletes import MissedDeletes
from streams.indexing.prepare import DocumentBuilder, Parsers, Preparer
from streams.indexing.relink import Relinker
from streams.kafka.log_identity import topics_of_generation
from streams.kafka.partition_reader import PartitionReader
from streams.kafka.partitioner import murmur2_partition, watch_partitions
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.settings_topic import AWAY, SettingsTopic
from streams.kafka.topics import TopicReport
from streams.metrics import Health, MetricsServer, WorkerMetrics
from streams.runtime.checksums import keep_recorded
from streams.runtime.heartbeat import Heartbeat
from streams.runtime.maintenance import keep_maintained
from streams.runtime.positions import reconcile
from streams.runtime.progress import Progress, TopicPartition
from streams.runtime.retry import Retrier
from streams.runtime.snapshots import Snapshots, SnapshotSchedule
from streams.runtime.store_thread import StoreThread
from streams.runtime.tuning import tune_gc
from streams.runtime.watchdog import KafkaLog, Watchdog
from streams.settings import WorkerSettings

_POLL_SECONDS = 0.25
_FIRST_WAIT_SECONDS = 0.5


class Worker:
    """All parts of the process. `live` starts them and returns only by an exception; `stop` stops what was started."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._connection = settings.kafka
        self._names = TopicNames(settings.kafka.topic_prefix)
        self._metrics = WorkerMetrics()
        self._health = Health(["kafka", "encoder", "stores", "partitions"])
        self._progress = Progress()
        self.heartbeat = Heartbeat(settings.storage.data_dir, self._health, self._progress)
        self._skipped = SkippedBatches(lambda: settings.kafka, self._names.curation)
        self._turn = asyncio.Lock()
        self._most_contributed = settings.kafka.max_graph_record_bytes - 64 * 1024
        self._cleanup = AsyncExitStack()
        self._background: list[asyncio.Task[None]] = []
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._log = structlog.get_logger("thalweg.worker")
        self.is_loading = False

    async def live(self) -> None:
        """Raises what made the worker fail."""
        began = time.monotonic()
        server = MetricsServer(self._metrics, self._health, self._settings.worker.metrics_port)
        self._cleanup.push_async_callback(asyncio.to_thread, server.close)
        parsers = Parsers.open(self._settings)
        self._cleanup.push_async_callback(parsers.close)
        encoder, _, _ = await asyncio.gather(self._load_encoder(), self._find_broker(), parsers.warm_up())
        generation = open_generation(self._settings.storage.data_dir.absolute(), self._manifest(encoder))
        topics = await topics_of_generation(self._connection, self._settings.kafka, generation)
        self._note_differences(topics.values())
        app = await self._wire(encoder, parsers, generation, topics)
        await app.start()
        tune_gc()
        self._keep(keep_memory_small())
        self._log.info(
            "worker started",
            generation=generation.name,
            metrics_port=server.port,
            seconds=round(time.monotonic() - began, 2),
        )
        await self._failed

    async def stop(self) -> None:
        """Cut off what is under way, make a last snapshot, close the stores. Every step is tried."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._cleanup.aclose()

    async def _load_encoder(self) -> Encoder:
        """An encoder that has encoded something. Waits for an endpoint that is away."""
        retrier = Retrier(
            "encoder", (EncoderUnavailable,), self._metrics, self._progress, first_wait_seconds=_FIRST_WAIT_SECONDS
        )
        encoder = await retrier.retry_forever(lambda: asyncio.to_thread(self._proven_encoder))
        self._health.up("encoder")
        return encoder

    def _proven_encoder(self) -> Encoder:
        """Loaded, and its first text encoded, which takes longest. Nothing can end the thread this runs in."""
        self.is_loading = True
        try:
            encoder = load_encoder(self._settings.embedding, kept_manifest(self._settings.storage.data_dir))
            encoder.encode([PROBE])
        finally:
            self.is_loading = False
        return encoder

    async def _find_broker(self) -> None:
        patience = self._settings.worker.broker_wait_seconds
        deadline = time.monotonic() + patience
        while not await asyncio.to_thread(answers_metadata, self._connection, seconds=2.0):
            if time.monotonic() > deadline:
                raise Unreachable(
                    f"No Kafka broker answered at {self._connection} for {patience:.0f} s. Start one with "
                    "'thalweg up' or 'thalweg kafka', or set THALWEG_KAFKA__BOOTSTRAP_SERVERS."
                )
            await asyncio.sleep(_POLL_SECONDS)
        self._health.up("kafka")

    def _manifest(self, encoder: Encoder) -> Manifest:
        return Manifest(
            generation=new_generation_name(self._settings.storage.data_dir),
            embedding_provider=encoder.provider,
            embedding_model=encoder.model,
            embedding_digest=encoder.digest,
            dimension=encoder.dimension,
            extractor=EXTRACTOR_VERSION,
            **self._settings.chunking.model_dump(),
        )

    def _note_differences(self, topics: Iterable[TopicReport]) -> None:
        for report in topics:
            if report.differences:
                self._log.warning("a topic is not as it should be; it is used as it is", topic=report.sentence())

    async def _wire(
        self, encoder: Encoder, parsers: Parsers, generation: Generation, topics: Mapping[str, TopicReport]
    ) -> faust.App:
        """Open the stores, set the group back where they need it, and build the app with its three agents."""
        worker = self._settings.worker
        names = self._names
        lance = self._store("lance")
        vectors = await lance.call(VectorWriter.open, generation, encoder.dimension)
        self._cleanup.push_async_callback(lance.close, vectors.close)
        kuzu = self._store("kuzu")
        graph = await kuzu.call(GraphWriter.open, generation, self._settings.storage.graph_buffer_bytes)
        self._cleanup.push_async_callback(kuzu.close, graph.close)
        reached = await lance.call(vectors.positions)
        graph_position = await kuzu.call(graph.position)
        self._health.up("stores")
        newest = latest_snapshot(generation.snapshots_dir)
        schedule = SnapshotSchedule.of(
            worker,
            pending=newest is None or newest.graph_position < graph_position,
            is_busy=lambda: self._progress.is_busy(documents_agent.STAGE, graph_agent.BUSY_WITHIN_SECONDS),
        )
        snapshots = Snapshots(
            writer=graph,
            thread=kuzu,
            schedule=schedule,
            snapshots_dir=generation.snapshots_dir,
            metrics=self._metrics,
            newest=newest,
        )
        self._cleanup.push_async_callback(snapshots.make)

        graph_topic = names.graph(generation.name)
        group = group_name(self._settings.kafka.topic_prefix, generation.name)
        stored = self._stored(topics, graph_topic, graph_position, reached)
        await self._expect(generation, group, stored, graph_topic)

        app = build_app(
            self._settings,
            self._connection,
            group,
            self._skipped,
            self._progress.unreadable,
            partitions=topics[names.documents].partitions,
        )
        producer = ConfirmedProducer(app.producer, names, generation.name, self._metrics, self._progress)
        encoder_thread = EncoderThread(encoder, self._metrics, self._progress)
        self._cleanup.push_async_callback(asyncio.to_thread, encoder_thread.close)
        settings = self._collection_settings(producer)
        builder = DocumentBuilder(
            Preparer(parsers, encoder_thread, self._settings.chunking.parameters()).prepare,
            encoder_thread,
            lance,
            vectors,
            encode_texts=worker.encode_texts,
            max_contribution_bytes=self._most_contributed,
            linking_of=settings.linking_of,
        )
        indexer = DocumentIndexer(
            topic=names.documents,
            generation=generation.name,
            limits=self._settings.limits,
            writer=vectors,
            thread=lance,
            builder=builder,
            producer=producer,
            metrics=self._metrics,
            choices=settings,
            reached=reached,
            commit_lock=self._turn,
            partition_of=murmur2_partition(topics[names.documents].partitions),
        )
        missed_deletes = self._missed_deletes(generation, vectors, lance, producer)
        await missed_deletes.find(reached, topics[names.documents].delete_retention_ms)
        documents = DocumentsAgent(
            names.documents,
            indexer,
            self._progress,
            worker.commit_documents,
            worker.commit_bytes,
            CommitPace(worker.gather_seconds),
        )
        contributions = GraphAgent(
            topic=graph_topic,
            writer=graph,
            thread=kuzu,
            producer=producer,
            schedule=schedule,
            progress=self._progress,
            metrics=self._metrics,
            feeding_stage=documents_agent.STAGE,
        )
        retrievals = ProvenanceAgent(
            topic=names.provenance, writer=vectors, thread=lance, producer=producer, progress=self._progress
        )
        self._attach_agents(app, documents, contributions, retrievals, graph_topic)
        app.on_partitions_assigned.connect(self._on_assigned, weak=False)  # type: ignore[arg-type]  # Faust's own stub
        self._cleanup.push_async_callback(app.stop)

        kafka_log = KafkaLog(self._connection, list(stored))
        self._cleanup.push_async_callback(kafka_log.close)
        watchdog = Watchdog(
            kafka_log, self._progress, self._metrics, self._health, patience_seconds=worker.watchdog_seconds
        )
        self._keep(watchdog.keep())
        self._keep(snapshots.run())
        upkeep = self._store("lance upkeep")
        self._keep(keep_maintained(vectors, upkeep, self._metrics, self._settings))
        self._keep(keep_recorded(vectors, self._store("checksums")))
        relinker = Relinker(
            orders=settings,
            contributed=ContributedRecords(self._partition_reader(graph_topic, 0)),
            writer=vectors,
            thread=lance,
            producer=producer,
            retrier=self._kafka_retrier(),
            turn=self._turn,
            max_contribution_bytes=self._most_contributed,
        )
        self._keep(relinker.keep())
        self._keep(missed_deletes.make_up())
        self._keep(watch_partitions(self._connection, names.documents, topics[names.documents].partitions))
        self._keep(until_crashed(app))
        return app

    def _stored(
        self,
        topics: Mapping[str, TopicReport],
        graph_topic: str,
        graph_position: int,
        reached: Mapping[int, StoredPosition],
    ) -> dict[TopicPartition, int | None]:
        """The last offset the stores hold of each partition that is read, -1 for none; None where the group knows."""
        documents, provenance = self._names.documents, self._names.provenance
        stored: dict[TopicPartition, int | None] = {TopicPartition(graph_topic, 0): graph_position}
        for partition in range(topics[documents].partitions):
            stored[TopicPartition(documents, partition)] = reached[partition].offset if partition in reached else -1
        for partition in range(topics[provenance].partitions):
            stored[TopicPartition(provenance, partition)] = None if reached else -1
        return stored

    def _missed_deletes(
        self, generation: Generation, vectors: VectorWriter, lance: StoreThread, producer: ConfirmedProducer
    ) -> MissedDeletes:
        documents = self._names.documents
        return MissedDeletes(
            open_partition=lambda partition: self._partition_reader(documents, partition),
            documents=vectors,
            thread=lance,
            producer=producer,
            retrier=self._kafka_retrier(),
            turn=self._turn,
            to_check=generation.missed_deletes_path,
        )

    def _partition_reader(self, topic: str, partition: int) -> PartitionReader:
        return PartitionReader(self._connection, topic, partition, self._skipped, self._progress.unreadable)

    def _collection_settings(self, producer: ConfirmedProducer) -> CollectionSettings:
        topic = self._names.curation
        settings_topic = SettingsTopic(
            self._connection,
            topic,
            group_name(self._settings.kafka.topic_prefix, "settings"),  # what was judged is so for all generations
            self._skipped,
            self._progress.unreadable,
        )
        self._cleanup.push_async_callback(settings_topic.close)
        chunking = self._settings.chunking.parameters()
        return CollectionSettings(topic, settings_topic, producer, chunking, self._kafka_retrier())

    def _kafka_retrier(self) -> Retrier:
        return Retrier("kafka", AWAY, self._metrics, self._progress, first_wait_seconds=_FIRST_WAIT_SECONDS)

    def _store(self, name: str) -> StoreThread:
        thread = StoreThread(name, self._metrics, self._progress)
        self._cleanup.callback(thread.end)
        return thread

    async def _expect(
        self, generation: Generation, group: str, stored: dict[TopicPartition, int | None], graph_topic: str
    ) -> None:
        advice = how_to_publish_again(generation.data_dir)
        states = await reconcile(self._connection, group, stored, advice)
        stages = {
            self._names.documents: documents_agent.STAGE,
            graph_topic: graph_agent.STAGE,
            self._names.provenance: provenance_agent.STAGE,
        }
        for partition, position in stored.items():
            offset = (states[partition].committed or 0) - 1 if position is None else position
            self._progress.expect(stages[partition.topic], partition.topic, partition.partition, offset)

    def _attach_agents(
        self,
        app: faust.App,
        documents: DocumentsAgent,
        contributions: GraphAgent,
        retrievals: ProvenanceAgent,
        graph_topic: str,
    ) -> None:
        worker, names = self._settings.worker, self._names
        quick, slow = worker.batch_wait_seconds, worker.later_batch_wait_seconds
        self._attach(app, "documents", names.documents, documents.run, worker.batch_records, quick, documents.pace.turn)
        self._attach(app, "graph", graph_topic, contributions.run, worker.graph_batch_records, slow)
        self._attach(app, "provenance", names.provenance, retrievals.run, worker.batch_records, slow)

    def _attach(
        self,
        app: faust.App,
        name: str,
        topic: str,
        run: Callable[[Taken], Awaitable[None]],
        batch_records: int,
        wait_seconds: float,
        pause: Callable[[], Awaitable[None]] = no_pause,
    ) -> None:
        guarded = fatal_on_error(run, self._fail)
        attach_agent(
            app, name, topic, guarded, batch_records=batch_records, batch_wait_seconds=wait_seconds, pause=pause
        )

    async def _on_assigned(self, _app: Any, *_: Any, **__: Any) -> None:
        self._log.info("partitions assigned")
        self._health.up("partitions")

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        task.add_done_callback(self._on_background_end)
        self._background.append(task)

    def _on_background_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self._failed.done():
            self._failed.set_exception(error)
