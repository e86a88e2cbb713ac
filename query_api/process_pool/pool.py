"""Which searches run here, and which in worker processes, which are forks of this one.

While one search is under way, a further one may go to a worker that was forked from the same snapshot. Workers are made
when searches keep meeting each other on a snapshot that lasts, and end when they are idle or the snapshot is another. A
search that a worker does not finish is done here.
"""

import asyncio
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import aclosing
from functools import partial

import structlog

from indexer.runtime.resources import usable_processors
from query_api.encoder import ServedEncoder
from query_api.index.snapshot import Snapshot
from query_api.process_pool.worker import Answer, WorkerLost, WorkerProcess
from query_api.settings import ServiceBlock
from schemas.frames import NAMES, SearchFrame, identity
from schemas.search import SearchRequest

log = structlog.get_logger(__name__)

CROWD_SEARCHES = 10  # searches within CROWD_SECONDS that found others under way: they come in a crowd
CROWD_SECONDS = 1.0
STEADY_SECONDS = 0.5  # that a snapshot has lasted; while much is written, each is soon another
SHORTEST_PAUSE_SECONDS = 1.0  # between two workers
PAUSE_FACTOR = 50  # at most a fiftieth of the event loop's time goes into workers
PAUSE_AFTER_LOSS_SECONDS = 60.0
PAUSE_AFTER_REFUSAL_SECONDS = 3600.0
IDLE_SECONDS = 60.0
SILENCE_SECONDS = 5.0  # beyond the budgets of all steps of a search
MOST_PROCESSES = 4
FORKABLE = frozenset({"onnx", "onnx-int8", "hashing"})  # computes in the thread that asks, by nothing outside


Search = Callable[[SearchRequest, str, Snapshot, ServedEncoder, Executor], AsyncGenerator[SearchFrame, None]]


