"""The worker is killed, or the disk is full; the log is read again from where the store says, and nothing shows."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from indexer.generations import Generation
from indexer.read.graph_snapshots import FORMAT, MANIFEST, latest_snapshot, published_snapshots, read_graph
from indexer.verify import graph_digest
from indexer.write.kuzu import GraphWriter
from tests.integration.graph_store.crashing_writer import POINTS, SNAPSHOT_AFTER
from tests.support.fixtures.graph import digest_after, digest_of, document, generation_in, story

ROOT = Path(__file__).parents[3]
SECONDS = 120
EVERY_RUN = "not committed"  # the other points are for `make test-all`


def run_writer(folder: Path, point: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.integration.graph_store.crashing_writer", str(folder), point]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    """The digest after the batches up to each position that a snapshot may have."""
    return {
        position: digest_after(tmp_path_factory.mktemp("undisturbed"), story()[: position + 1])
        for position in range(SNAPSHOT_AFTER, len(story()))
    }


def digest_when_carried_on(generation: Generation) -> str:
    writer = GraphWriter.open(generation)
    try:
        for position, batch in enumerate(story()):
            if position > writer.position():
                writer.apply(batch, position)
        return digest_of(writer, generation)
    finally:
        writer.close()


@pytest.mark.parametrize(
    "point", [pytest.param(each, marks=() if each == EVERY_RUN else pytest.mark.nightly) for each in POINTS]
)
def test_killed_anywhere_it_ends_as_if_undisturbed(point: str, tmp_path: Path, undisturbed: dict[int, str]) -> None:
    generation = generation_in(tmp_path)

    assert run_writer(tmp_path, point).returncode == -9

    snapshot = latest_snapshot(generation.snapshots_dir)
    assert snapshot is not None
    readable = read_graph(generation.snapshots_dir, snapshot)
    assert graph_digest(readable) == undisturbed[snapshot.graph_position]
    assert digest_when_carried_on(generation) == undisturbed[len(story()) - 1]


def test_after_a_full_disk_the_next_start_goes_on(tmp_path: Path, undisturbed: dict[int, str]) -> None:
    generation = generation_in(tmp_path)

    ended = run_writer(tmp_path, "disk full")

    assert "in doubt:" in ended.stdout, ended.stderr
    snapshot = latest_snapshot(generation.snapshots_dir)
    assert snapshot is not None
    assert snapshot.graph_position == SNAPSHOT_AFTER
    assert digest_when_carried_on(generation) == undisturbed[len(story()) - 1]


def test_a_closed_graph_goes_on_where_it_was(generation: Generation) -> None:
    writer = GraphWriter.open(generation)
    writer.apply([document(1)], 17)
    writer.close()

    again = GraphWriter.open(generation)

    assert again.position() == 17
    again.close()


@pytest.mark.parametrize("damage", ["cut", "garbage", "gone"])
def test_a_damaged_graph_comes_back_from_its_snapshot(
    damage: str, generation: Generation, undisturbed: dict[int, str]
) -> None:
    writer = GraphWriter.open(generation)
    for position, batch in enumerate(story()):
        writer.apply(batch, position)
        if position == SNAPSHOT_AFTER:
            writer.snapshot()
    writer.close()
    graph = generation.graph_path
    if damage == "gone":
        graph.unlink()
    else:
        graph.write_bytes(graph.read_bytes()[: 4096 * 3] if damage == "cut" else b"not a database" * 1000)

    assert digest_when_carried_on(generation) == undisturbed[len(story()) - 1]


def test_what_another_version_made_is_not_read(generation: Generation) -> None:
    writer = GraphWriter.open(generation)
    writer.apply([document(1)], 3)
    made = writer.snapshot()
    writer._database.run("MATCH (applied:Applied) SET applied.schema = 1")
    writer.close()
    manifest = generation.snapshots_dir / made.name / MANIFEST
    manifest.write_bytes(msgspec.json.encode(msgspec.structs.replace(made, format=FORMAT + 1).seal()))

    assert latest_snapshot(generation.snapshots_dir) is None
    writer = GraphWriter.open(generation)
    assert writer.position() == -1
    writer.close()


def test_readers_keep_the_snapshot_they_opened_for_two_more(generation: Generation) -> None:
    writer = GraphWriter.open(generation)
    made = []
    for position in range(5):
        writer.apply([document(position)], position)
        made.append(writer.snapshot())
    writer.close()

    assert published_snapshots(generation.snapshots_dir) == made[:-4:-1]
    assert sorted(path.name for path in generation.snapshots_dir.iterdir()) == [each.name for each in made[-3:]]
