"""One round of `make torture`: killed, starved and cut off under load, the stores end as if nothing had happened."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from streams.embedded_kafka.broker import EmbeddedKafka
from streams.ports import free_port
from tests.acceptance.torture import disturbances
from tests.acceptance.torture.disturbances import Disturbance
from tests.acceptance.torture.faults import CALLS
from tests.acceptance.torture.rounds import Round

SEED = 20261123
KILLED_AT = ("lance: add chunks", "send: mark", "lance: write positions", "snapshot: manifest")
SHORT: Sequence[tuple[str, Disturbance]] = [
    ("rebuild", disturbances.rebuild),
    ("kills", partial(disturbances.kill_at_each, harm="kill before", calls=KILLED_AT)),
    ("call fails", partial(disturbances.fail_at, harm="fail after", call="", after=30)),
    ("disk full", disturbances.fill_disk),
]
LONG: Sequence[tuple[str, Disturbance]] = [
    ("kill", disturbances.kill),
    ("two writers", disturbances.write_from_elsewhere),
    ("broker restart", disturbances.restart_broker),
    *(("kills", partial(disturbances.kill_at_each, harm=harm, calls=CALLS)) for harm in disturbances.KILLS),
]


@pytest.mark.timeout(900)
def test_short_torture_leaves_undisturbed_stores(tmp_path: Path) -> None:
    run(tmp_path, SHORT)


@pytest.mark.nightly
@pytest.mark.timeout(3_600)
def test_kills_around_each_call_leave_undisturbed_stores(tmp_path: Path) -> None:
    run(tmp_path, LONG)


def run(folder: Path, plan: Sequence[tuple[str, Disturbance]]) -> None:
    with EmbeddedKafka(folder / "broker", port=free_port()) as broker:
        report = Round(broker, folder / "round", SEED, plan=plan).run(print)
    assert report.findings == [], report.told
