"""What becomes of a part that ends, and when it is started again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from schemas.errors import Exit, Failure, InUse
from streams.child_processes import file_tail
from streams.supervisor import parts
from streams.supervisor.parts import BackOff, PartRunner, follow, readable, trim
from tests.support.waiting import eventually


class Run(NamedTuple):
    """One run of a part: the code it ends with (None: it stays), and whether it is ready before that."""

    code: int | None
    ready: bool = True


STAYS = Run(None)


class ScriptedPart:
    """A part whose runs follow a script."""

    name = "The part"
    log_file = Path("part.log")

    def __init__(self, runs: Sequence[Run], start_failures: Sequence[Failure] = ()) -> None:
        self.runs = list(runs)
        self.start_failures = list(start_failures)
        self.started = 0
        self.run = STAYS
        self.was_ready = False
        self.noted: list[str] = []
        self.stays = asyncio.Event()

    async def start(self) -> None:
        self.started += 1
        if self.started > 1 and self.start_failures:
            raise self.start_failures.pop(0)
        self.run = self.runs.pop(0)
        self.was_ready = False

    async def is_ready(self) -> bool:
        self.was_ready = self.run.ready
        if self.run == STAYS:
            self.stays.set()
        return self.was_ready

    async def notes(self) -> list[str]:
        return self.noted

    def poll(self) -> int | None:
        return None if self.run.ready and not self.was_ready else self.run.code

    def output(self) -> str:
        return "its last words"

    async def stop(self) -> None: ...

    def kill(self) -> None: ...


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The back-off delays, which pass at once."""
    slept: list[float] = []
    really_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        if seconds >= 1:
            slept.append(seconds)
        await really_sleep(0)

    monkeypatch.setattr("streams.supervisor.parts.asyncio.sleep", sleep)
    return slept


async def keep(part: ScriptedPart) -> list[str]:
    """Runs the runner until the part stays up; what it said. Raises what the runner raised."""
    said: list[str] = []
    keeping = asyncio.create_task(PartRunner(part, said.append).run())
    staying = asyncio.create_task(part.stays.wait())
    done, waiting = await asyncio.wait({keeping, staying}, timeout=5, return_when=asyncio.FIRST_COMPLETED)
    assert done
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    if keeping in done:
        keeping.result()
    return said


async def test_a_part_that_dies_is_started_again_with_growing_delays(delays: list[float]) -> None:
    said = await keep(ScriptedPart([Run(1), Run(-9), Run(70), STAYS]))

    assert delays == [1, 2]
    assert said[0] == "The part ended unexpectedly (exit code 1); it is started again at once. Its log: part.log"
    assert "it is started again in 1 s" in said[1] + said[2]
    assert "killed by SIGKILL" in said[2]
    assert said[-1] == "The part is ready again."


async def test_what_a_working_part_notes_is_said_once(delays: list[float]) -> None:
    part = ScriptedPart([STAYS])
    part.noted = ["Something to do."]
    said: list[str] = []
    keeping = asyncio.create_task(PartRunner(part, said.append).run())
    await eventually(lambda: said)
    keeping.cancel()
    assert said == ["Something to do."]


@pytest.mark.parametrize("code", [Exit.USAGE, Exit.IN_USE, Exit.NO_ACCESS])
async def test_what_no_restart_repairs_is_handed_on_with_its_code(code: Exit, delays: list[float]) -> None:
    with pytest.raises(Failure, match=r"did not start.*\n.*its last words") as failure:
        await keep(ScriptedPart([Run(code, ready=False)]))

    assert failure.value.exit_code == code
    assert delays == []


async def test_a_part_that_was_never_ready_is_given_up_at_the_third_time(delays: list[float]) -> None:
    part = ScriptedPart([Run(1, ready=False)] * 4)

    with pytest.raises(Failure) as failure:
        await keep(part)

    assert failure.value.exit_code == Exit.FAILED
    assert part.started == 3


async def test_once_it_was_ready_it_is_tried_for_ever(delays: list[float]) -> None:
    dead = [Run(code, ready=False) for code in (4, 1, 1, 1)]
    part = ScriptedPart([Run(1), *dead, STAYS], start_failures=[InUse("Port 9092 is in use.")])

    said = await keep(part)

    assert delays == [1, 2, 4, 8, 16]
    assert "The part could not be started; next try in 1 s. Port 9092 is in use." in said


def test_the_first_start_is_at_once_and_the_delay_doubles_up_to_half_a_minute() -> None:
    back_off = BackOff()

    assert [back_off.after_run_of(0.5) for _ in range(8)] == [0, 1, 2, 4, 8, 16, 30, 30]


def test_crashes_that_are_a_minute_apart_wait_for_nothing() -> None:
    back_off = BackOff()

    assert [back_off.after_run_of(55) for _ in range(10)] == [0] * 10


def test_a_while_of_health_ends_a_loop() -> None:
    back_off = BackOff(failures=5)

    assert back_off.after_run_of(46) == 0
    assert back_off.after_run_of(44) == 1


def test_a_large_log_is_kept_aside_and_emptied_under_its_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "LARGEST_LOG_BYTES", 10)
    log = tmp_path / "worker.log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"more than ten bytes\n")
        trim(log)
        writer.write(b"new\n")
        trim(log)

    assert log.read_bytes() == b"new\n"
    assert (tmp_path / "worker.log.1").read_bytes() == b"more than ten bytes\n"


def test_a_missing_log_is_nothing_to_trim(tmp_path: Path) -> None:
    trim(tmp_path / "none.log")

    assert list(tmp_path.iterdir()) == []


async def test_new_lines_are_shown_with_their_part_also_after_a_trim(tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    log.write_text("before\n")
    shown: asyncio.Queue[str] = asyncio.Queue()
    following = asyncio.create_task(follow(log, "worker", shown.put_nowait))
    await asyncio.sleep(0)

    with log.open("a") as writer:
        writer.write("one\ntwo, in")
    first = await asyncio.wait_for(shown.get(), 5)
    with log.open("a") as writer:
        writer.write(" parts\n")
    second = await asyncio.wait_for(shown.get(), 5)
    log.write_text("after\n")
    third = await asyncio.wait_for(shown.get(), 5)
    following.cancel()

    assert [first, second, third] == ["worker | one", "worker | two, in parts", "worker | after"]


def test_the_tail_is_of_this_run_unless_the_log_was_emptied(tmp_path: Path) -> None:
    log = tmp_path / "kafka.log"
    log.write_text("old\nnew one\nnew two\n")

    assert file_tail(log, 5, start=4) == "new one\nnew two"
    assert file_tail(log, 1) == "new two"
    assert file_tail(log, 5, start=1000) == "old\nnew one\nnew two"
    assert file_tail(tmp_path / "none", 5) == ""


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("plain words", "plain words"),
        (
            '{"event": "Another worker is using it.\\nStop it.", "level": "error"}',
            "Another worker is using it.\nStop it.",
        ),
        ('{"event": "worker failed", "error": "torn", "exception": "Traceback"}', "worker failed: torn\nTraceback"),
        ("[1]", "[1]"),
    ],
)
def test_of_a_line_in_json_a_person_reads_the_event(line: str, shown: str) -> None:
    assert readable(line) == shown
