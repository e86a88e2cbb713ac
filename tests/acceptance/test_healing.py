"""What is damaged on disk is found, told, and made again from the log by itself, while searches go on."""

import json
import shutil
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import httpx
import pytest

from indexer.errors import DamagedStore
from indexer.generation_folders import CURRENT, CURRENT_COPY, Generation, current_generation
from indexer.graph.snapshots import latest_snapshot
from indexer.integrity.files import CHECKSUMS
from indexer.store_verification import damage_of
from tests.support.processes.installation import HASHING, Installation, installation
from tests.support.waiting import wait_until

DOCUMENTS = 60
HEALING_SECONDS = 240.0


def lines(first: int, last: int) -> str:
    made = (
        {"id": f"d{number}", "collection": "c", "content": f"Gauge {number} stands at the Thur near Andelfingen."}
        for number in range(first, last)
    )
    return "\n".join(map(json.dumps, made))


def generation_of(thalweg: Installation) -> Generation:
    generation = current_generation(thalweg.data_dir)
    assert generation is not None
    return generation


@pytest.fixture(scope="module")
def thalweg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("healing") / "data", **HASHING) as running:
        running.run("load", "-", text_in=lines(0, DOCUMENTS))
        yield running


def damage(generation: Generation, file: Path, how: str) -> str:
    """Its path in the generation. A table's file is damaged when its checksum has been recorded."""
    path = str(file.relative_to(generation.root))
    if path.startswith("lance/"):
        recorded = generation.lance_dir / CHECKSUMS
        wait_until(lambda: path.removeprefix("lance/") in recorded.read_text(), "its checksum is recorded")
    content = bytearray(file.read_bytes())
    if how == "cut":
        del content[len(content) // 2 :]
    elif how == "zeroed":
        content[:] = bytes(len(content))
    else:
        content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return path


def largest(folder: Path) -> Path:
    return max((each for each in folder.rglob("*") if each.is_file()), key=lambda each: each.stat().st_size)


def logs(thalweg: Installation) -> str:
    return "".join((thalweg.data_dir / "logs" / name).read_text() for name in ("worker.log", "service.log"))


def restarts_of(thalweg: Installation) -> int:
    return thalweg.said().count("is ready again")


def graph_documents(generation: Generation) -> int:
    newest = latest_snapshot(generation.snapshots_dir)
    return newest.tables["documents"].rows if newest else 0


def test_damaged_files_of_no_document_are_replaced_while_serving(thalweg: Installation) -> None:
    found = thalweg.search(q="gauge at the Thur", k=3, cache=False)
    retrieval = f"{thalweg.url}/v1/retrievals/{found['retrieval_id']}"
    generation = generation_of(thalweg)
    wait_until(lambda: graph_documents(generation) == DOCUMENTS, "the graph has a snapshot of all documents")
    tables = {name: generation.lance_dir / f"{name}.lance" for name in ("retrievals", "chunks")}
    wait_until(lambda: list(tables["retrievals"].glob("data/*")), "the search is recorded")
    damaged = [
        damage(generation, largest(tables["retrievals"] / "data"), "zeroed"),
        damage(generation, largest(tables["chunks"] / "_indices"), "flipped"),
        damage(generation, largest(max(generation.snapshots_dir.glob("[0-9]*"))), "cut"),
        damage(generation, generation.manifest_path, "cut"),
    ]

    def is_whole() -> bool:
        assert thalweg.search(q="gauge at the Thur", k=3, cache=False)["hits"] == found["hits"]
        return not any(damage_of(generation))

    wait_until(is_whole, "everything is as it should be", 120)
    wait_until(lambda: httpx.get(retrieval, timeout=30).is_success, "the search is read again from its topic")
    assert [path for path in damaged if path not in logs(thalweg)] == []
    assert generation_of(thalweg) == generation
    report = thalweg.verify()
    assert (report["ok"], report["documents"]) == (True, DOCUMENTS)
    assert restarts_of(thalweg) == 0  # no part has ended


def contents(thalweg: Installation) -> dict[str, Any]:
    """What the stores hold, and what is wrong with it."""
    report = thalweg.run_json("verify", check=False)
    assert (report["damage"], report["differences"], report["ledger"]["imbalances"]) == ([], [], [])
    return {name: report[name] for name in ("documents", "digest")}


def zero(*files: Path) -> None:
    for file in files:
        file.write_bytes(bytes(file.stat().st_size))


def named(generation: Generation) -> list[Path]:
    return [generation.data_dir / name for name in (CURRENT, CURRENT_COPY)]


DAMAGE: dict[str, Callable[[Generation], None]] = {
    "versions zeroed": lambda live: zero(*(live.lance_dir / "chunks.lance" / "_versions").iterdir()),
    "graph zeroed": lambda live: zero(*(each for each in live.snapshots_dir.rglob("*") if each.is_file())),
    "manifests zeroed": lambda live: zero(live.manifest_path, live.manifest_copy_path),
    "current zeroed": lambda live: zero(*named(live)),
    "tables gone": lambda live: shutil.rmtree(live.lance_dir),
    "generation gone": lambda live: shutil.rmtree(live.root),
    "all zeroed": lambda live: zero(*(each for each in live.root.rglob("*") if each.is_file())),
}
REBUILT = ("versions zeroed", "tables gone", "generation gone", "all zeroed")
OFTEN = [("versions zeroed", False), ("manifests zeroed", True)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("kind", "stopped"),
    [
        pytest.param(
            *each,
            marks=[] if each in OFTEN else pytest.mark.nightly,
            id=f"{each[0]}, {'stopped' * each[1] or 'running'}",
        )
        for each in product(DAMAGE, (False, True))
    ],
)
def test_damage_of_each_kind_heals_automatically(thalweg: Installation, kind: str, stopped: bool) -> None:
    before, live = contents(thalweg), generation_of(thalweg)
    wait_until(lambda: not any(damage_of(live)), "nothing is damaged")
    is_rebuilt = kind in REBUILT or (stopped and kind == "manifests zeroed")
    shown: set[str] = set()
    if stopped:
        for part in ("worker", "serve"):
            thalweg.child(part).kill()
    DAMAGE[kind](live)

    def is_healed() -> bool:
        try:
            answer = httpx.get(f"{thalweg.url}/v1/search", params={"q": "gauge at the Thur", "k": 100}, timeout=70)
            status = httpx.get(f"{thalweg.url}/v1/status", timeout=70).json()
            ready = httpx.get(f"{thalweg.url}/readyz", timeout=70).json()
            found = current_generation(thalweg.data_dir)
        except (httpx.TransportError, DamagedStore):
            return False
        if status["healing"] is not None:
            shown.add(status["healing"]["message"])
            assert status["healing"]["message"] in status["readiness"]["notes"]
        assert answer.status_code in (200, 503), answer.text
        if answer.status_code == 503:
            return False
        assert len({hit["document_id"] for hit in answer.json()["hits"]}) == before["documents"]
        return bool(found and (found != live) == is_rebuilt and ready["ready"] and not any(damage_of(found)))

    wait_until(is_healed, lambda: f"healed: {kind}; {thalweg.run('status', check=False).stdout}", HEALING_SECONDS)
    assert any("is made from the log" in each for each in shown) == is_rebuilt
    assert contents(thalweg) == before


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_damaged_tables_are_replaced_while_searches_continue(thalweg: Installation) -> None:
    digest, restarts = thalweg.verify()["digest"], restarts_of(thalweg)
    for how in ("cut", "zeroed", "flipped"):
        damaged = generation_of(thalweg)
        file = damage(damaged, largest(damaged.lance_dir / "chunks.lance" / "data"), how)
        wait_until(lambda f=file: f in thalweg.run("status").stdout, "the status names the file", 60)

        def healed(before: str = damaged.name) -> bool:
            answer = thalweg.search(q="gauge at the Thur", k=5, cache=False)
            assert len(answer["hits"]) == 5
            return bool(answer["snapshot"]["generation"] != before)

        wait_until(healed, "another generation answers", 120)
    thalweg.run("load", "-", text_in=lines(DOCUMENTS, DOCUMENTS + 1))
    assert thalweg.verify()["documents"] == DOCUMENTS + 1
    thalweg.run("delete", "--collection", "c", f"d{DOCUMENTS}")
    report = thalweg.verify()
    assert (report["ok"], report["digest"]) == (True, digest)
    assert restarts_of(thalweg) == restarts  # no part has ended
