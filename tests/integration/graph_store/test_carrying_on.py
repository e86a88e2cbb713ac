"""The disk is full, or the graph is damaged: the log is read again from where the store says, and nothing shows."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from indexer.generations import Generation
from indexer.graph.snapshots import FORMAT, MANIFEST, latest_snapshot, published_snapshots
from indexer.write.kuzu import GraphWriter
from tests.support.fixtures.graph import digest_after, digest_of, document, generation_in, story

ROOT = Path(__file__).parents[3]
SECONDS = 120
SNAPSHOT_AFTER = 2

FULL_DISK = """
import resource, sys
from pathlib import Path
from indexer.errors import StoreInDoubt
from indexer.write.kuzu import GraphWriter
from tests.support.fixtures.graph import generation_in, story

generation, snapshot_after = generation_in(Path(sys.argv[1])), int(sys.argv[2])
writer = GraphWriter.open(generation)
try:
    for position, batch in enumerate(story()):
        if position == snapshot_after + 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, (generation.graph_path.stat().st_size, resource.RLIM_INFINITY))
        writer.apply(batch, position)
        if position == snapshot_after:
            writer.snapshot()
except StoreInDoubt as error:
    print("in doubt:", error)
writer.close()
"""

FULL_DISK_IN_A_COMPACTION = """
import resource, sys
from pathlib import Path
from indexer.write import kuzu_compaction
from indexer.write.kuzu import GraphWriter
from tests.support.fixtures.graph import generation_in, story

kuzu_compaction.INDEX_BYTES, kuzu_compaction.MAX_SWELLING = 1, 0.0
writer = GraphWriter.open(generation_in(Path(sys.argv[1])))
for position, batch in enumerate(story()):
    writer.apply(batch, position)
copy = writer.copy()
compaction = writer.compaction(copy, writer.publish(copy))
limit = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), limit[1]))
try:
    compaction.build()
except RuntimeError as error:
    print("not built:", error)
    writer.abandon(compaction)
resource.setrlimit(resource.RLIMIT_FSIZE, limit)
writer.apply(story()[-1], len(story()))
writer.snapshot()
writer.close()
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    return digest_after(tmp_path_factory.mktemp("undisturbed"), story())


def run_program(program: str, folder: Path, bytes_or_position: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program, str(folder), str(bytes_or_position)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def digest_when_carried_on(generation: Generation) -> str:
    writer = GraphWriter.open(generation)
    try:
        for position, batch in enumerate(story()):
            if position > writer.position():
                writer.apply(batch, position)
        return digest_of(writer, generation)
    finally:
        writer.close()


def test_after_a_full_disk_the_next_start_goes_on(tmp_path: Path, undisturbed: str) -> None:
    generation = generation_in(tmp_path)

    ended = run_program(FULL_DISK, tmp_path, SNAPSHOT_AFTER)

    assert "in doubt:" in ended.stdout, ended.stderr
    assert ended.returncode == 0, ended.stderr
    snapshot = latest_snapshot(generation.snapshots_dir)
    assert snapshot is not None
    assert snapshot.graph_position == SNAPSHOT_AFTER
    assert digest_when_carried_on(generation) == undisturbed


@pytest.mark.parametrize("bytes_left", [1, 4_096, 32_768, 100_000])
def test_a_compaction_on_a_full_disk_is_abandoned_and_the_graph_goes_on(
    tmp_path: Path, bytes_left: int, undisturbed: str
) -> None:
    generation = generation_in(tmp_path)

    ended = run_program(FULL_DISK_IN_A_COMPACTION, tmp_path, bytes_left)

    assert "not built:" in ended.stdout, ended.stderr
    assert ended.returncode == 0, ended.stderr
    assert [path.name for path in generation.graph_path.parent.glob("*.fresh*")] == []
    assert digest_when_carried_on(generation) == undisturbed


def test_a_closed_graph_goes_on_where_it_was(generation: Generation) -> None:
    writer = GraphWriter.open(generation)
    writer.apply([document(1)], 17)
    writer.close()

    again = GraphWriter.open(generation)

    assert again.position() == 17
    again.close()


@pytest.mark.parametrize("damage", ["cut", "garbage", "gone"])
def test_a_damaged_graph_comes_back_from_its_snapshot(damage: str, generation: Generation, undisturbed: str) -> None:
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

    assert digest_when_carried_on(generation) == undisturbed


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
