"""An installation that nobody uses is verified as equal, however many canaries have passed."""

import json
from pathlib import Path

import pytest

from schemas.ids import parse_positions
from tests.support.constants import PROGRAM, given
from tests.support.processes.installation import HASHING, Installation, installation
from tests.support.waiting import wait_until

QUICK = {**HASHING, **given({"query_api.service_context.CANARY_SECONDS": 1})}
DOCUMENTS = 5
ROUNDS = 3


def offsets(thalweg: Installation) -> int:
    return sum(parse_positions(thalweg.run_json("status")["positions"].partition("@")[0]).values())


def let_canaries_pass(thalweg: Installation) -> None:
    """Each round is a record in each partition."""
    before, partitions = offsets(thalweg), len(thalweg.run_json("status")["positions"].split(","))
    wait_until(lambda: offsets(thalweg) >= before + ROUNDS * partitions, f"{ROUNDS} rounds of canaries passed", 120)


def digest_when_idle(thalweg: Installation) -> str:
    let_canaries_pass(thalweg)
    report = thalweg.verify()
    assert (report["ok"], report["complete"], report["differences"]) == (True, True, [])
    ledger = report["ledger"]
    assert (ledger["balanced"], ledger["records"], ledger["indexed"]) == (True, DOCUMENTS, DOCUMENTS)
    status = thalweg.run_json("status")
    assert status["graph_position"] == status["graph_base_position"]
    assert status["counts"]["documents"] == DOCUMENTS
    assert status["counts"]["deleted"] == 0
    return str(report["digest"])


@pytest.mark.nightly  # the torture compares a rebuilt generation with that of an undisturbed worker each time
@pytest.mark.timeout(600)
def test_idle_installation_is_equal_also_rebuilt_and_restarted(tmp_path: Path) -> None:
    lines = "\n".join(json.dumps({"id": f"d{n}", "content": f"Gauge {n} on the Thur."}) for n in range(DOCUMENTS))
    with installation(tmp_path / "data", PROGRAM, **QUICK) as thalweg:
        thalweg.run("load", "-", text_in=lines)
        digest = digest_when_idle(thalweg)
        assert thalweg.run_json("rebuild")["name"] == thalweg.run_json("status")["generation"]
        assert digest_when_idle(thalweg) == digest
    with installation(tmp_path / "data", PROGRAM, **QUICK) as thalweg:
        assert digest_when_idle(thalweg) == digest
        thalweg.run("delete", "d-never", check=False)
        report = thalweg.verify()
        assert (report["ok"], report["complete"], report["digest"]) == (True, True, digest)
