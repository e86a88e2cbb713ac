"""What is damaged on disk is found, told, and made again from the log by itself, while searches go on."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from indexer.generations import Generation, current_generation
from indexer.integrity.files import CHECKSUMS
from indexer.read.graph_snapshots import latest_snapshot
from indexer.verify import damage_of
from tests.support.processes.installation import HASHING, Installation, installation
from tests.support.waiting import wait_until

DOCUMENTS = 60


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


def graph_documents(generation: Generation) -> int:
    newest = latest_snapshot(generation.snapshots_dir)
    return newest.tables["documents"].rows if newest else 0


def test_what_belongs_to_no_document_is_replaced_and_the_rest_goes_on(thalweg: Installation) -> None:
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
    assert thalweg.said().count("is ready again") == 0  # no part has ended


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "kinds", [["flipped"], pytest.param(["cut", "zeroed", "flipped"], marks=pytest.mark.nightly)], ids=["one", "all"]
)
def test_damaged_tables_are_replaced_from_the_log_while_searches_go_on(thalweg: Installation, kinds: list[str]) -> None:
    digest = thalweg.verify()["digest"]
    for how in kinds:
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
    assert thalweg.said().count("is ready again") == 0  # no part has ended
