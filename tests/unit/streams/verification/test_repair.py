"""What is ordered of the worker to repair, and when it is refused."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from indexer.generation_folders import Generation, write_build
from indexer.integrity.noted_damage import note_damage
from schemas.errors import Exit, Failure
from schemas.generations import Build
from schemas.orders import MOST_DOCUMENTS
from schemas.runtime import WorkerState, write_state
from schemas.settings import KafkaSettings
from streams.verification import repair
from streams.verification.repair import Orders, RepairPlan
from thalweg import app


class Found(NamedTuple):
    """What a report names; only that is looked at."""

    documents_that_differ: list[str]
    graph_differs: bool = False


@pytest.fixture
def live(tmp_path: Path) -> Generation:
    generation = Generation(tmp_path, "g0001-000000")
    generation.root.mkdir(parents=True)
    write_state(tmp_path, WorkerState(at_ms=time.time_ns() // 1_000_000, phase="running"))
    return generation


def orders(generation: Generation) -> Orders:
    return Orders(KafkaSettings(bootstrap_servers="127.0.0.1:1"), "t.", generation)


def test_what_is_found_is_repaired_as_documents_as_the_graph_or_all_at_once() -> None:
    few: Any = Found(["c/b", "c/a"], graph_differs=True)
    assert RepairPlan.of(few, None, None) == RepairPlan(["c/a", "c/b"], graph=True)
    many: Any = Found([f"c/{number}" for number in range(MOST_DOCUMENTS + 1)])
    assert RepairPlan.of(many, None, None) == RepairPlan(stores=True)
    none: Any = Found([])
    assert not RepairPlan.of(none, None, None)


@pytest.mark.parametrize(
    "state", [None, WorkerState(at_ms=0, phase="running"), WorkerState(at_ms=2**50, phase="failed")]
)
def test_without_a_running_worker_it_is_refused(live: Generation, state: WorkerState | None) -> None:
    (live.data_dir / "worker.json").unlink(missing_ok=True)
    if state is not None:
        write_state(live.data_dir, state)
    with pytest.raises(Failure, match=r"No worker runs(?s:.*)start it with 'thalweg up'"):
        orders(live)


def test_while_the_stores_are_healed_it_is_refused(live: Generation) -> None:
    noted = note_damage(live, "A file is cut.")
    with pytest.raises(Failure, match=f"A file is cut.*'thalweg generations show {noted.successor}'"):
        orders(live)


def test_all_stores_are_not_made_twice_at_once(live: Generation) -> None:
    write_build(Generation(live.data_dir, "g0002-000000"), Build(state="building"))
    with pytest.raises(Failure, match=r"g0002-000000 is being built(?s:.*)wait for it"):
        orders(live).rebuild()


def test_a_repair_that_no_worker_takes_up_is_told(live: Generation, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody(*_: object) -> Iterator[bytes | None]:
        while True:
            yield None

    monkeypatch.setattr(repair, "BEGIN_SECONDS", 0.01)
    monkeypatch.setattr(repair, "follow_order", nobody)
    monkeypatch.setattr(repair, "send_order", lambda *_: 7)
    with pytest.raises(Failure, match="no worker of generation g0001-000000 has begun it"):
        orders(live).repair(["c/a"], graph=False, show=lambda _: None)


@pytest.mark.parametrize(
    ("options", "code", "says"),
    [
        ("--repair --document nothing", Exit.FAILED, "write collection/id"),
        ("--document c/a", Exit.USAGE, "add --repair"),
    ],
)
def test_repair_of_no_document_is_refused(tmp_path: Path, options: str, code: Exit, says: str) -> None:
    refused = CliRunner().invoke(app, ["verify", *options.split(), "--data-dir", str(tmp_path)])
    assert (refused.exit_code, says in refused.stderr) == (code, True)
