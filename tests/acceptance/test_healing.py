"""Tables that are damaged on disk are found, told, and made again from the log, while searches go on."""

import json
from pathlib import Path

import pytest

from indexer.generations import Generation, current_generation
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


def damage(generation: Generation, how: str) -> str:
    """The largest file of the chunks, damaged; its path in the generation."""
    file = max((generation.lance_dir / "chunks.lance" / "data").iterdir(), key=lambda each: each.stat().st_size)
    content = bytearray(file.read_bytes())
    if how == "cut":
        del content[len(content) // 2 :]
    elif how == "zeroed":
        content[:] = bytes(len(content))
    else:
        content[len(content) // 2] ^= 1
    file.write_bytes(content)
    return str(file.relative_to(generation.root))


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "kinds", [["flipped"], pytest.param(["cut", "zeroed", "flipped"], marks=pytest.mark.nightly)], ids=["one", "all"]
)
def test_damaged_tables_are_replaced_from_the_log_while_searches_go_on(tmp_path: Path, kinds: list[str]) -> None:
    with installation(tmp_path / "data", **HASHING) as thalweg:
        thalweg.run("load", "-", text_in=lines(0, DOCUMENTS))
        digest = thalweg.run_json("verify")["digest"]
        for how in kinds:
            damaged = generation_of(thalweg)
            file = damage(damaged, how)
            wait_until(lambda f=file: f in thalweg.run("status").stdout, "the status names the file", 60)

            def healed(before: str = damaged.name) -> bool:
                answer = thalweg.search(q="gauge at the Thur", k=5, cache=False)
                assert len(answer["hits"]) == 5
                return bool(answer["snapshot"]["generation"] != before)

            wait_until(healed, "another generation answers", 120)
        thalweg.run("load", "-", text_in=lines(DOCUMENTS, DOCUMENTS + 1))
        assert thalweg.run_json("verify")["documents"] == DOCUMENTS + 1
        thalweg.run("delete", "--collection", "c", f"d{DOCUMENTS}")
        report = thalweg.run_json("verify")
        assert (report["ok"], report["digest"]) == (True, digest)
        assert thalweg.said().count("is ready again") == 0  # no part has ended
