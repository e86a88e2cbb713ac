"""Orders about generations are carried out: built, brought up to date, switched to, dropped; whatever fails."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from indexer.generation_folders import (
    Generation,
    current_generation,
    make_generation,
    open_generation,
    read_build,
    write_build,
)
from schemas.curation import encode_choice
from schemas.errors import Exit
from schemas.generations import Build, GenerationOrder, generation_key
from streams.generations.build_and_switch import LONGEST_DELAY_SECONDS, LONGEST_SWITCH_PAUSE_SECONDS, GenerationHost
from tests.support.fakes.in_memory_log import InMemoryLog
from tests.support.fixtures.manifest import MANIFEST
from tests.support.waiting import eventually

SECOND = "g0002-bbbbbb"
THIRD = "g0003-cccccc"


class Process:
    """A build that does what the test says."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.stopped = False

    def poll(self) -> int | None:
        return self.code

    def stop(self, grace_seconds: float) -> int:
        del grace_seconds
        self.stopped = True
        return 0

    def output_tail(self, lines: int = 20) -> str:
        del lines
        return '{"event": "worker failed", "level": "error", "error": "the model is gone"}\n{"event": "worker stopped"}'


class Live:
    """The live generation: what it has stored, and whether commits rest."""

    def __init__(self) -> None:
        self.reached: dict[int, int] = {}
        self.paused = False
        self.pauses = 0

    async def pause(self) -> Mapping[int, int]:
        self.paused, self.pauses = True, self.pauses + 1
        return self.reached

    def resume(self) -> None:
        self.paused = False


