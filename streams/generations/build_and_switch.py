"""Carries out what is ordered of generations: one is built in a process beside this worker, switched to, or dropped.

The worker runs the live generation. Another one that is ordered is built, or brought up to date, by a second worker on
the same data directory, with a consumer group and a contributions topic of its own. When that one follows the log,
`CURRENT` is replaced, the second worker stops, and this one starts again on the new generation. Nothing is committed to
the live generation from when the other one has all that it has: readers never see an older state than before.
"""

import asyncio
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from indexer.errors import DamagedStore
from indexer.generation_folders import (
    Generation,
    current_generation,
    generations,
    read_build,
    require_room,
    switch_to,
    write_build,
)
from schemas.curation import decode_curation
from schemas.errors import Exit, Failure, MalformedEvent
from schemas.generations import Build, GenerationEvent, GenerationOrder
from streams.child_processes import Child, exit_text
from streams.kafka.partition_reader import AWAY, SettingsTopic
from streams.kafka.records import SourceRecord
from streams.worker_log import log

POLL_SECONDS = 1.0
SWITCH_SECONDS = 5.0
SWITCH_POLL_SECONDS = 0.1
LONGEST_SWITCH_PAUSE_SECONDS = 60.0
STOP_SECONDS = 20.0
FIRST_DELAY_SECONDS = 1.0
LONGEST_DELAY_SECONDS = 60.0
PERMANENT = (Exit.USAGE, Exit.NO_ACCESS, Exit.DAMAGED)


class PlacedOrder(NamedTuple):
    """An order, and the offset it has on the curation topic; `order` is None where the generation is to be dropped."""

    offset: int
    order: GenerationOrder | None


class GenerationOrders:
    """The newest order about each generation."""

    def __init__(self) -> None:
        self._newest: dict[str, PlacedOrder] = {}

    def take(self, records: Iterable[SourceRecord]) -> None:
        """Records of the curation topic in their order. What is malformed becomes a dead letter elsewhere, and changes
        nothing."""
        for record in records:
            try:
                event = decode_curation(record.key, record.value)
            except MalformedEvent:
                continue
            if isinstance(event, GenerationEvent):
                self._newest[event.name] = PlacedOrder(record.offset, event.order)

    def of(self, name: str) -> PlacedOrder | None:
        return self._newest.get(name)

    def dropped(self) -> list[str]:
        return [name for name, placed in self._newest.items() if placed.order is None]

    def wanted(self, existing: Collection[str]) -> dict[str, PlacedOrder]:
        """Those to be built or switched to, the latest order last: about generations that exist here, or whose base
        does."""
        found = {
            name: placed
            for name, placed in self._newest.items()
            if placed.order is not None and (name in existing or placed.order.base in existing)
        }
        return dict(sorted(found.items(), key=lambda item: item[1].offset))

    def target(self, existing: Collection[str]) -> str | None:
        """The generation that is to be live; None where nothing was ordered."""
        wanted = reversed(list(self.wanted(existing).items()))
        return next((name for name, placed in wanted if placed.order and placed.order.wanted == "live"), None)


class LiveGeneration(Protocol):
    """The stores that this worker writes."""

    async def pause(self) -> Mapping[int, int]:
        """From now on nothing is committed; the last offset of the documents topic stored, by partition."""
        ...

    def resume(self) -> None: ...


@dataclass
class _Builder:
    """The one process that builds, when it was started, how often it failed, and how often a switch to it was
    put off since it had not read what the live generation had."""

    name: str
    order_offset: int = -1
    process: Child | None = None
    started_ms: int = 0
    failures: int = 0
    start_at: float = 0.0
    gave_up: bool = False
    put_off: int = 0
    switch_at: float = 0.0


