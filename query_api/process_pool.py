"""The process pool: which searches run here, and which in worker processes, which are forks of this one.

One interpreter runs one search at a time. While one is under way here, a further one may go to a worker that was forked
from the same snapshot. Workers are forked when searches keep overlapping on a snapshot that lasts, and end when they
are idle or the snapshot is another. A search that a worker does not finish is retried in the main process.
"""

import asyncio
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import aclosing
from functools import partial
from typing import Protocol

import structlog

from indexer.runtime.resources import usable_processors
from query_api.index.search_snapshot import Snapshot
from query_api.question_encoder import ServedEncoder
from query_api.search_worker import Answer, WorkerLost, WorkerProcess
from schemas.frames import NAMES, SearchFrame, identity
from schemas.search import SearchRequest

log = structlog.get_logger(__name__)

CROWD_SEARCHES = 10  # overlapping searches within CROWD_SECONDS that a worker is forked for
CROWD_SECONDS = 1.0
STEADY_SECONDS = 0.5  # that a snapshot has lasted; while much is written, each is soon replaced
SHORTEST_PAUSE_SECONDS = 1.0  # between two forks
PAUSE_FACTOR = 50  # at most a fiftieth of the event loop's time goes into forking
PAUSE_AFTER_LOSS_SECONDS = 60.0
PAUSE_AFTER_REFUSAL_SECONDS = 3600.0
IDLE_SECONDS = 60.0
SILENCE_SECONDS = 19.0  # the budgets of all stages of a search, and five seconds
MAX_PROCESSES = 4
SEARCH_THREADS = 4  # about two for each core: more only queue
FORKABLE = frozenset({"onnx", "onnx-int8", "hashing"})  # encoders that compute in the calling thread, without a service


class Engine(Protocol):
    """Searches, as `SearchEngine` does."""

    def reranks(self, request: SearchRequest) -> bool: ...

    def search(
        self, request: SearchRequest, retrieval_id: str, snapshot: Snapshot, encoder: ServedEncoder, executor: Executor
    ) -> AsyncGenerator[SearchFrame, None]: ...


