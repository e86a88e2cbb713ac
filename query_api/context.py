"""The running service: its parts put together, started behind the open port, and stopped in order."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
from aiokafka import TopicPartition
from fastapi import Request
from prometheus_client.core import Metric

from indexer.errors import EncoderUnavailable
from indexer.runtime.memory import keep_memory_small
from kafka_client.skipped_batches import SkippedBatches
from query_api.admission import SearchAdmission
from query_api.circuit_breaker import REST_SECONDS
from query_api.dead_letters.rate import RecentDeadLetters
from query_api.dead_letters.topic_reader import DeadLetterReader
from query_api.encoder import RestingEncoder
from query_api.errors import ApiProblem
from query_api.index.engine import Engine, LazyEngine, tables_of
from query_api.index.lag import LogWatch, too_late
from query_api.index.log_identity import LogIdentity
from query_api.index.manager import NotThereYet, SnapshotKeeper, StoppingNow, covers
from query_api.index.unreadable_batches import UnreadableWatch
from query_api.index.worker_state import WorkerWatch
from query_api.ingest.producer import LogWriter
from query_api.metrics import ServiceMetrics, counter, gauge, labelled_gauge
from query_api.process_pool.pool import SharedSearches, processes_to_search
from query_api.provenance import ProvenanceQueue
from query_api.rerankers.served import ServedReranker
from query_api.retrieval.cache import ResultCache
from query_api.retrieval.pagination import reads_tables, snapshot_gone, snapshot_of_page
from query_api.retrieval.pinned_snapshots import KeptSnapshots
from query_api.retrieval.service import Retriever
from query_api.settings import ServiceSettings
from query_api.sse.replay import ReplayBuffer
from query_api.sse.stream import SearchStreams
from schemas.errors import MalformedToken
from schemas.kafka_connection import KafkaConnection
from schemas.runtime import find_running
from schemas.search import Mode, SearchRequest
from schemas.status import Readiness
from schemas.tokens import parse_token
from schemas.topics import TopicNames

if TYPE_CHECKING:
    from query_api.index.snapshot import Snapshot

log = structlog.get_logger(__name__)

R = TypeVar("R")

PRUNE_SECONDS = 5.0
OPEN_TRANSACTION_SECONDS = 10.0  # a shorter one is nothing to be told of
SEARCHES_A_PROCESS = 2  # one computes while the other waits for a thread
WITHOUT_A_MODEL = "Searches that need no vector (`mode=keyword`, `mode=structured`) are answered."
GRAPH_MODES: frozenset[Mode] = frozenset({"hybrid", "graph", "rerank"})


class Service:
    """What the routes work with. Make it on the event loop that runs it."""

    def __init__(
        self, settings: ServiceSettings, load: Callable[[], Engine], *, encoder_rest_seconds: float = REST_SECONDS
    ) -> None:
        block = settings.service
        self.settings = settings
        self.topics = TopicNames(settings.kafka.topic_prefix)
        self.metrics = ServiceMetrics()
        self.reranker = ServedReranker(settings.reranker) if settings.reranker.configured else None
        self.engine = LazyEngine(lambda: self._with_reranker(load()))
        self.skipped = SkippedBatches(self.locate_broker, self.topics.curation)
        self.keeper = SnapshotKeeper(settings, self.engine, self.locate_broker, self.metrics, self.skipped)
        self.log_watch = LogWatch(self.locate_broker, self._applied)
        self.log_identity = LogIdentity(self.locate_broker, self.topics.documents, lambda: self.log_watch.reachable)
        self.unreadable = UnreadableWatch(
            self.locate_broker, self._waiting_at, TopicPartition(self.topics.curation, 0), self.skipped
        )
        self.writer = LogWriter(self.locate_broker, settings.kafka.max_record_bytes, block.write_timeout_seconds)
        self._provenance_writer = LogWriter(
            self.locate_broker, settings.kafka.max_record_bytes, block.write_timeout_seconds, compression="gzip"
        )
        self.provenance = ProvenanceQueue(
            self._provenance_writer,
            self.topics.provenance,
            block.provenance_buffer,
            max(1, block.replay_retrievals),
            self.metrics.provenance_dropped.inc,
        )
        self.dead_letters = DeadLetterReader(self.locate_broker, self.topics.dead_letters)
        self.recent_dead_letters = RecentDeadLetters(self.dead_letters)
        self.worker_watch = WorkerWatch(settings.storage.data_dir)
        self._threads = ThreadPoolExecutor(block.search_threads, thread_name_prefix="search")
        self._reading = ThreadPoolExecutor(2, thread_name_prefix="reading")
        self.admission = SearchAdmission(
            max(block.search_threads, SEARCHES_A_PROCESS * processes_to_search(block.search_processes)),
            block.max_search_wait_seconds,
            lambda reason: self.metrics.searches_refused.labels(reason=reason).inc(),
        )
        self.cache = ResultCache(block.cache_entries, block.cache_seconds, block.cache_bytes)
        self.kept = KeptSnapshots(block.cursor_snapshots, block.cursor_seconds)
        self.searches = SharedSearches(self.engine, self._threads, block)
        self.retriever = Retriever(
            self.searches,
            self.metrics,
            self.provenance,
            self.cache,
            self.kept,
            block.replay_seconds,
        )
        self.replay = ReplayBuffer(block.replay_retrievals, block.replay_seconds, block.replay_bytes)
        self.streams = SearchStreams(self.retriever.retrieve, self.replay, self.metrics.sse_clients, block)
        self.version = _version()
        self._encoder_problem: str | None = "The model is being loaded."
        self._encoder_loaded = asyncio.Event()
        self._encoder_rest_seconds = encoder_rest_seconds
        self._started = time.monotonic()
        self.metrics.add_gauges(self._gauges)

    @property
    def uptime_seconds(self) -> float:
        return time.monotonic() - self._started

    def locate_broker(self) -> KafkaConnection | None:
        """The cluster: that of the settings, else of what runs on this data directory."""
        if self.settings.kafka.bootstrap_servers:
            return self.settings.kafka
        running = find_running(self.settings.storage.data_dir)
        return self.settings.kafka.at(running.kafka) if running else None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The background work, until the end of the block; then a stop that sends what is waiting."""
        works: dict[str, Coroutine[Any, Any, None]] = {
            "snapshot upkeep": self.keeper.run(),
            "log watch": self.log_watch.run(),
            "log identity": self.log_identity.run(),
            "worker watch": self.worker_watch.run(),
            "dead letter count": self.recent_dead_letters.run(),
            "unreadable batches": self.unreadable.run(),
            "provenance": self.provenance.run(),
            "model": self._load_encoder(),
            "re-ranker": self._load_reranker(),
            "replay pruning": self._prune(),
            "memory": keep_memory_small(),
        }
        tasks = [asyncio.create_task(work, name=name) for name, work in works.items()]
        for task in tasks:
            task.add_done_callback(_tell_of_death)
        try:
            yield
        finally:
            await self.provenance.flush(self.settings.service.provenance_flush_seconds)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.searches.close()
            if self.reranker is not None:
                self.reranker.close()
            await self.writer.close()
            await self._provenance_writer.close()
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._reading.shutdown(wait=False, cancel_futures=True)

    def readiness(self) -> Readiness:
        """Ready means: a search would be answered, and not from too long ago. Kafka or an endpoint of vectors out of
        reach, a worker that is gone and dead letters stand in `notes`: searches go on without it."""
        missing = (self._store_problem(), self._model_problem(), self._lag_problem())
        reasons = [reason for reason in missing if reason]
        notes = []
        if self.keeper.current is not None and self.keeper.problem:
            notes.append(self.keeper.problem)
        if damage := self.keeper.damage.sentence():
            notes.append(damage)
        if self.retriever.encoder is not None and self.retriever.encoder.problem:
            notes.append(f"{self.retriever.encoder.problem} Searches go on by words and by the graph, without vectors.")
        if self.reranker is not None and self.reranker.problem:
            notes.append(f"{self.reranker.problem} Searches keep the order they have without it.")
        if (other_log := self.other_log()) is not None:
            notes.append(f"{other_log} Searches go on; writes are refused.")
        if not self.log_watch.reachable:
            notes.append(f"Kafka: {self.log_watch.problem}. Searches go on; writes are refused.")
        elif self.log_watch.missing:
            notes.append(f"Kafka answers, but {self.log_watch.missing}.")
        elif self.keeper.served is not None and self.keeper.served.tail.problem:
            notes.append(f"The graph is not followed: {self.keeper.served.tail.problem}.")
        notes += self.worker_watch.notes() + self.recent_dead_letters.notes()
        notes += [str(batch) for batch in self.unreadable.found]
        notes += [str(held) for held in self.log_watch.held_back if held.seconds > OPEN_TRANSACTION_SECONDS]
        return Readiness(
            ready=not reasons,
            reasons=reasons,
            notes=notes,
            kafka="reachable" if self.log_watch.reachable else "unreachable",
            snapshot_age_seconds=None if self.keeper.current is None else round(self.keeper.age_seconds, 3),
        )

    async def snapshot_for(self, search: SearchRequest) -> "Snapshot":
        """The snapshot a search is to read: that of its cursor, else one at least as new as the token `after`. Raises
        ApiProblem."""
        if search.needs_vector and (problem := self._model_problem()):
            raise not_ready(f"{problem} {WITHOUT_A_MODEL}")
        asked = None if search.after is None else self.positions_of(search.after)
        graph = search.mode in GRAPH_MODES
        if search.cursor is not None:
            snapshot = snapshot_of_page(search, search.cursor, self.kept, self.snapshot().generation)
            if reads_tables(search, snapshot) and not await self.read(tables_of(snapshot).is_kept):
                raise snapshot_gone()
            if asked is not None and not covers(snapshot, asked, graph=graph):
                raise ApiProblem(
                    400,
                    "Snapshot too old",
                    "The cursor's snapshot does not show `after`: begin again without `cursor`.",
                )
            return snapshot
        return self.snapshot() if asked is None else await self.reach(asked, search.wait_seconds, graph=graph)

    async def reach(self, asked: dict[int, int], wait_seconds: float, *, graph: bool) -> "Snapshot":
        """A snapshot that shows these positions. Raises ApiProblem 503 with what has been reached."""
        try:
            return await self.keeper.wait_for(asked, graph=graph, seconds=wait_seconds)
        except StoppingNow as error:
            raise ApiProblem(503, "Stopping", str(error), retry_after_seconds=5) from error
        except NotThereYet as error:
            raise ApiProblem(
                503, "Not there yet", str(error), retry_after_seconds=1, members={"reached": error.reached}
            ) from error

    def snapshot(self) -> "Snapshot":
        """The current one. Raises ApiProblem 503 while there is none."""
        if self.keeper.current is None:
            raise not_ready(self.keeper.problem or "The stores are being opened.")
        return self.keeper.current

    def positions_of(self, token: str) -> dict[int, int]:
        """The positions a token names. Raises ApiProblem 400 for what is no token, 409 for one of another log."""
        try:
            parsed = parse_token(token)
        except MalformedToken as error:
            raise ApiProblem(400, "Malformed token", str(error)) from error
        if self.keeper.served is not None:
            refusal = self.log_identity.refusal(parsed, self.keeper.served.manifest)
            if refusal is not None:
                raise ApiProblem(409, "Token of another log", refusal)
        asked = parsed.positions
        count = self.log_watch.partition_count(self.topics.documents)
        beyond = max(asked)
        if count is not None and beyond >= count:
            raise ApiProblem(
                400, "Malformed token", f"There is no partition {beyond}: the documents topic has 0 to {count - 1}."
            )
        return asked

    async def read(self, work: Callable[[], R]) -> R:
        """Run a look-up in the stores in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self._reading, work)

    def other_log(self) -> str | None:
        """A sentence where the stores were filled from another log than the one that writes would go to."""
        return None if self.keeper.served is None else self.log_identity.mismatch(self.keeper.served.manifest)

    def _store_problem(self) -> str | None:
        return None if self.keeper.current is not None else self.keeper.problem

    def _lag_problem(self) -> str | None:
        limit, snapshot = self.settings.service.max_lag_seconds, self.keeper.current
        if limit is None or snapshot is None:
            return None
        return too_late(self.log_watch.lag(self.topics.documents, snapshot.reached).values(), limit)

    def _model_problem(self) -> str | None:
        encoder = self.retriever.encoder
        if encoder is None:
            return self._encoder_problem
        served = self.keeper.served
        if served is None:
            return None
        made = served.manifest
        if (made.embedding_digest, made.dimension) != (encoder.digest, encoder.dimension):
            return (
                f"Generation {served.generation.name} was made by {made.embedding_provider} with "
                f"{made.embedding_model!r} ({made.embedding_digest[-12:]}, {made.dimension} numbers each), not with "
                f"{encoder.model!r} ({encoder.digest[-12:]}, {encoder.dimension}): set THALWEG_EMBEDDING__PROVIDER, "
                "THALWEG_EMBEDDING__MODEL, THALWEG_EMBEDDING__DIMENSION, __QUERY_PREFIX and __PASSAGE_PREFIX as the "
                "worker has them. If they are, another version made it: 'thalweg worker' on this data directory tells "
                "how to go on."
            )
        return None

    async def _load_encoder(self) -> None:
        started = time.perf_counter()
        while self.retriever.encoder is None:
            try:
                loaded = await asyncio.to_thread(self._loaded_encoder)
            except EncoderUnavailable as error:
                self._encoder_problem = str(error)
                await asyncio.sleep(self._encoder_rest_seconds)
            except Exception as error:  # edge of a background task: readiness tells, the service stays up to be asked
                self._encoder_problem = f"The model cannot be loaded: {error}"
                log.exception("model cannot be loaded")
                return
            else:
                self.retriever.encoder = loaded
                self._encoder_loaded.set()
        encoder = self.retriever.encoder
        log.info("model loaded", model=encoder.model, seconds=round(time.perf_counter() - started, 2))
        await self._watch(encoder)

    def _loaded_encoder(self) -> RestingEncoder:
        """It may take as long for a question as a search waits for one, and no longer."""
        embedding = self.settings.embedding
        seconds = min(embedding.timeout_seconds, self.settings.service.budgets.embed_seconds)
        settings = embedding.model_copy(update={"timeout_seconds": seconds})
        encoder = self.engine.engine.load_encoder(settings, self.settings.storage.data_dir)
        resting = RestingEncoder(encoder, rest_seconds=self._encoder_rest_seconds)
        resting.look_again()
        return resting

    def _with_reranker(self, engine: Engine) -> Engine:
        if self.reranker is not None:
            engine.rerank_by(self.reranker)
        return engine

    async def _load_reranker(self) -> None:
        """After the encoder, which searches cannot do without: beside it, each would keep the other waiting."""
        if self.reranker is None:
            return
        await self._encoder_loaded.wait()
        started = time.perf_counter()
        await asyncio.to_thread(self.reranker.load)
        if self.reranker.name is None:
            log.error("the re-ranker cannot be loaded; searches go on without it", error=self.reranker.problem)
        else:
            log.info("re-ranker loaded", model=self.reranker.name, seconds=round(time.perf_counter() - started, 2))

    async def _watch(self, encoder: RestingEncoder) -> None:
        """An encoder that is away is looked for also while nobody searches."""
        told: str | None = None
        while True:
            if encoder.problem is not None:
                await asyncio.to_thread(encoder.look_again)
            if encoder.problem != told:
                told = encoder.problem
                if told is None:
                    log.info("the encoder answers again")
                else:
                    log.warning("the encoder does not answer; searches go on by words and graph", error=told)
            await asyncio.sleep(self._encoder_rest_seconds)

    async def _prune(self) -> None:
        while True:
            await asyncio.sleep(PRUNE_SECONDS)
            self.replay.prune()
            self.kept.prune()
            self.provenance.release()
            self.searches.prune(self.keeper.current)

    def _applied(self) -> dict[str, Mapping[int, int]]:
        """The last offsets that searches show, of each topic that is followed."""
        snapshot, served = self.keeper.current, self.keeper.served
        applied: dict[str, Mapping[int, int]] = {self.topics.documents: {} if snapshot is None else snapshot.reached}
        if snapshot is not None and served is not None:
            applied[served.graph_topic] = {0: snapshot.graph.position}
        return applied

    def _waiting_at(self) -> dict[TopicPartition, int]:
        """The partitions with records that searches do not show, and the offset that is wanted next."""
        return {
            TopicPartition(topic, partition): of.get(partition, -1) + 1
            for topic, of in self._applied().items()
            for partition, lag in self.log_watch.lag(topic, of).items()
            if lag.records
        }

    def _gauges(self) -> Iterator[Metric]:
        yield gauge("thalweg_provenance_buffered", "Retrievals waiting to be sent.", len(self.provenance))
        yield gauge("thalweg_kafka_reachable", "1 while Kafka answers.", float(self.log_watch.reachable))
        yield gauge("thalweg_ready", "1 when searches are answered.", float(self.readiness().ready))
        cache = self.cache.statistics()
        yield gauge("thalweg_search_cache_entries", "Answers in the cache of results.", cache.entries)
        yield gauge("thalweg_search_cache_bytes", "Size of the answers in the cache of results.", cache.bytes)
        yield counter("thalweg_search_cache_hits", "Searches answered from the cache of results.", cache.hits)
        yield counter("thalweg_search_cache_misses", "Searches not found in the cache of results.", cache.misses)
        yield counter("thalweg_search_cache_evictions", "Answers that had to make room.", cache.evictions)
        yield gauge("thalweg_search_copies", "Processes that search beside the service's own.", self.searches.copies)
        yield counter("thalweg_searches_in_copies", "Searches begun in a process beside it.", self.searches.forked)
        yield gauge("thalweg_search_queue_length", "Searches that wait for their turn.", self.admission.waiting)
        yield gauge("thalweg_searches_running", "Searches that run now.", self.admission.running)
        yield gauge(
            "thalweg_search_expected_wait_seconds",
            "How long one more search would wait for its turn.",
            self.admission.expected_wait_seconds,
        )
        yield gauge("thalweg_cursor_snapshots", "Snapshots kept for cursors.", len(self.kept))
        snapshot, served = self.keeper.current, self.keeper.served
        if snapshot is None or served is None:
            return
        yield gauge(
            "thalweg_snapshot_age_seconds",
            "Since the snapshot that searches read was last known to show all that the tables hold.",
            self.keeper.age_seconds,
        )
        documents = self.topics.documents
        reached = snapshot.reached
        positions = [(("lance", documents, str(partition)), float(offset)) for partition, offset in reached.items()]
        positions.append((("graph_view", served.graph_topic, "0"), float(snapshot.graph.position)))
        yield labelled_gauge(
            "thalweg_store_position",
            "The last offset that what searches read has applied.",
            ("store", "topic", "partition"),
            positions,
        )
        lags = {topic: self.log_watch.lag(topic, applied) for topic, applied in self._applied().items()}
        flat = [((topic, str(number)), lag) for topic, by_number in lags.items() for number, lag in by_number.items()]
        yield labelled_gauge(
            "thalweg_ingest_lag_records",
            "Records that searches do not show yet.",
            ("topic", "partition"),
            [(labels, float(lag.records)) for labels, lag in flat],
        )
        yield labelled_gauge(
            "thalweg_ingest_lag_seconds",
            "How long the oldest record that searches do not show has waited.",
            ("stage",),
            [
                ((stage,), max(lag.seconds for lag in lags[topic].values()))
                for stage, topic in (("searchable", documents), ("in_graph_view", served.graph_topic))
                if lags[topic]  # nobody knows it while Kafka is away
            ],
        )


async def service_of(request: Request) -> Service:
    """The service of the app a request came to; a FastAPI dependency, async so that no thread is asked for it."""
    service: Service = request.app.state.service
    return service


def not_ready(reason: str) -> ApiProblem:
    return ApiProblem(503, "Not ready", reason, retry_after_seconds=2)


def _tell_of_death(task: "asyncio.Task[None]") -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.critical("background work died", work=task.get_name(), exc_info=error)


def _version() -> str:
    try:
        return version("thalweg")
    except PackageNotFoundError:
        return "0+source"
