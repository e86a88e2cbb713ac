"""What the keeper of a part does when the part ends."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from schemas.exits import Exit, Failure, InUse
from streams.parts import Keeper


class ScriptedPart:
    """A part whose runs follow a script: an exit code for a run that ends before it is ready, `None` for one that stays.

    A code with a plus sign ends the run after it was ready.
    """

    name = "The part"
    log_file = Path("part.log")

    def __init__(self, runs: Sequence[str | None], start_failures: Sequence[Failure] = ()) -> None:
        self.runs = list(runs)
        self.start_failures = list(start_failures)
        self.started = 0
        self.run: str | None = None
        self.was_ready = False

    async def start(self) -> None:
        self.started += 1
        if self.started > 1 and self.start_failures:
            raise self.start_failures.pop(0)
        self.run = self.runs.pop(0)
        self.was_ready = False

    async def is_ready(self) -> bool:
        self.was_ready = self.run is None or self.run.startswith("+")
        return self.was_ready

    def poll(self) -> int | None:
        if self.run is None or (self.run.startswith("+") and not self.was_ready):
            return None
        return int(self.run)

    def said(self) -> str:
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

    monkeypatch.setattr("streams.parts.asyncio.sleep", sleep)
    return slept


async def keep(part: ScriptedPart, starts: int) -> list[str]:
    """Runs the keeper until the part was started so often and stays; what it said."""
    said: list[str] = []
    keeper = Keeper(part, said.append)
    keeping = asyncio.create_task(keeper.run())
    try:
        async with asyncio.timeout(5):
            while not keeping.done() and not (part.started >= starts and part.run is None and part.was_ready):
                await asyncio.sleep(0)
        if keeping.done():
            keeping.result()
        return said
    finally:
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)


async def test_a_part_that_dies_is_started_again_with_growing_delays(delays: list[float]) -> None:
    said = await keep(ScriptedPart(["+1", "+-9", "+70", None]), starts=4)

    assert delays == [1, 2, 4]
    assert said[0] == ("The part ended unexpectedly (exit code 1); it is started again in 1 s. Its log: part.log")
    assert "killed by SIGKILL" in said[2]
    assert said[-1] == "The part is ready again."


@pytest.mark.parametrize("code", [Exit.USAGE, Exit.IN_USE, Exit.NO_ACCESS])
async def test_what_no_restart_mends_is_handed_on_with_its_code(code: Exit, delays: list[float]) -> None:
    with pytest.raises(Failure, match="did not start.*\n.*its last words") as failure:
        await keep(ScriptedPart([str(int(code))]), starts=1)

    assert failure.value.exit_code == code
    assert delays == []


async def test_a_part_that_was_never_ready_is_given_up_at_the_third_time(delays: list[float]) -> None:
    part = ScriptedPart(["1", "1", "1"])

    with pytest.raises(Failure) as failure:
        await keep(part, starts=4)

    assert failure.value.exit_code == Exit.FAILED
    assert part.started == 3


async def test_once_it_was_ready_it_is_tried_for_ever(delays: list[float]) -> None:
    part = ScriptedPart(["+1", "4", "1", "1", "1", None], start_failures=[InUse("Port 9092 is in use.")])

    said = await keep(part, starts=7)

    assert delays == [1, 2, 4, 8, 16, 30]
    assert "The part could not be started; next try in 2 s. Port 9092 is in use." in said