class Host:
    """A host on a data directory with one live generation, its clock and the builds it started."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.topic = InMemoryLog()
        self.started: list[tuple[str, Process]] = []
        self.forgotten: list[str] = []
        self.now = 0.0
        self.of_live = Live()
        open_generation(data_dir, MANIFEST)
        self.host = self.restarted()

    def order(self, name: str, order: GenerationOrder | None) -> None:
        self.topic.append(generation_key(name), None if order is None else encode_choice(order))

    def restarted(self) -> GenerationHost:
        self.topic.read = 0
        self.host = GenerationHost(
            self.data_dir,
            self.topic,
            self.of_live,
            self._start,
            self.forgotten.append,
            clock=lambda: self.now,
            now_ms=lambda: int(self.now * 1000),
            switch_seconds=0.05,
        )
        return self.host

    def _start(self, name: str) -> Process:
        make_generation(self.data_dir, msgspec.structs.replace(MANIFEST, generation=name))
        process = Process()
        self.started.append((name, process))
        return process

    def ready(self, name: str, problem: str | None = None, reached: Mapping[int, int] | None = None) -> None:
        generation = Generation(self.data_dir, name)
        build = read_build(generation) or Build(state="building")
        at_ms = int(self.now * 1000)
        changes = {"state": "ready", "at_ms": at_ms, "ready_ms": at_ms, "problem": problem, "reached": reached or {}}
        write_build(generation, build.model_copy(update=changes))

    async def step(self) -> str | None:
        self.now += 1.0
        self.host._orders.take(await self.topic.new_records())
        return await self.host.step()

    @property
    def live(self) -> str:
        current = current_generation(self.data_dir)
        assert current is not None
        return current.name

    def build(self, name: str) -> Build:
        build = read_build(Generation(self.data_dir, name))
        assert build is not None
        return build


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def wanted(state: str, base: str = MANIFEST.generation, **more: object) -> GenerationOrder:
    return GenerationOrder.model_validate({"wanted": state, "base": base, **more})


async def test_an_ordered_generation_is_built_and_switched_to_when_it_is_ready(host: Host) -> None:
    assert await host.step() is None
    host.order(SECOND, wanted("live", reason="chunks"))
    assert await host.step() is None
    ((name, process),) = host.started
    assert (name, host.build(SECOND).reason, host.live) == (SECOND, "chunks", MANIFEST.generation)
    assert await host.step() is None
    host.ready(SECOND)
    assert await host.step() == SECOND
    assert (host.live, process.stopped, host.of_live.paused) == (SECOND, False, True)
    await host.host.close()
    assert (process.stopped, len(host.started)) == (True, 1)


async def test_switch_waits_until_build_has_what_live_one_has(host: Host) -> None:
    host.of_live.reached = {0: 700, 1: 3}
    host.order(SECOND, wanted("live"))
    await host.step()
    host.ready(SECOND, reached={0: 5, 1: 3})
    assert await host.step() is None
    assert (host.live, host.of_live.paused) == (MANIFEST.generation, False), "commits go on"
    host.ready(SECOND, reached={0: 699, 1: 3})
    assert await host.step() is None
    assert host.of_live.pauses == 1, "the next try is later"
    host.now += LONGEST_SWITCH_PAUSE_SECONDS
    host.ready(SECOND, reached={0: 699, 1: 3})
    assert await host.step() is None
    host.now += LONGEST_SWITCH_PAUSE_SECONDS
    host.ready(SECOND, reached={0: 700, 1: 4})
    assert await host.step() == SECOND
    assert host.of_live.paused, "nothing more is committed to the one before"


async def test_switch_happens_as_soon_as_paused_live_one_is_reached(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.host.switch_seconds = 5.0
    host.of_live.reached = {0: 9}
    host.order(SECOND, wanted("live"))
    await host.step()
    host.ready(SECOND, reached={0: 8})
    switching = asyncio.create_task(host.step())
    await eventually(lambda: host.of_live.paused)
    assert host.live == MANIFEST.generation
    host.ready(SECOND, reached={0: 9})
    assert await switching == SECOND


async def test_generation_that_fell_behind_is_not_switched_to(host: Host) -> None:
    host.order(SECOND, wanted("built"))
    await host.step()
    host.ready(SECOND)
    write_build(Generation(host.data_dir, SECOND), host.build(SECOND).model_copy(update={"state": "building"}))
    host.order(SECOND, wanted("live"))
    assert [await host.step() for _ in range(3)] == [None] * 3
    assert host.of_live.pauses == 0
    host.ready(SECOND)
    assert await host.step() == SECOND


async def test_after_a_restart_nothing_is_built_or_switched_again(host: Host) -> None:
    host.order(SECOND, wanted("live"))
    await host.step()
    host.ready(SECOND)
    await host.step()
    host.restarted()
    assert [await host.step() for _ in range(3)] == [None] * 3
    assert (host.live, len(host.started)) == (SECOND, 1)


async def test_a_ready_state_of_before_does_not_count_until_the_build_has_followed_the_log_again(host: Host) -> None:
    host.order(SECOND, wanted("built"))
    await host.step()
    host.ready(SECOND)
    host.restarted()
    host.order(SECOND, wanted("live"))
    assert await host.step() is None
    assert await host.step() is None
    host.ready(SECOND)
    assert await host.step() == SECOND


async def test_switching_back_brings_the_earlier_one_up_to_date_first(host: Host) -> None:
    host.order(SECOND, wanted("live"))
    await host.step()
    host.ready(SECOND)
    await host.step()
    host.order(MANIFEST.generation, wanted("live", SECOND))
    assert await host.step() is None
    assert host.started[-1][0] == MANIFEST.generation
    host.ready(MANIFEST.generation)
    assert await host.step() == MANIFEST.generation
    host.restarted()
    await host.step()
    assert (host.live, len(host.started)) == (MANIFEST.generation, 2)


async def test_missing_documents_hold_a_switch_back_until_it_is_forced(host: Host) -> None:
    host.order(SECOND, wanted("live"))
    await host.step()
    host.ready(SECOND, problem="3 documents are missing")
    assert await host.step() is None
    assert not host.started[0][1].stopped
    host.order(SECOND, wanted("live", force=True))
    assert await host.step() == SECOND


async def test_one_that_is_only_wanted_built_is_kept_up_to_date_and_not_switched_to(host: Host) -> None:
    host.order(SECOND, wanted("built"))
    await host.step()
    host.ready(SECOND)
    assert [await host.step() for _ in range(3)] == [None] * 3
    assert (host.live, host.started[0][1].stopped) == (MANIFEST.generation, False)


async def test_a_build_that_ends_is_started_again_after_a_growing_wait(host: Host) -> None:
    host.order(SECOND, wanted("live"))
    await host.step()
    for failures in range(1, 4):
        host.started[-1][1].code = -9
        await host.step()
        assert host.build(SECOND).problem == "The build ended with killed by SIGKILL: the model is gone"
        assert len(host.started) == failures
        host.now += LONGEST_DELAY_SECONDS
        await host.step()
        assert len(host.started) == failures + 1


async def test_a_build_that_cannot_repair_itself_has_failed_until_it_is_ordered_again(host: Host) -> None:
    host.order(SECOND, wanted("live"))
    await host.step()
    host.started[-1][1].code = int(Exit.USAGE)
    await host.step()
    host.now += 10 * LONGEST_DELAY_SECONDS
    await host.step()
    assert (host.build(SECOND).state, len(host.started)) == ("failed", 1)
    host.order(SECOND, wanted("live"))
    await host.step()
    host.now += LONGEST_DELAY_SECONDS
    await host.step()
    assert len(host.started) == 2


async def test_dropping_ends_the_build_and_removes_folder_and_topic(host: Host) -> None:
    host.order(SECOND, wanted("live"))
    await host.step()
    host.order(SECOND, None)
    await host.step()
    assert host.started[0][1].stopped
    assert (host.forgotten, Generation(host.data_dir, SECOND).root.exists()) == ([SECOND], False)
    assert await host.step() is None
    assert len(host.started) == 1


async def test_the_live_one_is_not_dropped(host: Host) -> None:
    host.order(MANIFEST.generation, None)
    await host.step()
    assert (host.live, host.forgotten) == (MANIFEST.generation, [])


async def test_a_later_order_takes_over_from_a_build(host: Host) -> None:
    host.order(SECOND, wanted("live"))
    await host.step()
    host.order(THIRD, wanted("live"))
    await host.step()
    assert host.started[0][1].stopped
    assert host.started[1][0] == THIRD


async def test_orders_about_another_data_directory_are_not_for_this_one(host: Host) -> None:
    host.order(SECOND, wanted("live", "g0007-dddddd"))
    await host.step()
    assert host.started == []


async def test_too_little_room_fails_the_build_with_the_sizes(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _path: type("Usage", (), {"free": 0}))
    host.order(SECOND, wanted("live"))
    await host.step()
    assert host.started == []
    assert host.build(SECOND).state == "failed"
    assert "make room" in (host.build(SECOND).problem or "")
