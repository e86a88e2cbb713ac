"""The parts of the running service: made and begun in their order, ended in the opposite one by `aclose`."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import structlog
from fastapi import Request

from indexer.errors import DamagedStore, IncompatibleGeneration, OtherFormat
from indexer.generation_folders import Manifest, current_manifest
from indexer.runtime.chat_model import ChatModel
from indexer.runtime.circuit_breaker import RESET_SECONDS
from indexer.runtime.resources import trim_memory_periodically
from kafka_client.log_identity import LogIdentity
from kafka_client.skipped_batches import SkippedBatches
from kafka_client.topic_lag import LagMonitor
from kafka_client.topic_offsets import TopicPartition
from query_api.admission import MAX_WAIT_SECONDS, SearchAdmission
from query_api.answers.model.writer import HOW_TO_CONFIGURE, AnswerWriter
from query_api.dead_letters.letter_follower import LetterFollower
from query_api.dead_letters.letter_pages import LetterPages
from query_api.entities.answer_subgraph import answer_subgraph
from query_api.entities.catalogue import EntityCatalogues
from query_api.entities.earlier_graphs import EarlierGraphs
from query_api.errors import ApiProblem, invalid_request
from query_api.index.manager import REFRESH_SECONDS, NotYetIndexed, ServiceStopping, SnapshotManager, covers
from query_api.index.search_snapshot import Snapshot
from query_api.index.store_opening import Stores
from query_api.index.unreadable_batch_monitor import UnreadableBatchMonitor
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
from query_api.saved.items import SavedItems
from query_api.service_metrics import ServiceMetrics
from query_api.settings import ServiceSettings
from query_api.sse.resume_buffer import REPLAY_BYTES, REPLAY_SECONDS, REPLAY_STREAMS, ReplayBuffer
from query_api.sse.stream import KEEP_ALIVE_SECONDS, SearchStreams
from query_api.study.kept_summaries import KeptSummaries
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


class Service:
    """What the routes work with, on the event loop that made it: the log, the stores, the models, searches, and watches
    over all of them. Each is made and begun after what it needs, and ended before that."""

    def __init__(
        self,
        settings: ServiceSettings,
        *,
        stores: Stores | None = None,
        engine: SearchEngine | None = None,
        load_encoder: LoadEncoder = load_encoder,
        encoder_retry_seconds: float = RESET_SECONDS,
    ) -> None:
        """Stores and engine that are not given are made by the settings. An encoder that is away is asked again after
        `encoder_retry_seconds`."""
        self.settings = settings
        self.topics, self.metrics = TopicNames(settings.kafka.topic_prefix), ServiceMetrics()
        self.version = installed_version()
        self.installation = installation_of(settings.storage.data_dir)  # empty: it has none
        self._began = time.monotonic()
        self._ending = AsyncExitStack()
        self._read_threads = self._threads(2, "reading")
        self.model = ServedModel(settings.embedding, settings.storage.data_dir, load_encoder, encoder_retry_seconds)
        self._write_the_log()
        self._open(stores or Stores(settings.service.resident_text_bytes, self.topics.documents))
        self._follow_the_log()
        self._load_models()
        self._search(engine or SearchEngine(self.reranker))
        self._run("canary", self.canary.run())
        self._run("pruning", self._prune())
        self._run("memory", trim_memory_periodically())
        self._ending.push_async_callback(self.provenance.flush, FLUSH_SECONDS)

    def _write_the_log(self) -> None:
        self.skipped = SkippedBatches(self.locate_broker, self.topics.curation)
        self.own_writes = OwnWrites()
        self.writer, provenance_writer = self._log_writer(), self._log_writer("gzip")
        self.provenance = ProvenanceQueue(
            provenance_writer, self.topics.provenance, CAPACITY, REPLAY_STREAMS, self.metrics.provenance_dropped.inc
        )
        self._run("provenance", self.provenance.run())

    def _open(self, stores: Stores) -> None:
        self.snapshots = SnapshotManager(
            self.settings, stores, self.locate_broker, self.metrics, self.skipped, self.model.prepare, REFRESH_SECONDS
        )
        self.catalogues, self.earlier_graphs = EntityCatalogues(), EarlierGraphs()
        self._run("snapshots", self.snapshots.run())

    def _follow_the_log(self) -> None:
        topics, snapshots = self.topics, self.snapshots
        self.log_watch = LagMonitor(self.locate_broker, snapshots.applied, skip=self.skipped)
        self.log_identity = LogIdentity(self.locate_broker, topics.documents, lambda: self.log_watch.reachable)
        self.unreadable = UnreadableBatchMonitor(
            self.locate_broker, self.log_watch, TopicPartition(topics.curation, 0), self.skipped
        )
        self.dead_letters = LetterFollower(self.locate_broker, topics, lambda: snapshots.current)
        snapshots.on_receipt = self.dead_letters.note_receipt
        self.dead_letter_pages = LetterPages(self.dead_letters)
        self.worker_watch = WorkerMonitor(self.settings.storage.data_dir)
        self.canary = Canary(
            topics.documents, self.writer, snapshots, self.log_watch, self.worker_watch, CANARY_SECONDS
        )
        self.saved = SavedItems(topics.saved, self.locate_broker, self.writer, self.log_watch.end_now)
        self.summaries = KeptSummaries(self.saved, lambda: snapshots.current)
        self._run("saved items", self.saved.run())
        self._run("log watch", self.log_watch.run())
        self._run("log identity", self.log_identity.run())
        self._run("worker watch", self.worker_watch.run())
        self._run("dead letter count", self.dead_letters.run())
        self._run("unreadable batches", self.unreadable.run())

    def _load_models(self) -> None:
        self.reranker = ServedReranker(self.settings.reranker) if self.settings.reranker.configured else None
        if self.reranker is not None:
            self._ending.callback(self.reranker.close)
        self.answer_writer: AnswerWriter | None = None
        if (language := self.settings.language_model).configured:
            model, small = ChatModel(language), ChatModel(language, name=language.decider)
            self.answer_writer = AnswerWriter(model, small, self.metrics.count_tokens)
            self._ending.push_async_callback(model.close)
            self._ending.push_async_callback(small.close)
        self._run("model", self.model.run())
        self._run("re-ranker", self._load_reranker())

    def _search(self, engine: SearchEngine) -> None:
        processes = self.settings.service.search_processes
        self.engine = engine
        self.admission = SearchAdmission(
            max(SEARCH_THREADS, SEARCHES_A_PROCESS * search_process_count(processes)),
            MAX_WAIT_SECONDS,
            lambda reason: self.metrics.searches_refused.labels(reason=reason).inc(),
        )
        self.cache = ResultCache(CACHE_ENTRIES, CACHE_SECONDS, CACHE_BYTES)
        self.pinned = PinnedSnapshots(CURSOR_SNAPSHOTS, CURSOR_SECONDS)
        self.searches = SearchPool(engine, self._threads(SEARCH_THREADS, "search"), processes)
        self._ending.push_async_callback(self.searches.close)
        self.retriever = Retriever(
            self.model,
            self.searches,
            self.metrics,
            self.provenance,
            self.cache,
            self.pinned,
            lambda *found: self.read(lambda: answer_subgraph(self.catalogues, *found)),
            self.answer_writer,
            resumable_seconds=REPLAY_SECONDS,
        )
        self.replay = ReplayBuffer(REPLAY_STREAMS, REPLAY_SECONDS, REPLAY_BYTES)
        self.streams = SearchStreams(self.retriever.retrieve, self.replay, self.metrics.sse_clients, KEEP_ALIVE_SECONDS)

    def _log_writer(self, compression: str | None = None) -> LogWriter:
        most = self.settings.kafka.max_record_bytes
        writer = LogWriter(self.locate_broker, most, WRITE_SECONDS, compression=compression, other_log=self.other_log)
        self._ending.push_async_callback(writer.close)
        return writer

    def _threads(self, count: int, name: str) -> ThreadPoolExecutor:
        pool = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._ending.callback(pool.shutdown, wait=False, cancel_futures=True)
        return pool

    def _run(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        """In the background, until the end."""
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(_log_death)
        self._ending.push_async_callback(_cancelled, task)

    async def aclose(self) -> None:
        """Send what waits to be sent, then stop the background work and let go of all that is open."""
        await self._ending.aclose()

    def locate_broker(self) -> KafkaConnection | None:
        """The settings', else that of this data directory."""
        kafka = self.settings.kafka
        if kafka.bootstrap_servers:
            return kafka
        running = find_running(self.settings.storage.data_dir)
        return kafka.at(running.kafka) if running else None

    @property
    def uptime_seconds(self) -> float:
        return time.monotonic() - self._began

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
        return None if manifest is None else self.log_identity.mismatch(manifest.documents_topic_id)

    async def read(self, work: Callable[[], R]) -> R:
        """Run a look-up in the stores in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._read_threads, work)

    def writer_for(self, parameter: str) -> AnswerWriter:
        """Raises ApiProblem 422, which names the parameter that asks for it, where there is no language model."""
        if self.answer_writer is None:
            raise invalid_request(HOW_TO_CONFIGURE.format(parameter))
        return self.answer_writer

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
        """The positions a token names. Raises ApiProblem 400 for what is not a token, 409 for one of another log."""
        try:
            parsed = parse_token(token)
        except MalformedToken as error:
            raise ApiProblem(400, "Malformed token", str(error)) from error
        if self.manifest is not None:
            refusal = self.log_identity.refusal(parsed, self.manifest.documents_topic_id)
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


async def _cancelled(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})


def _log_death(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("background work died", work=task.get_name(), exc_info=error)


def installed_version() -> str:
    try:
        return version("thalweg")
    except PackageNotFoundError:
        return "0+source"
