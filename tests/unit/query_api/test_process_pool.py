"""Searches that come at once are shared between the service and copies of it; nobody can tell which did which."""

import asyncio
import errno
import os
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from query_api import process_pool as pool
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from query_api.process_pool import SearchPool, search_process_count
from query_api.question_encoder import GuardedEncoder
from query_api.retrieval.search_context import SearchBudgets
from schemas.errors import MalformedFilter
from schemas.frames import Done, Meta, SearchFrame, Stage
from schemas.hits import Hit
from schemas.search import SearchRequest
from tests.support.fakes.engine import ScriptedEngine, Words, make_generation, make_hit
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(search_process_count(2) < 2, reason="processes are not copied on this system")

HITS = [make_hit(rank) for rank in range(1, 6)]


@dataclass
class TellingEngine(ScriptedEngine):
    """Its first stage counts the process that searches; a question with `hold` then waits for a file.

    A lock that a question with `locked` needs is one that nobody opens in a copy.
    """

    gate: Path = Path()
    locked: str = "locked"  # what a copy cannot answer by all channels
    hits: Any = field(default_factory=lambda: HITS)

    async def search(self, request: SearchRequest, *given: Any) -> AsyncGenerator[SearchFrame, None]:
        async for part in super().search(request, *given):
            if isinstance(part, Stage):
                part.candidates = os.getpid()
                if os.getpid() != MAIN and self.locked in request.q and request.mode == "hybrid":
                    part.error = "no answer within 2 s"
            if request.filter:
                raise MalformedFilter("There is no field status.")
            if isinstance(part, Hit) and part.rank == 2 and "hold" in request.q:
                await eventually(self.gate.exists)
            if isinstance(part, Hit) and part.rank == 3 and "die" in request.q and os.getpid() != MAIN:
                os.kill(os.getpid(), signal.SIGKILL)
            yield part


MAIN = os.getpid()


class Crowd:
    """Searches over one snapshot, and what came of them."""

    def __init__(self, searches: SearchPool, snapshot: Snapshot, engine: TellingEngine) -> None:
        self.searches = searches
        self.snapshot = snapshot
        self.engine = engine
        self.gate = engine.gate
        self.encoder: Any = GuardedEncoder(Words())  # type: ignore[arg-type]

    async def ask(self, q: str, snapshot: Snapshot | None = None, **parameters: Any) -> list[SearchFrame]:
        request = SearchRequest.model_validate({"q": q} | parameters)
        parts = self.searches.search(request, f"r_{q}", snapshot or self.snapshot, self.encoder)
        return [part async for part in parts]

    async def gather(self, count: int = 8, **parameters: Any) -> None:
        """So many at once, which hold each other up until all are under way."""
        self.gate.unlink(missing_ok=True)
        asked = [asyncio.create_task(self.ask(f"hold {number}", **parameters)) for number in range(count)]
        await eventually(lambda: all(task.done() for task in asked) or self.searches.under_way >= count)
        self.gate.touch()
        await asyncio.gather(*asked)

    async def beside_another(self, q: str, **parameters: Any) -> list[SearchFrame]:
        """Asked while another search is under way here."""
        self.gate.unlink(missing_ok=True)
        held = asyncio.create_task(self.ask("hold"))
        await eventually(lambda: self.searches.under_way)
        answer = await self.ask(q, **parameters)
        self.gate.touch()
        await held
        return answer


@asynccontextmanager
async def a_crowd(tmp_path: Path, processes: int = 2) -> AsyncIterator[Crowd]:
    engine = TellingEngine(gate=tmp_path / "go on")
    snapshot = engine.snapshot(make_generation(tmp_path), engine.reader.snapshot(), GraphView.empty())
    with ThreadPoolExecutor(2) as threads:
        searches = SearchPool(engine, threads, processes)
        try:
            yield Crowd(searches, replace(snapshot, in_memory=True), engine)
        finally:
            await searches.close()