class SearchPool:
    """Searches by the engine, here or in a worker process. Used on the event loop."""

    def __init__(self, engine: Engine, executor: Executor, processes: int) -> None:
        """`processes` as in the settings: 0 for as many as there are cores, `MAX_PROCESSES` at most."""
        self.forked = 0  # searches in workers so far
        self.under_way = 0  # here; workers count theirs
        self._engine = engine
        self._executor = executor
        self._max_workers = search_process_count(processes) - 1
        self._overlaps: deque[float] = deque(maxlen=CROWD_SEARCHES)
        self._searched: tuple[Snapshot | None, float] = (None, 0.0)
        self._workers_snapshot: Snapshot | None = None
        self._workers: list[WorkerProcess] = []
        self._forking: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._no_fork_before = 0.0

    @property
    def workers(self) -> int:
        """How many worker processes there are."""
        return len(self._workers)

    async def search(
        self, request: SearchRequest, retrieval_id: str, snapshot: Snapshot, encoder: ServedEncoder
    ) -> AsyncGenerator[SearchFrame, None]:
        """The frames of an answer, as each is final. Raises as the engine does."""
        sent: set[str] = set()
        if self.under_way and self._is_forkable(request, snapshot, encoder):
            worker = self._idlest_worker(request, snapshot, encoder)
            if worker is not None and worker.under_way <= self.under_way:
                self.forked += 1
                try:
                    async with aclosing(worker.search(request, retrieval_id)) as frames:
                        async for frame in frames:
                            yield frame
                            sent.add(_identity(frame))
                except WorkerLost as error:
                    log.warning("search retried in the main process", retrieval_id=retrieval_id, error=str(error))
                else:
                    return
                finally:
                    if worker.lost is not None and worker in self._workers:
                        self._no_fork_before = time.monotonic() + PAUSE_AFTER_LOSS_SECONDS
        self.under_way += 1
        try:
            frames = self._engine.search(request, retrieval_id, snapshot, encoder, self._executor)
            async with aclosing(frames):
                async for frame in frames:
                    if _identity(frame) not in sent:
                        yield frame
        finally:
            self.under_way -= 1

    def prune(self, current: Snapshot | None) -> None:
        """End workers that are idle, or of another snapshot than the current one."""
        idle_since = time.monotonic() - IDLE_SECONDS
        if self._searched[0] is not current:
            self._searched = (None, 0.0)
        self._workers = [worker for worker in self._workers if worker.lost is None]
        stale = self._workers_snapshot is not current
        if self._workers and (stale or all(worker.used_at < idle_since for worker in self._workers)):
            self._retire()

    async def close(self) -> None:
        if self._forking is not None:
            self._forking.cancel()
            await asyncio.gather(self._forking, return_exceptions=True)
        self._retire()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _is_forkable(self, request: SearchRequest, snapshot: Snapshot, encoder: ServedEncoder) -> bool:
        """Whether the search needs nothing but this process's memory, and is not a page of an older snapshot."""
        if self._max_workers <= 0 or self._engine.reranks(request):
            return False
        plain = request.context == "parent" and request.duplicates != "semantic" and not request.offset
        return plain and snapshot.in_memory and encoder.provider in FORKABLE

    def _idlest_worker(
        self, request: SearchRequest, snapshot: Snapshot, encoder: ServedEncoder
    ) -> WorkerProcess | None:
        """The worker with the fewest searches under way, if this snapshot has one; if not, one may be forked."""
        usable = [worker for worker in self._workers if worker.lost is None]
        if self._workers_snapshot is not snapshot:
            usable = []
        if len(usable) < self._max_workers and self._forking is None and self._is_crowded(snapshot):
            self._forking = asyncio.create_task(self._fork(request, snapshot, encoder), name="new search worker")
            self._forking.add_done_callback(self._forked)
        return min(usable, key=lambda worker: worker.under_way, default=None)

    def _is_crowded(self, snapshot: Snapshot) -> bool:
        """To be called once for each search that overlaps another one."""
        now = time.monotonic()
        if self._searched[0] is not snapshot:
            self._searched = (snapshot, now)
        self._overlaps.append(now)
        crowded = len(self._overlaps) == CROWD_SEARCHES and now - self._overlaps[0] < CROWD_SECONDS
        return crowded and now - self._searched[1] >= STEADY_SECONDS and now >= self._no_fork_before

    async def _fork(self, request: SearchRequest, snapshot: Snapshot, encoder: ServedEncoder) -> None:
        """Fork one more worker and probe it by this question in all channels: the request itself may be malformed, or
        need no vector."""
        if self._workers_snapshot is not snapshot:
            self._retire()
            self._workers_snapshot = snapshot
        worker = await WorkerProcess.create(partial(self._answer_in_worker, snapshot, encoder), SILENCE_SECONDS)
        self._no_fork_before = time.monotonic() + max(SHORTEST_PAUSE_SECONDS, PAUSE_FACTOR * worker.fork_seconds)
        try:
            async with aclosing(worker.search(SearchRequest(q=request.q), "first")) as frames:
                async for _ in frames:
                    pass
            if worker.lost is not None:
                raise WorkerLost(worker.lost)
        except BaseException as error:
            self._no_fork_before = time.monotonic() + PAUSE_AFTER_LOSS_SECONDS
            log.warning("search worker failed its probe", error=str(error))
            self._end(worker)
            if not isinstance(error, Exception):
                raise
            return
        log.info("search worker forked", pid=worker.pid, fork_seconds=round(worker.fork_seconds, 3))
        self._workers.append(worker)

    def _forked(self, task: "asyncio.Task[None]") -> None:
        self._forking = None
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, OSError):
            self._no_fork_before = time.monotonic() + PAUSE_AFTER_REFUSAL_SECONDS
            log.warning("no search worker can be forked; searching in one process for an hour", error=str(error))
        else:
            self._max_workers = 0
            log.error("no search worker can be forked; searching in one process", exc_info=error)

    def _retire(self) -> None:
        retired, self._workers, self._workers_snapshot = self._workers, [], None
        for worker in retired:
            self._end(worker)

    def _end(self, worker: WorkerProcess) -> None:
        ending = asyncio.create_task(worker.close(), name="end of a search worker")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _answer_in_worker(self, snapshot: Snapshot, encoder: ServedEncoder) -> Answer:
        executor = ThreadPoolExecutor(SEARCH_THREADS, thread_name_prefix="search")
        return lambda request, retrieval_id: self._engine.search(request, retrieval_id, snapshot, encoder, executor)


def search_process_count(wanted: int) -> int:
    """How many processes may search: as many as wanted, for 0 one for each usable core; 1 where none can be forked."""
    if sys.platform != "linux":
        return 1
    return wanted or min(usable_processors(), MAX_PROCESSES)


def _identity(frame: SearchFrame) -> str:
    return identity(NAMES[type(frame)], frame)