class SearchPool:
    """Searches, each by `search` here or in a worker process. Used on the event loop."""

    def __init__(self, search: Search, executor: Executor, block: ServiceBlock) -> None:
        self.forked = 0  # searches so far
        self._search = search
        self._executor = executor
        self._threads = block.search_threads
        self._most_workers = search_process_count(block.search_processes) - 1
        self._silence_seconds = sum(block.budgets.model_dump().values()) + SILENCE_SECONDS
        self.under_way = 0  # here; workers count theirs
        self._overlaps: deque[float] = deque(maxlen=CROWD_SEARCHES)
        self._searched: tuple[Snapshot | None, float] = (None, 0.0)
        self._of: Snapshot | None = None
        self._workers: list[WorkerProcess] = []
        self._making: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._no_fork_before = 0.0

    @property
    def workers(self) -> int:
        """How many processes beside this one search now."""
        return len(self._workers)

    async def search(
        self, request: SearchRequest, retrieval_id: str, snapshot: Snapshot, encoder: ServedEncoder, *, reranked: bool
    ) -> AsyncGenerator[SearchFrame, None]:
        """The frames of an answer, as each is final. A re-ranker is asked from this process only. Raises as `search`
        does."""
        given: set[str] = set()
        if self.under_way and not reranked and self._is_forkable(request, snapshot, encoder):
            worker = self._idlest_worker(request, snapshot, encoder)
            if worker is not None and worker.under_way <= self.under_way:
                self.forked += 1
                try:
                    async with aclosing(worker.search(request, retrieval_id)) as parts:
                        async for part in parts:
                            yield part
                            given.add(_identity(part))
                except WorkerLost as error:
                    log.warning("a search was begun again here", retrieval_id=retrieval_id, error=str(error))
                else:
                    return
                finally:
                    if worker.lost is not None and worker in self._workers:
                        self._no_fork_before = time.monotonic() + PAUSE_AFTER_LOSS_SECONDS
        self.under_way += 1
        try:
            async with aclosing(self._parts(snapshot, encoder, self._executor)(request, retrieval_id)) as parts:
                async for part in parts:
                    if _identity(part) not in given:
                        yield part
        finally:
            self.under_way -= 1

    def prune(self, current: Snapshot | None) -> None:
        """End workers that are idle, or of another snapshot than the current one."""
        idle_since = time.monotonic() - IDLE_SECONDS
        if self._searched[0] is not current:
            self._searched = (None, 0.0)
        self._workers = [worker for worker in self._workers if worker.lost is None]
        if self._workers and (self._of is not current or all(worker.used_at < idle_since for worker in self._workers)):
            self._retire()

    async def close(self) -> None:
        if self._making is not None:
            self._making.cancel()
            await asyncio.gather(self._making, return_exceptions=True)
        self._retire()
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _is_forkable(self, request: SearchRequest, snapshot: Snapshot, encoder: ServedEncoder) -> bool:
        """Nothing the search reads or asks is outside this process's memory, and it is no page of an older snapshot."""
        if self._most_workers <= 0:
            return False
        plain = request.context == "parent" and request.duplicates != "semantic" and not request.offset
        return plain and snapshot.in_memory and encoder.provider in FORKABLE

    def _idlest_worker(
        self, request: SearchRequest, snapshot: Snapshot, encoder: ServedEncoder
    ) -> WorkerProcess | None:
        """The worker with the fewest searches under way, if this snapshot has one; if not, it may soon."""
        usable = [worker for worker in self._workers if worker.lost is None] if self._of is snapshot else []
        if len(usable) < self._most_workers and self._making is None and self._is_crowded(snapshot):
            self._making = asyncio.create_task(self._make(request, snapshot, encoder), name="new search worker")
            self._making.add_done_callback(self._made)
        return min(usable, key=lambda worker: worker.under_way, default=None)

    def _is_crowded(self, snapshot: Snapshot) -> bool:
        """To be asked once for each search that found another one under way."""
        now = time.monotonic()
        if self._searched[0] is not snapshot:
            self._searched = (snapshot, now)
        self._overlaps.append(now)
        crowded = len(self._overlaps) == CROWD_SEARCHES and now - self._overlaps[0] < CROWD_SECONDS
        return crowded and now - self._searched[1] >= STEADY_SECONDS and now >= self._no_fork_before

    async def _make(self, request: SearchRequest, snapshot: Snapshot, encoder: ServedEncoder) -> None:
        """One more worker. The question that asked for it shows whether it is of use, by all channels: a request may be
        malformed, or need no vector."""
        if self._of is not snapshot:
            self._retire()
            self._of = snapshot
        worker = await WorkerProcess.made(partial(self._parts_in_worker, snapshot, encoder), self._silence_seconds)
        self._no_fork_before = time.monotonic() + max(SHORTEST_PAUSE_SECONDS, PAUSE_FACTOR * worker.fork_seconds)
        try:
            async with aclosing(worker.search(SearchRequest(q=request.q), "first")) as parts:
                async for _ in parts:
                    pass
            if worker.lost is not None:
                raise WorkerLost(worker.lost)
        except BaseException as error:
            self._no_fork_before = time.monotonic() + PAUSE_AFTER_LOSS_SECONDS
            log.warning("a search worker is of no use", error=str(error))
            self._end(worker)
            if not isinstance(error, Exception):
                raise
            return
        log.info("searching in one more process", pid=worker.pid, fork_seconds=round(worker.fork_seconds, 3))
        self._workers.append(worker)

    def _made(self, task: "asyncio.Task[None]") -> None:
        self._making = None
        if task.cancelled() or (error := task.exception()) is None:
            return
        if isinstance(error, OSError):
            self._no_fork_before = time.monotonic() + PAUSE_AFTER_REFUSAL_SECONDS
            log.warning("no search worker can be forked; the service searches alone for an hour", error=str(error))
        else:
            self._most_workers = 0
            log.error("no search worker can be forked; the service searches alone", exc_info=error)

    def _retire(self) -> None:
        retired, self._workers, self._of = self._workers, [], None
        for worker in retired:
            self._end(worker)

    def _end(self, worker: WorkerProcess) -> None:
        ending = asyncio.create_task(worker.close(), name="end of a search worker")
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    def _parts_in_worker(self, snapshot: Snapshot, encoder: ServedEncoder) -> Answer:
        return self._parts(snapshot, encoder, ThreadPoolExecutor(self._threads, thread_name_prefix="search"))

    def _parts(self, snapshot: Snapshot, encoder: ServedEncoder, executor: Executor) -> Answer:
        def answer(request: SearchRequest, retrieval_id: str) -> AsyncGenerator[SearchFrame, None]:
            return self._search(request, retrieval_id, snapshot, encoder, executor)

        return answer


def search_process_count(wanted: int) -> int:
    """How many processes may search: as many as wanted, for 0 one for each core that may be used; where processes can
    be forked."""
    if sys.platform != "linux":
        return 1
    return wanted or min(usable_processors(), MOST_PROCESSES)


def _identity(part: SearchFrame) -> str:
    return identity(NAMES[type(part)], part)