@dataclass(eq=False)
class GenerationHost:
    """One for each data directory, in the process that holds its lock.

    `start_build` starts a worker that builds the named generation; `forget_topic` deletes at the broker what belongs to
    one. Commits to the live generation rest for at most `switch_seconds` while a build catches up.
    """

    data_dir: Path
    topic: SettingsTopic
    live: LiveGeneration
    start_build: Callable[[str], Child]
    forget_topic: Callable[[str], None]
    _: KW_ONLY
    clock: Callable[[], float] = time.monotonic
    now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000
    switch_seconds: float = SWITCH_SECONDS
    _orders: GenerationOrders = field(default_factory=GenerationOrders)
    _builder: _Builder | None = None

    async def run(self) -> str:
        """The name of the generation that `CURRENT` now names in place of the one this worker runs."""
        while True:
            try:
                self._orders.take(await self.topic.new_records())
                switched = await self.step()
            except (*AWAY, OSError, DamagedStore) as error:
                log.debug("orders cannot be read or carried out just now", error=str(error)[:200])
            else:
                if switched is not None:
                    return switched
            await asyncio.sleep(POLL_SECONDS)

    async def close(self) -> None:
        """Stop the build that runs, which continues with the next worker."""
        await self._stop_builder()
        await self.topic.close()

    async def step(self) -> str | None:
        """Do what is to be done now; the generation that was switched to."""
        live = await asyncio.to_thread(current_generation, self.data_dir)
        if live is None:
            return None
        existing = await self._drop_ordered(live)
        wanted, target = self._orders.wanted(existing), self._orders.target(existing)
        building = self._to_build(list(wanted), target, live.name)
        if building is None:
            await self._stop_builder()
            return None
        placed = wanted[building]
        if self._builder is None or self._builder.name != building:
            await self._stop_builder()
            self._builder = _Builder(building)
        if self._builder.order_offset != placed.offset:  # ordered again: try again
            self._builder.order_offset, self._builder.gave_up = placed.offset, False
        generation = Generation(self.data_dir, building)
        order = placed.order
        await self._keep_building(self._builder, generation, order.reason if order else "", live)
        force = order is not None and order.force
        if building != target or not _may_go_live(self._builder, read_build(generation), force=force):
            return None
        if not await self._switch(self._builder, generation):
            return None
        log.info("switched to generation", generation=building, before=live.name)
        return building

    async def _drop_ordered(self, live: Generation) -> set[str]:
        """Drop what is ordered to go; the generations that are left."""
        existing = {generation.name for generation in generations(self.data_dir)}
        for name in self._orders.dropped():
            if name in existing and name != live.name:
                await self._drop(Generation(self.data_dir, name))
                existing.discard(name)
        return existing

    def _to_build(self, wanted: Sequence[str], target: str | None, live: str) -> str | None:
        """The generation to build now: the target, or else the last one ordered that is not live."""
        others = [name for name in wanted if name != live]
        building = target if target not in (None, live) else next(reversed(others), None)
        is_passed_over = building is not None and target == live and self._is_older(building, live)
        return None if is_passed_over else building

    async def _switch(self, builder: _Builder, generation: Generation) -> bool:
        """Switch once the build has all that the live generation has. Where it has not in time, commits go on, and
        False: the next try is later each time."""
        if self.clock() < builder.switch_at:
            return False
        switched = False
        try:
            async with asyncio.timeout(self.switch_seconds):
                await self._caught_up(generation, await self.live.pause())
            await asyncio.to_thread(switch_to, generation)
            switched = True
        except TimeoutError:
            builder.put_off += 1
            pause = min(LONGEST_SWITCH_PAUSE_SECONDS, SWITCH_SECONDS * 2**builder.put_off)
            builder.switch_at = self.clock() + pause
            log.info("switch put off: the build is behind", generation=generation.name, seconds=pause)
        finally:
            if not switched:  # else this worker ends: what it still committed would have to be read twice
                self.live.resume()
        return switched

    async def _caught_up(self, generation: Generation, asked: Mapping[int, int]) -> None:
        """Return once the build has stored every asked offset."""
        while True:
            build = read_build(generation)
            if build is not None and all(build.reached.get(number, -1) >= offset for number, offset in asked.items()):
                return
            await asyncio.sleep(SWITCH_POLL_SECONDS)

    def _is_older(self, name: str, live: str) -> bool:
        """Whether the live one was ordered after it: then it is kept as it is, for switching back."""
        placed, newer = self._orders.of(name), self._orders.of(live)
        return placed is not None and newer is not None and newer.offset > placed.offset

    async def _keep_building(self, builder: _Builder, generation: Generation, reason: str, live: Generation) -> None:
        if builder.process is not None:
            code = builder.process.poll()
            if code is None:
                return
            await self._ended(builder, generation, code)
        if builder.gave_up or self.clock() < builder.start_at:
            return
        if read_build(generation) is None or not generation.manifest_path.exists():
            try:
                if not generation.manifest_path.exists():
                    await asyncio.to_thread(require_room, live)
            except Failure as error:
                builder.gave_up = True
                self._write(generation, state="failed", problem=str(error), reason=reason, base=live.name)
                return
            self._write(generation, state="building", reason=reason, base=live.name, started_ms=self.now_ms())
        builder.started_ms = self.now_ms()
        builder.process = await asyncio.to_thread(self.start_build, generation.name)
        log.info("building generation", generation=generation.name, reason=reason)

    async def _ended(self, builder: _Builder, generation: Generation, code: int) -> None:
        """Start it again after a while, unless what it says cannot repair itself."""
        tail = builder.process.output_tail() if builder.process is not None else ""
        builder.process = None
        builder.failures += 1
        builder.gave_up = code in PERMANENT
        builder.start_at = self.clock() + min(LONGEST_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (builder.failures - 1))
        problem = f"The build ended with {exit_text(code)}: {_message(tail)}"
        log.warning("the build of a generation ended", generation=generation.name, problem=problem)
        self._write(generation, state="failed" if builder.gave_up else "building", problem=problem)

    def _write(self, generation: Generation, **changes: object) -> None:
        build = read_build(generation) or Build(state="building")
        write_build(generation, build.model_copy(update={"at_ms": self.now_ms(), **changes}))

    async def _stop_builder(self) -> None:
        builder, self._builder = self._builder, None
        if builder is not None and builder.process is not None:
            await asyncio.to_thread(builder.process.stop, STOP_SECONDS)

    async def _drop(self, generation: Generation) -> None:
        if self._builder is not None and self._builder.name == generation.name:
            await self._stop_builder()
        await asyncio.to_thread(shutil.rmtree, generation.root, True)
        try:
            await asyncio.to_thread(self.forget_topic, generation.name)
        except (Failure, OSError) as error:
            log.warning("the topic of a dropped generation is still there", error=str(error)[:200])
        log.info("dropped generation", generation=generation.name)


def _may_go_live(builder: _Builder, build: Build | None, *, force: bool) -> bool:
    """Whether the build is complete since the builder started, and the builder runs; one that found a problem may by
    force."""
    if build is None or build.state != "ready" or build.at_ms < builder.started_ms or builder.process is None:
        return False
    return build.problem is None or force


def _message(tail: str) -> str:
    """The last error that a process reported, or else its last line: its log is lines of JSON."""
    lines = tail.splitlines()
    for line in reversed(lines):
        try:
            entry = msgspec.json.decode(line)
        except msgspec.DecodeError:
            return line[:300]
        if isinstance(entry, dict) and (entry.get("level") == "error" or line == lines[0]):
            return f"{entry.get('error') or entry.get('event', line)}"[:600]
    return tail[:300]
