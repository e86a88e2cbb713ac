"""After a crash anywhere, or a full disk, applying the same batches again leaves the rows of an undisturbed run."""

import subprocess
import sys
from pathlib import Path

import pytest

from indexer.generations import Generation
from indexer.write.lance import LanceWriter
from query_api.index.text.snapshot import TextReader
from tests.support.fixtures.text_rows import (
    DIMENSION,
    contents,
    expected_rows,
    generation_in,
    stored_rows,
    story,
)

ROOT = Path(__file__).parents[3]
CRASHING_WRITER = [sys.executable, "-m", "tests.integration.text_stores.crashing_writer"]
DEADLINE_SECONDS = 60

LAST_COMMIT = {
    1: "passages are added",
    2: "chunks are added",
    3: "documents are moved",
    4: "stale passages are deleted",
    5: "stale chunks are deleted",
    6: "positions are stored",
}
EVERY_RUN = 5  # the others are for `make test-all`

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from indexer.errors import TransientStoreError
from indexer.write.lance import LanceWriter
from tests.support.fixtures.text_rows import DIMENSION, generation_in, story

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = LanceWriter.open(generation_in(Path(sys.argv[1])), DIMENSION)
for batch in story():
    for most_bytes in (0, 200, 2_000, resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))
        try:
            writer.replace(batch)
        except TransientStoreError:
            print("refused", flush=True)
"""


def undisturbed(folder: Path) -> dict[str, list[dict[str, object]]]:
    generation = generation_in(folder)
    writer = LanceWriter.open(generation, DIMENSION)
    for batch in story():
        writer.replace(batch)
    return contents(generation)


@pytest.mark.parametrize(
    "commit",
    [
        pytest.param(commit, id=f"before {what}", marks=() if commit == EVERY_RUN else pytest.mark.nightly)
        for commit, what in LAST_COMMIT.items()
    ],
)
def test_killed_before_a_commit_and_applied_again(generation: Generation, tmp_path: Path, commit: int) -> None:
    killed = subprocess.run(
        [*CRASHING_WRITER, str(generation.data_dir), str(commit)], cwd=ROOT, timeout=DEADLINE_SECONDS, check=False
    )
    assert killed.returncode == -9
    _assert_readers_see_whole_documents(generation)
    again = LanceWriter.open(generation, DIMENSION)
    assert again.positions() == {}
    for batch in story():
        again.replace(batch)
    assert contents(generation) == undisturbed(tmp_path / "undisturbed")


@pytest.mark.nightly
def test_killed_at_any_moment_and_applied_again(generation: Generation, tmp_path: Path) -> None:
    for batches in (2, 3, 5):
        with subprocess.Popen(
            [*CRASHING_WRITER, str(generation.data_dir), "0"], cwd=ROOT, stdout=subprocess.PIPE
        ) as writer:
            for _ in range(batches):
                assert writer.stdout.readline()
            writer.kill()
        _assert_readers_see_whole_documents(generation)
    again = LanceWriter.open(generation, DIMENSION)
    for batch in story():
        again.replace(batch)
    assert contents(generation) == undisturbed(tmp_path / "undisturbed")


def test_a_full_disk_is_told_as_transient_and_the_same_call_succeeds_later(
    generation: Generation, tmp_path: Path
) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(generation.data_dir)],
        cwd=ROOT,
        timeout=DEADLINE_SECONDS,
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.count("refused") >= len(story())
    assert contents(generation) == undisturbed(tmp_path / "undisturbed")


def test_the_undisturbed_run_leaves_what_the_story_says(generation: Generation) -> None:
    undisturbed(generation.data_dir)
    last = {document.row.key: document for batch in story() for document in batch}
    expected = {name: sorted(rows) for name, rows in expected_rows(list(last.values())).items()}
    assert stored_rows(generation) == expected


def _assert_readers_see_whole_documents(generation: Generation) -> None:
    snapshot = TextReader.open(generation).snapshot()
    documents, _ = snapshot.list_documents(None, None, 100)
    known = [made for batch in story() for made in batch if made.prepared is not None]
    by_revision = {made.row.revision: made.prepared for made in known}
    for row in documents:
        chunks = [chunk.id for chunk in by_revision[row.revision].chunked.chunks]
        passages = [passage.id for passage in by_revision[row.revision].chunked.passages]
        assert set(snapshot.chunks(chunks)) == set(chunks)
        assert set(snapshot.passages(passages)) == set(passages)
