"""Damage is told as soon as it is found, and until a whole look does not find it any more."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from indexer.generation_folders import Generation
from indexer.integrity.files import Damage
from query_api.index.store_opening import IntegrityMonitor
from tests.support.fakes.engine import ScriptedEngine
from tests.support.waiting import eventually

TABLE = Damage("lance/chunks.lance/data/a.lance", "does not match its checksum")
SNAPSHOT = Damage("snapshots/1.kuzu", "does not match its checksum")


@pytest.fixture
def engine() -> ScriptedEngine:
    return ScriptedEngine()


@pytest.fixture
async def watch(engine: ScriptedEngine, tmp_path: Path) -> IntegrityMonitor:
    double: Any = engine
    return IntegrityMonitor(double, lambda: Generation(tmp_path, "g0001"), pause_seconds=0.001)


async def test_it_is_told_until_a_look_does_not_find_it(engine: ScriptedEngine, watch: IntegrityMonitor) -> None:
    looking = asyncio.create_task(watch.run())
    assert watch.sentence() is None
    engine.damage = [TABLE]
    await eventually(lambda: watch.damage)
    assert watch.index_damage() == [TABLE]
    assert "lance/chunks.lance/data/a.lance does not match its checksum" in (watch.sentence() or "")
    assert "thalweg generations list" in (watch.sentence() or "")
    engine.damage = []
    await eventually(lambda: not watch.damage)
    looking.cancel()


async def test_what_the_worker_replaces_asks_for_nothing(engine: ScriptedEngine, watch: IntegrityMonitor) -> None:
    engine.damage = [SNAPSHOT]
    looking = asyncio.create_task(watch.run())
    await eventually(lambda: watch.damage)
    assert watch.index_damage() == []
    assert "nothing is to be done" in (watch.sentence() or "")
    looking.cancel()


async def test_a_look_that_fails_is_followed_by_another(
    engine: ScriptedEngine, watch: IntegrityMonitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def damage_of(generation: Generation) -> Iterator[list[Damage]]:
        looks.append(1)
        if len(looks) == 1:
            raise OSError(24, "Too many open files")
        yield [TABLE]

    monkeypatch.setattr(engine, "damage_of", damage_of)
    looking = asyncio.create_task(watch.run())
    await eventually(lambda: watch.damage)
    looking.cancel()
