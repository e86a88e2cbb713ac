"""The parts of the running service: made and started in order by `create`, stopped in order by `aclose`."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import structlog
from aiokafka import TopicPartition
from fastapi import Request

from indexer.errors import DamagedStore, IncompatibleGeneration, OtherFormat
from indexer.generation_folders import Manifest, current_manifest
from indexer.runtime.circuit_breaker import RESET_SECONDS
from indexer.runtime.resources import trim_memory_periodically
from kafka_client.skipped_batches import SkippedBatches
from query_api.admission import MAX_WAIT_SECONDS, SearchAdmission
from query_api.dead_letters.letter_follower import LetterFollower
from query_api.dead_letters.letter_pages import LetterPages
from query_api.entities.catalogue import EntityCatalogues
from query_api.entities.earlier_graphs import EarlierGraphs
from query_api.errors import ApiProblem
from query_api.index.lag import LagMonitor, UnreadableBatchMonitor
from query_api.index.log_identity import LogIdentity
from query_api.index.manager import REFRESH_SECONDS, NotYetIndexed, ServiceStopping, SnapshotManager, covers
from query_api.index.search_snapshot import Snapshot
from query_api.index.store_opening import Stores
from query_api.index.worker_state import WorkerMonitor
from query_api.ingest.own_writes import OwnWrites
from query_api.ingest.producer import WRITE_SECONDS, LogWriter
from query_api.operations.canary import CANARY_SECONDS, Canary
from query_api.process_pool import SEARCH_THREADS, SearchPool, search_process_count
from query_api.provenance_queue import CAPACITY, FLUSH_SECONDS, ProvenanceQueue
from query_api.question_encoder import LoadEncoder, ServedModel, load_encoder
from query_api.rerankers.reranker import ServedReranker
from query_api.retrieval.cache import CACHE_BYTES, CACHE_ENTRIES, CACHE_SECONDS, ResultCache
from query_api.retrieval.pagination import (
    CURSOR_SECONDS,
    CURSOR_SNAPSHOTS,
    PinnedSnapshots,
    reads_tables,
    snapshot_gone,
    snapshot_of_page,
)
from query_api.retrieval.pipeline import SearchEngine
from query_api.retrieval.service import Retriever
from query_api.service_metrics import ServiceMetrics
from query_api.settings import ServiceSettings
from query_api.sse.resume_buffer import REPLAY_BYTES, REPLAY_SECONDS, REPLAY_STREAMS, ReplayBuffer
from query_api.sse.stream import KEEP_ALIVE_SECONDS, SearchStreams
from schemas.errors import MalformedToken
from schemas.ids import format_positions
from schemas.receipts import parse_token
from schemas.runtime import find_running, installation_of
from schemas.search import SearchRequest
from schemas.settings import KafkaConnection
from schemas.topics import TopicNames

log = structlog.get_logger(__name__)

R = TypeVar("R")

PRUNE_SECONDS = 5.0
SEARCHES_A_PROCESS = 2  # one computes while the other waits for a thread
WITHOUT_A_MODEL = "Searches that need no vector (`mode=keyword`, `mode=structured`) are answered."


@dataclass
class Service:
    """What the routes work with, on the event loop that made it."""

    settings: ServiceSettings
    topics: TopicNames
    metrics: ServiceMetrics
    skipped: SkippedBatches
    snapshots: SnapshotManager
    catalogues: EntityCatalogues
    earlier_graphs: EarlierGraphs
    model: ServedModel
    reranker: ServedReranker | None
    engine: SearchEngine
    log_watch: LagMonitor
    log_identity: LogIdentity
    unreadable: UnreadableBatchMonitor
    worker_watch: WorkerMonitor
    canary: Canary
    dead_letters: LetterFollower
    dead_letter_pages: LetterPages
    writer: LogWriter
    provenance: ProvenanceQueue
    admission: SearchAdmission
    cache: ResultCache
    pinned: PinnedSnapshots
    searches: SearchPool
    retriever: Retriever
    replay: ReplayBuffer
    streams: SearchStreams
    version: str
    installation: str  # the id of the data directory; empty where it has none
    locate_broker: Callable[[], KafkaConnection | None]  # the settings', else that of this data directory
    _provenance_writer: LogWriter
    _search_threads: ThreadPoolExecutor
    _read_threads: ThreadPoolExecutor
    own_writes: OwnWrites = field(default_factory=OwnWrites)
    _tasks: list["asyncio.Task[None]"] = field(default_factory=list)
    _started: float = field(default_factory=time.monotonic)

    @classmethod
    async def create(
        cls,
        settings: ServiceSettings,
        *,
        stores: Stores | None = None,
        engine: SearchEngine | None = None,
        load_encoder: LoadEncoder = load_encoder,
        encoder_retry_seconds: float = RESET_SECONDS,
    ) -> "Service":
        """The service with these settings, its background work begun; what is not given is made by them."""
        block, kafka = settings.service, settings.kafka
        topics, metrics = TopicNames(kafka.topic_prefix), ServiceMetrics()

        def locate_broker() -> KafkaConnection | None:
            if kafka.bootstrap_servers:
                return kafka
            running = find_running(settings.storage.data_dir)
            return kafka.at(running.kafka) if running else None

        def other_log() -> str | None:
            return service.other_log()

        def log_writer(compression: str | None = None) -> LogWriter:
            return LogWriter(
                locate_broker,
                kafka.max_record_bytes,
                WRITE_SECONDS,
                compression=compression,
                other_log=other_log,
            )

        skipped = SkippedBatches(locate_broker, topics.curation)
        stores = stores or Stores(block.resident_text_bytes, topics.documents)
        model = ServedModel(settings.embedding, settings.storage.data_dir, load_encoder, encoder_retry_seconds)
        snapshots = SnapshotManager(settings, stores, locate_broker, metrics, skipped, model.prepare, REFRESH_SECONDS)
        reranker = ServedReranker(settings.reranker) if settings.reranker.configured else None
        engine = engine or SearchEngine(reranker)
        log_watch = LagMonitor(locate_broker, snapshots.applied)
        worker_watch, writer = WorkerMonitor(settings.storage.data_dir), log_writer()
        dead_letters = LetterFollower(locate_broker, topics, lambda: snapshots.current)
        snapshots.on_receipt = dead_letters.note_receipt
        provenance_writer = log_writer("gzip")
        provenance = ProvenanceQueue(
            provenance_writer,
            topics.provenance,
            CAPACITY,
            REPLAY_STREAMS,
            metrics.provenance_dropped.inc,
        )
        search_threads = ThreadPoolExecutor(SEARCH_THREADS, thread_name_prefix="search")
        searches = SearchPool(engine, search_threads, block.search_processes)
        cache = ResultCache(CACHE_ENTRIES, CACHE_SECONDS, CACHE_BYTES)
        pinned = PinnedSnapshots(CURSOR_SNAPSHOTS, CURSOR_SECONDS)
        retriever = Retriever(model, searches, metrics, provenance, cache, pinned, resumable_seconds=REPLAY_SECONDS)
        replay = ReplayBuffer(REPLAY_STREAMS, REPLAY_SECONDS, REPLAY_BYTES)
        service = cls(
            settings=settings,
            topics=topics,
            metrics=metrics,
            skipped=skipped,
            snapshots=snapshots,
            catalogues=EntityCatalogues(),
            earlier_graphs=EarlierGraphs(),
            model=model,
            reranker=reranker,
            engine=engine,
            log_watch=log_watch,
            log_identity=LogIdentity(locate_broker, topics.documents, lambda: log_watch.reachable),
            unreadable=UnreadableBatchMonitor(
                locate_broker,
                lambda: _next_offsets(snapshots, log_watch),
                TopicPartition(topics.curation, 0),
                skipped,
            ),
            worker_watch=worker_watch,
            canary=Canary(topics.documents, writer, snapshots, log_watch, worker_watch, CANARY_SECONDS),
            dead_letters=dead_letters,
            dead_letter_pages=LetterPages(dead_letters),
            writer=writer,
            provenance=provenance,
            admission=SearchAdmission(
                max(SEARCH_THREADS, SEARCHES_A_PROCESS * search_process_count(block.search_processes)),
                MAX_WAIT_SECONDS,
                lambda reason: metrics.searches_refused.labels(reason=reason).inc(),
            ),
            cache=cache,
            pinned=pinned,
            searches=searches,
            retriever=retriever,
            replay=replay,
            streams=SearchStreams(retriever.retrieve, replay, metrics.sse_clients, KEEP_ALIVE_SECONDS),
            version=_version(),
            installation=installation_of(settings.storage.data_dir),
            locate_broker=locate_broker,
            _provenance_writer=provenance_writer,
            _search_threads=search_threads,
            _read_threads=ThreadPoolExecutor(2, thread_name_prefix="reading"),
        )
        service._start()
        return service

    def _start(self) -> None:
        background: dict[str, Coroutine[Any, Any, None]] = {
            "snapshots": self.snapshots.run(),
            "log watch": self.log_watch.run(),
            "log identity": self.log_identity.run(),
            "worker watch": self.worker_watch.run(),
            "dead letter count": self.dead_letters.run(),
            "unreadable batches": self.unreadable.run(),
            "canary": self.canary.run(),
            "provenance": self.provenance.run(),
            "model": self.model.run(),
            "re-ranker": self._load_reranker(),
            "pruning": self._prune(),
            "memory": trim_memory_periodically(),
        }
        for name, work in background.items():
            task = asyncio.create_task(work, name=name)
            task.add_done_callback(_log_death)
            self._tasks.append(task)

    async def aclose(self) -> None:
        """Send what waits to be sent, then stop the background work and let go of all that is open."""
        await self.provenance.flush(FLUSH_SECONDS)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.searches.close()
        if self.reranker is not None:
            self.reranker.close()
        await self.writer.close()
        await self._provenance_writer.close()
        self._search_threads.shutdown(wait=False, cancel_futures=True)
        self._read_threads.shutdown(wait=False, cancel_futures=True)

    @property
    def uptime_seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def manifest(self) -> Manifest | None:
        """That of the generation that is served."""
        return None if self.snapshots.served is None else self.snapshots.served.manifest

    def other_log(self) -> str | None:
        """A sentence where the stores were filled from another log than the one that writes would go to."""
        manifest = self.manifest
        if manifest is None:  # while the stores are being opened, or cannot be
            with suppress(DamagedStore, IncompatibleGeneration, OtherFormat, OSError):
                manifest = current_manifest(self.settings.storage.data_dir)
        return None if manifest is None else self.log_identity.mismatch(manifest)

    async def read(self, work: Callable[[], R]) -> R:
        """Run a look-up in the stores in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._read_threads, work)

    def snapshot(self) -> Snapshot:
        """The current one. Raises ApiProblem 503 while there is none."""
        if self.snapshots.current is None:
            healing = self.worker_watch.healing
            problem = self.snapshots.problem or "The stores are being opened."
            raise not_ready(problem if healing is None else f"{problem} {healing.message}")
        return self.snapshots.current

    async def snapshot_for(self, search: SearchRequest) -> Snapshot:
        """The snapshot a search is to read: that of its cursor, else one at least as new as the token `after`. Raises
        ApiProblem."""
        if search.needs_vector and (problem := self.model.problem(self.manifest)):
            raise not_ready(f"{problem} {WITHOUT_A_MODEL}")
        positions = None if search.after is None else self.positions_of(search.after)
        if search.cursor is None:
            return self.snapshot() if positions is None else await self.reach(positions, search.wait_seconds)
        snapshot = snapshot_of_page(search, search.cursor, self.pinned)
        if reads_tables(search, snapshot) and not await self.read(snapshot.text.is_kept):
            raise snapshot_gone()
        if positions is not None and not covers(snapshot, positions):
            raise ApiProblem(
                400,
                "Snapshot too old",
                "The cursor's snapshot does not show `after`: begin again without `cursor`.",
            )
        return snapshot

    async def reach(self, positions: dict[int, int], wait_seconds: float) -> Snapshot:
        """A snapshot that shows these positions. Raises ApiProblem 503 with what has been reached."""
        try:
            return await self.snapshots.wait_for(positions, seconds=wait_seconds)
        except ServiceStopping as error:
            raise ApiProblem(503, "Stopping", str(error), retry_after_seconds=5) from error
        except NotYetIndexed as error:
            raise ApiProblem(
                503,
                "Not yet indexed",
                f"{error}{self._beyond_the_log(positions)}",
                retry_after_seconds=1,
                members={"reached": error.reached},
            ) from error

    def _beyond_the_log(self, positions: Mapping[int, int]) -> str:
        """A sentence where the log has no record at a position; empty while that is not known."""
        ends = self.log_watch.ends(self.topics.documents)
        beyond = {
            number: ends[number] for number, offset in positions.items() if offset >= ends.get(number, offset + 1)
        }
        if not beyond:
            return ""
        return (
            f" Nothing is written there: the log ends before {format_positions(beyond)}. Look whether the token is of "
            "another installation, or was mistyped."
        )

    def positions_of(self, token: str) -> dict[int, int]:
        """The positions a token names. Raises ApiProblem 400 for what is no token, 409 for one of another log."""
        try:
            parsed = parse_token(token)
        except MalformedToken as error:
            raise ApiProblem(400, "Malformed token", str(error)) from error
        if self.manifest is not None:
            refusal = self.log_identity.refusal(parsed, self.manifest)
            if refusal is not None:
                raise ApiProblem(409, "Token of another log", refusal)
        self.require_partition(max(parsed.positions))
        return parsed.positions

    def require_partition(self, number: int) -> None:
        """Raises ApiProblem 400 for one that the documents topic does not have, as far as that is known."""
        count = self.log_watch.partition_count(self.topics.documents)
        if count is not None and number >= count:
            raise ApiProblem(
                400, "No such partition", f"There is no partition {number}: the documents topic has 0 to {count - 1}."
            )

    async def _load_reranker(self) -> None:
        """After the encoder, which searches cannot do without: beside it, each would keep the other waiting."""
        if self.reranker is not None:
            await self.model.loaded.wait()
            await asyncio.to_thread(self.reranker.load)

    async def _prune(self) -> None:
        while True:
            await asyncio.sleep(PRUNE_SECONDS)
            self.replay.prune()
            self.cache.prune()
            self.pinned.prune()
            self.earlier_graphs.prune()
            self.provenance.release()
            self.searches.prune(self.snapshots.current)


async def service_of(request: Request) -> Service:
    """The service of the app a request came to; a FastAPI dependency, async, so it needs no thread."""
    service: Service = request.app.state.service
    return service


def not_ready(reason: str) -> ApiProblem:
    return ApiProblem(503, "Not ready", reason, retry_after_seconds=2)


def _next_offsets(snapshots: SnapshotManager, log_watch: LagMonitor) -> dict[TopicPartition, int]:
    """The partitions with records that searches do not show, and the offset that is wanted next."""
    return {
        TopicPartition(topic, partition): applied.get(partition, -1) + 1
        for topic, applied in snapshots.applied().items()
        for partition, lag in log_watch.lag(topic, applied).items()
        if lag.records
    }


def _log_death(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("background work died", work=task.get_name(), exc_info=error)


def _version() -> str:
    try:
        return version("thalweg")
    except PackageNotFoundError:
        return "0+source"
