"""Damaged stores are replaced by a generation that is ordered once, and by another one where that is damaged, too."""

import asyncio
from pathlib import Path

import pytest

from indexer.errors import DamagedStore
from indexer.generation_folders import Generation, open_generation
from indexer.integrity.noted_damage import Damaged, note_damage, read_damage
from schemas.errors import Failure
from streams.generations import healing
from streams.generations.healing import UnsafeToHeal, keep_healing, require_undamaged
from tests.support.fixtures.manifest import MANIFEST
from tests.support.waiting import eventually


class Log:
    """Takes orders, or fails as it is told to."""

    def __init__(self) -> None:
        self.ordered: list[str] = []
        self.failures: list[Failure] = []

    async def order(self, noted: Damaged) -> None:
        if self.failures:
            raise self.failures.pop()
        self.ordered.append(noted.successor)


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generation:
    monkeypatch.setattr(healing, "RETRY_SECONDS", 0.01)
    generation = open_generation(tmp_path, MANIFEST)
    note_damage(generation, "A file is cut.")
    return generation


def noted_of(generation: Generation) -> Damaged:
    noted = read_damage(generation)
    assert noted is not None
    return noted


async def test_successor_is_ordered_once_when_kafka_answers(damaged: Generation) -> None:
    log = Log()
    log.failures = [Failure("Kafka does not answer."), Failure("Kafka does not answer.")]
    task = asyncio.create_task(keep_healing(damaged, log.order))
    await eventually(lambda: noted_of(damaged).ordered)
    assert note_damage(damaged, "Another file is cut.") == noted_of(damaged)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(task, 0.1)
    assert log.ordered == [noted_of(damaged).successor]
    with pytest.raises(DamagedStore, match="A file is cut"):
        require_undamaged(damaged)


async def test_successor_that_is_damaged_itself_is_replaced(damaged: Generation) -> None:
    log = Log()
    task = asyncio.create_task(keep_healing(damaged, log.order))
    await eventually(lambda: log.ordered)
    first = Generation(damaged.data_dir, log.ordered[0])
    note_damage(first, "Its file is cut, too.")
    await eventually(lambda: len(log.ordered) == 2)
    assert log.ordered[1] not in (first.name, damaged.name)
    task.cancel()


async def test_stores_that_the_log_cannot_replace_say_why(damaged: Generation) -> None:
    log = Log()
    log.failures = [UnsafeToHeal("The log is another one: run 'thalweg export'.")]
    with pytest.raises(UnsafeToHeal):
        await keep_healing(damaged, log.order)
    assert log.ordered == []
    assert noted_of(damaged).sentence() == "A file is cut. The log is another one: run 'thalweg export'."
