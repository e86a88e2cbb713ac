"""Stores of another version of the extractor are served as they are, and `thalweg rebuild` makes the next ones."""

from pathlib import Path

import msgspec
import pytest

from indexer.generation_folders import current_generation, read_manifest, write_manifest
from tests.support.processes.installation import HASHING, installation
from tests.support.waiting import wait_until

TEXTS = {"weir.md": "# Weir\n\nA weir holds the river back.", "dam.md": "# Dam\n\nA dam closes the valley of Basel."}


@pytest.mark.nightly  # a rebuild with another encoder, in `test_generations`, is tried each time
def test_stores_of_another_extractor_answer_while_the_next_ones_are_built(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    with installation(data_dir, **HASHING) as thalweg:
        thalweg.run("load", *(str(tmp_path / name) for name in TEXTS))
        digest = thalweg.verify()["digest"]
    generation = current_generation(data_dir)
    assert generation is not None
    write_manifest(generation, msgspec.structs.replace(read_manifest(generation), extractor="rules-0"))

    with installation(data_dir, **HASHING) as thalweg:
        question = "what closes the valley"
        assert [hit["document_id"] for hit in thalweg.search(q=question, k=1)["hits"]] == ["dam.md"]
        (tmp_path / "lock.md").write_text("# Lock\n\nA lock lifts ships.")
        thalweg.run("load", "--no-wait", str(tmp_path / "lock.md"))
        wait_until(lambda: "thalweg rebuild" in thalweg.run("status").stdout, "status says what to do", 30)
        assert "extractor: stored 'rules-0'" in thalweg.run("status").stdout
        rebuilt = thalweg.run_json("rebuild", "--reason", "new extractor")
        assert (rebuilt["state"], rebuilt["reason"]) == ("live", "new extractor")
        assert rebuilt["comparison"]["new"]["documents"] == 3
        wait_until(lambda: thalweg.search(q="lock")["snapshot"]["generation"] == rebuilt["name"], "it is served", 30)
        assert [hit["document_id"] for hit in thalweg.search(q="what lifts ships", k=1)["hits"]] == ["lock.md"]
        thalweg.run("delete", "lock.md")
        assert thalweg.verify()["digest"] == digest
