"""A copy of the process answers searches; whatever becomes of it, the service hears of it."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from query_api import search_worker as fork_module
from query_api.process_pool import search_process_count
from query_api.retrieval.search_context import SearchFailed
from query_api.search_worker import (
    CancelCommand,
    Failure,
    SearchCommand,
    WorkerLost,
    WorkerProcess,
    decode_command,
    decode_frame,
    encode_command,
    encode_frame,
)
from schemas.frames import Done, Meta, SearchFrame, Stage
from schemas.hits import SnapshotInfo
from schemas.search import SearchRequest
from tests.support.fakes.engine import make_hit
from tests.support.waiting import eventually

pytestmark = pytest.mark.skipif(search_process_count(2) < 2, reason="processes are not copied on this system")


async def told_by(request: SearchRequest, retrieval_id: str) -> AsyncGenerator[SearchFrame, None]:
    """What a search does is told by its question."""
    yield Stage(name=request.q, seconds=0, candidates=os.getpid())
    match request.q:
        case "unanswered":
            raise SearchFailed("No store can be read.")
        case "broken":
            raise ZeroDivisionError("a fault")
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "wait":
            await asyncio.Event().wait()
        case "stuck":
            yield Stage(name="embed", seconds=2, candidates=0, error="no answer within 2 s")
    failed = {"vector": "no answer within 2 s"} if "stuck" in request.q else {}
    yield Done(retrieval_id=retrieval_id, hits=0, timings={}, failed_channels=failed, next_offset=None)


opens_at_forks: list[Callable[[], None]] = []  # a library's, which can never be unregistered
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: [opening() for opening in opens_at_forks])


@asynccontextmanager
async def a_fork(
    searching: Callable[..., AsyncGenerator[SearchFrame, None]] = told_by, patience: float = 60.0
) -> AsyncIterator[WorkerProcess]:
    fork = await WorkerProcess.create(lambda: searching, patience)
    try:
        yield fork
    finally:
        await fork.close()


async def parts(fork: WorkerProcess, q: str, retrieval_id: str = "r") -> list[SearchFrame]:
    return [part async for part in fork.search(SearchRequest(q=q), retrieval_id)]


async def test_another_process_answers() -> None:
    async with a_fork() as fork:
        stage, done = await parts(fork, "who")

    assert isinstance(stage, Stage)
    assert stage.candidates == fork.pid
    assert fork.pid != os.getpid()
    assert isinstance(done, Done)


async def test_where_memory_runs_out_a_copy_goes_first() -> None:
    async with a_fork() as fork:
        await parts(fork, "who")
        assert likely_to_go(fork.pid) == 1000


async def test_searches_at_the_same_time_are_told_apart() -> None:
    async with a_fork() as fork:
        answers = await asyncio.gather(*(parts(fork, f"q{number}", f"r{number}") for number in range(20)))

    for number, (stage, done) in enumerate(answers):
        assert isinstance(stage, Stage)
        assert isinstance(done, Done)
        assert (stage.name, done.retrieval_id) == (f"q{number}", f"r{number}")


async def test_what_the_service_knows_at_the_fork_the_copy_knows_too_and_nothing_later() -> None:
    known = ["before"]

    async def telling_what_is_known(request: SearchRequest, retrieval_id: str) -> AsyncGenerator[SearchFrame, None]:
        yield Done(retrieval_id=" ".join(known), hits=0, timings={}, next_offset=None)

    async with a_fork(telling_what_is_known) as fork:
        known.append("after")
        (done,) = await parts(fork, "what")

    assert isinstance(done, Done)
    assert done.retrieval_id == "before"


async def test_a_search_that_no_channel_could_answer_there_can_be_done_elsewhere() -> None:
    async with a_fork() as fork:
        with pytest.raises(WorkerLost, match="No store can be read"):
            await parts(fork, "unanswered")
        assert await parts(fork, "next")


async def test_a_step_that_fails_there_is_never_told_and_ends_the_copy() -> None:
    async with a_fork() as fork:
        async with aclosing(fork.search(SearchRequest(q="stuck"), "r")) as search:
            assert isinstance(await anext(search), Stage)
            with pytest.raises(WorkerLost, match="the step embed failed in it: no answer within 2 s"):
                await anext(search)
        await eventually(lambda: not exists(fork.pid))


async def test_an_answer_of_failed_steps_that_is_told_to_its_end_is_the_copys_last() -> None:
    async with a_fork() as fork:
        assert isinstance((await parts(fork, "stuck late"))[-1], Done)
        with pytest.raises(WorkerLost, match="no answer within 2 s"):
            await parts(fork, "next")


async def test_a_search_that_fails_there_can_be_done_elsewhere_and_the_copy_goes_on() -> None:
    async with a_fork() as fork:
        with pytest.raises(WorkerLost, match="ZeroDivisionError: a fault"):
            await parts(fork, "broken")
        assert await parts(fork, "next")


async def test_a_copy_that_dies_fails_every_search_it_had() -> None:
    async with a_fork() as fork:
        waiting = asyncio.create_task(parts(fork, "wait"))
        await eventually(lambda: fork.under_way)
        for q in ("die", "next"):
            with pytest.raises(WorkerLost, match="it has ended"):
                await parts(fork, q)
        with pytest.raises(WorkerLost, match="it has ended"):
            await waiting
        assert fork.under_way == 0


async def test_a_copy_that_says_nothing_is_ended() -> None:
    async with a_fork(patience=0.05) as fork:
        with pytest.raises(WorkerLost, match=r"sent nothing for 0\.05 s"):
            await parts(fork, "wait")
        await eventually(lambda: not exists(fork.pid))


async def test_a_copy_that_does_not_even_begin_is_ended_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_module, "BEGIN_SECONDS", 0.05)
    async with a_fork(patience=3600) as fork:
        os.kill(fork.pid or 0, signal.SIGSTOP)
        with pytest.raises(WorkerLost, match=r"sent nothing for 0\.05 s"):
            await parts(fork, "who")
        await eventually(lambda: not exists(fork.pid))


async def test_a_search_that_nobody_waits_for_is_stopped_there(tmp_path: Path) -> None:
    async def telling_of_the_stop(request: SearchRequest, retrieval_id: str) -> AsyncGenerator[SearchFrame, None]:
        try:
            yield Stage(name="begun", seconds=0, candidates=0)
            await asyncio.Event().wait()
        finally:
            (tmp_path / "stopped").touch()

    async with a_fork(telling_of_the_stop) as fork:
        async with aclosing(fork.search(SearchRequest(q="x"), "r")) as search:
            await anext(search)
        assert fork.under_way == 0
        await eventually((tmp_path / "stopped").exists)
        assert fork.lost is None


async def test_closing_waits_for_what_is_under_way_and_leaves_no_process(tmp_path: Path) -> None:
    async def when_told(request: SearchRequest, retrieval_id: str) -> AsyncGenerator[SearchFrame, None]:
        yield Stage(name="begun", seconds=0, candidates=0)
        await eventually((tmp_path / "go on").exists)
        yield Done(retrieval_id=retrieval_id, hits=0, timings={}, next_offset=None)

    fork = await WorkerProcess.create(lambda: when_told, 60.0)
    searching = asyncio.create_task(parts(fork, "slow"))
    await eventually(lambda: fork.under_way)
    closing = asyncio.create_task(fork.close())
    (tmp_path / "go on").touch()
    await closing

    assert len(await searching) == 2
    assert not exists(fork.pid)


async def test_a_connection_that_the_service_ends_is_not_kept_open_by_a_copy() -> None:
    service, client = socket.socketpair()
    async with a_fork() as fork:
        await parts(fork, "there")
        service.close()
        client.settimeout(10)
        assert client.recv(1) == b""
    client.close()


async def test_what_a_library_opens_again_in_a_copy_stays_open_there() -> None:
    opened: list[tuple[int, int]] = []

    async def writing_to_what_was_opened(
        request: SearchRequest, retrieval_id: str
    ) -> AsyncGenerator[SearchFrame, None]:
        ((reading, writing),) = opened
        os.write(writing, b"its own")
        yield Done(retrieval_id=os.read(reading, 7).decode(), hits=0, timings={}, next_offset=None)

    opens_at_forks.append(lambda: opened.append(os.pipe()))
    try:
        async with a_fork(writing_to_what_was_opened) as fork:
            (done,) = await parts(fork, "what")
    finally:
        opens_at_forks.clear()

    assert isinstance(done, Done)
    assert done.retrieval_id == "its own"
    assert not opened


async def test_no_signal_in_a_copy_wakes_the_service() -> None:
    async def telling_what_is_woken(request: SearchRequest, retrieval_id: str) -> AsyncGenerator[SearchFrame, None]:
        woken = signal.set_wakeup_fd(-1)
        yield Done(retrieval_id=str(woken), hits=0, timings={}, next_offset=None)

    waking, woken = socket.socketpair()
    waking.setblocking(False)
    before = signal.set_wakeup_fd(waking.fileno())
    try:
        async with a_fork(telling_what_is_woken) as fork:
            (done,) = await parts(fork, "what")
    finally:
        signal.set_wakeup_fd(before)
        waking.close()
        woken.close()

    assert isinstance(done, Done)
    assert done.retrieval_id == "-1"


def likely_to_go(pid: int | None) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii"))


def exists(pid: int | None) -> bool:
    assert pid
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


SNAPSHOT = SnapshotInfo(generation="g1", graph_position=3, table_versions={"chunks": 2}, positions="0:4", as_of="now")
PARTS: list[SearchFrame] = [
    Meta(retrieval_id="r", query="a b\nc", mode="hybrid", collection=None, snapshot=SNAPSHOT, budget_seconds=1 / 3),
    Stage(name="vector", seconds=0.1, candidates=7, error="no answer within 2 s"),
    make_hit(2, "Two lines\nand a line separator \u2028 and 🐟."),
    Done(retrieval_id="r", hits=1, timings={"total": 0.1 + 0.2}, next_offset=None, notes=["nothing"]),
]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: type(part).__name__)
def test_every_part_of_an_answer_arrives_as_it_was_in_one_line(part: SearchFrame) -> None:
    line = encode_frame(12, part)

    assert line.count(b"\n") == 1
    assert decode_frame(line) == (12, part)


def test_a_request_arrives_with_all_its_parameters() -> None:
    request = SearchRequest.model_validate(
        {"q": "Who?\nAnd when?", "k": 3, "filter": ["status=Final|Active"], "channels": "vector,keyword", "explain": 1}
    )

    arrived = decode_command(encode_command(SearchCommand(7, "r_1", request)))

    assert arrived == SearchCommand(7, "r_1", request)
    assert isinstance(arrived, SearchCommand)
    assert arrived.request.conditions == request.conditions


def test_a_search_that_nobody_waits_for_is_named() -> None:
    assert decode_command(encode_command(CancelCommand(7))) == CancelCommand(7)


def test_how_a_search_failed_is_told_in_one_line() -> None:
    line = encode_frame(3, Failure("no disk:\n  gone \udc80"))

    assert line.count(b"\n") == 1
    assert decode_frame(line) == (3, Failure("no disk: gone ?"))