@pytest.fixture
async def crowd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Crowd]:
    """One that copies the process as soon as a few searches meet."""
    monkeypatch.setattr(pool, "CROWD_SEARCHES", 3)
    monkeypatch.setattr(pool, "STEADY_SECONDS", 0)
    monkeypatch.setattr(pool, "SHORTEST_PAUSE_SECONDS", 0)
    monkeypatch.setattr(pool, "PAUSE_FACTOR", 0)
    monkeypatch.setattr(pool, "PAUSE_AFTER_LOSS_SECONDS", 0)
    async with a_crowd(tmp_path) as crowd:
        yield crowd


def process_of(parts: list[SearchFrame]) -> int:
    return next(part.candidates for part in parts if isinstance(part, Stage))


def test_silent_copy_is_given_the_time_of_all_stages() -> None:
    assert sum(asdict(SearchBudgets()).values()) + 5 == pool.SILENCE_SECONDS


async def test_searches_that_meet_are_shared_with_a_copy_and_answers_are_the_same(crowd: Crowd) -> None:
    alone = await crowd.ask("who")
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)

    beside = await crowd.beside_another("who")

    assert process_of(alone) == os.getpid() != process_of(beside)
    assert [part for part in beside if not isinstance(part, Stage)] == [
        part for part in alone if not isinstance(part, Stage)
    ]
    assert crowd.searches.forked == 1


async def test_a_search_alone_stays_here(crowd: Crowd) -> None:
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)

    assert process_of(await crowd.ask("who")) == os.getpid()


async def test_two_that_meet_by_chance_are_not_worth_a_copy(tmp_path: Path) -> None:
    async with a_crowd(tmp_path) as crowd:
        await crowd.gather(2)
        await crowd.beside_another("who")

        assert not active_children()


async def test_a_snapshot_that_has_just_come_is_not_worth_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "STEADY_SECONDS", 3600.0)
    async with a_crowd(tmp_path) as crowd:
        await crowd.gather(30)

        assert not active_children()


async def test_a_copy_of_an_older_snapshot_answers_nothing_any_more(crowd: Crowd) -> None:
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)
    newer = replace(crowd.snapshot, generation="g2")

    answer = await crowd.beside_another("who", snapshot=newer)

    assert process_of(answer) == os.getpid()
    crowd.searches.prune(newer)
    assert not crowd.searches.workers


@pytest.mark.parametrize(
    "parameters",
    [{"context": "section"}, {"duplicates": "semantic"}, {"offset": 10}],
    ids=lambda each: next(iter(each)),
)
async def test_a_search_that_may_read_a_table_or_an_older_snapshot_stays_here(
    crowd: Crowd, parameters: dict[str, Any]
) -> None:
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)

    assert process_of(await crowd.beside_another("who", **parameters)) == os.getpid()


async def test_stores_that_are_not_in_memory_are_searched_here(crowd: Crowd) -> None:
    crowd.snapshot = replace(crowd.snapshot, in_memory=False)
    await crowd.gather()
    await crowd.gather()

    assert not active_children()


async def test_an_encoder_that_asks_something_outside_is_asked_from_here(crowd: Crowd) -> None:
    crowd.encoder.provider = "openai"
    await crowd.gather()
    await crowd.gather()

    assert not active_children()


async def test_a_search_that_asks_a_re_ranker_stays_here(crowd: Crowd) -> None:
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)

    assert process_of(await crowd.beside_another("who")) != os.getpid()
    crowd.engine.reranker = object()
    assert process_of(await crowd.beside_another("who", reranker=False)) != os.getpid()
    assert process_of(await crowd.beside_another("who")) == os.getpid()


async def test_one_process_where_one_is_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "STEADY_SECONDS", 0)
    async with a_crowd(tmp_path, processes=1) as crowd:
        await crowd.gather(30)

        assert not active_children()


async def test_a_search_whose_copy_dies_is_finished_here_and_nothing_is_told_twice(crowd: Crowd) -> None:
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)

    answer = await crowd.beside_another("die")

    assert [type(part) for part in answer] == [Meta, Stage, *[Hit] * len(HITS), Done]
    assert [part for part in answer if isinstance(part, Hit)] == HITS
    crowd.searches.prune(crowd.snapshot)
    assert not crowd.searches.workers
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)


async def test_after_the_loss_of_a_copy_none_is_made_for_a_while(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "PAUSE_AFTER_LOSS_SECONDS", 3600)
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)
    await crowd.beside_another("die")
    crowd.searches.prune(crowd.snapshot)

    await crowd.gather()

    assert not crowd.searches.workers
    await eventually(lambda: not active_children())


async def test_a_step_that_a_copy_could_not_do_is_done_here(crowd: Crowd) -> None:
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)

    answer = await crowd.beside_another("locked")

    assert process_of(answer) == os.getpid()
    assert not [part for part in answer if isinstance(part, Stage) and part.error]
    assert [part for part in answer if isinstance(part, Hit)] == HITS


async def test_a_copy_is_tried_by_all_channels_whatever_the_crowd_asks(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()
    made = crowd.searches._forked
    monkeypatch.setattr(crowd.searches, "_forked", lambda task: (made(task), tried.set()))
    crowd.engine.locked = "hold"

    await crowd.gather(mode="keyword")
    await tried.wait()

    assert not crowd.searches.workers


async def test_malformed_requests_keep_no_copy_away(crowd: Crowd) -> None:
    held = asyncio.create_task(crowd.ask("hold"))
    await eventually(lambda: crowd.searches.under_way)
    for _ in range(pool.CROWD_SEARCHES):
        with pytest.raises(MalformedFilter):
            await crowd.ask("who", filter=["status=Final"])
    await eventually(lambda: crowd.searches.workers)
    crowd.gate.touch()
    await held


async def test_copies_that_nobody_has_needed_for_long_end(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)
    crowd.searches.prune(crowd.snapshot)
    assert crowd.searches.workers

    monkeypatch.setattr(pool, "IDLE_SECONDS", -1.0)
    crowd.searches.prune(crowd.snapshot)

    assert not crowd.searches.workers


async def test_a_copy_that_cannot_answer_its_first_search_is_never_used(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_no_use(*_: Any) -> Callable[..., Any]:
        async def parts(request: SearchRequest, retrieval_id: str) -> AsyncGenerator[SearchFrame, None]:
            raise RuntimeError("a lock that nobody opens")
            yield

        return parts

    made = asyncio.Event()
    tried = crowd.searches._forked
    monkeypatch.setattr(crowd.searches, "_answer_in_worker", of_no_use)
    monkeypatch.setattr(crowd.searches, "_forked", lambda task: (tried(task), made.set()))

    await crowd.gather()
    await made.wait()

    assert not crowd.searches.workers
    assert process_of(await crowd.beside_another("who")) == os.getpid()


async def test_a_fork_that_the_system_refuses_is_tried_again_later(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused() -> int:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    with monkeypatch.context() as short:
        short.setattr(os, "fork", refused)
        with capture_logs() as logs:
            await crowd.gather()
    assert [each["error"] for each in logs] == ["[Errno 11] Resource temporarily unavailable"]
    await crowd.gather()
    assert not active_children()

    monkeypatch.setattr(crowd.searches, "_no_fork_before", 0.0)
    await crowd.gather()
    await eventually(lambda: crowd.searches.workers)


def test_as_many_processes_as_cores_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "usable_processors", lambda: 16)

    assert search_process_count(0) == pool.MAX_PROCESSES
    assert search_process_count(7) == 7
    monkeypatch.setattr(pool, "usable_processors", lambda: 1)  # of a quota
    assert search_process_count(0) == 1
    monkeypatch.setattr(pool.sys, "platform", "darwin")
    assert search_process_count(7) == 1
