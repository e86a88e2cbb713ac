"""The process that publishes the graph: what it leaves when it ends by itself, and when it does not."""

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import psutil
import pytest

from indexer.generation_folders import Generation
from indexer.read.arrow_folders import MANIFEST
from indexer.read.published_graph import FILE, read_manifest, require_this_version
from indexer.write import kuzu_publication
from indexer.write.kuzu_publication import NICENESS, publish_graph
from schemas.errors import Failure
from streams.runtime.kuzu_schedule import publishing_process
from tests.support.fixtures.graph import document, generation_in
from tests.support.fixtures.graph_snapshots import write_snapshot

ROOT = Path(__file__).parents[3]
BUFFER_BYTES = 128 * 1024**2
SECONDS = 120

FULL_DISK = """
import resource, sys
from indexer.write.kuzu_publication import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[4]), resource.RLIM_INFINITY))
main(*sys.argv[1:4])
"""


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    """With a snapshot of one document at position 1."""
    generation = generation_in(tmp_path)
    write_snapshot(generation.snapshots_dir, contributions(1), 1, made_at_ms=1_000)
    return generation


def contributions(count: int) -> list[object]:
    return [document(number)[1] for number in range(count)]


def published(generation: Generation) -> list[tuple[str, int]]:
    found = map(read_manifest, generation.kuzu_dir.glob("[!.]*/"))
    return [(each.generation, each.graph_position) for each in found]


def test_process_publishes_the_newest_snapshot_and_ends(generation: Generation, tmp_path: Path) -> None:
    process = publishing_process(generation, tmp_path / "log", BUFFER_BYTES)
    assert process.wait(SECONDS) == 0, process.output_tail()
    assert published(generation) == [("g0001", 1)]
    assert [path.name for path in generation.kuzu_dir.iterdir()] == ["000000000001-1000"]


def test_process_gives_way_to_everything_else(generation: Generation, tmp_path: Path) -> None:
    program = "from indexer.write.kuzu_publication import _yield_to_others; _yield_to_others(); input()"
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        own = psutil.Process(process.pid)
        wanted = psutil.Process().nice() + NICENESS
        while process.poll() is None and own.nice() != wanted:
            os.sched_yield()
        assert own.nice() == wanted
        process.stdin.close()
        process.wait(SECONDS)


def test_killed_process_leaves_the_graph_before(generation: Generation, tmp_path: Path) -> None:
    publish_graph(generation, BUFFER_BYTES)
    write_snapshot(generation.snapshots_dir, contributions(2), 2, made_at_ms=2_000)
    part = generation.kuzu_dir / ".000000000002-2000.part"
    process = publishing_process(generation, tmp_path / "log", BUFFER_BYTES)
    while process.poll() is None and not part.exists():
        os.sched_yield()
    process.kill()
    assert process.wait(SECONDS) < 0, "it was in the middle of its work"
    assert published(generation) == [("g0001", 1)]
    assert publish_graph(generation, BUFFER_BYTES) is not None
    assert published(generation) == [("g0001", 2)]
    assert not part.exists()


@pytest.mark.parametrize("bytes_left", [1, 100_000, 4 * 1024**2])
def test_full_disk_fails_and_gives_its_room_back(generation: Generation, bytes_left: int) -> None:
    publish_graph(generation, BUFFER_BYTES)
    write_snapshot(generation.snapshots_dir, contributions(2), 2, made_at_ms=2_000)
    ended = subprocess.run(
        [sys.executable, "-c", FULL_DISK, generation.data_dir, generation.name, str(BUFFER_BYTES), str(bytes_left)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert published(generation) == [("g0001", 1)]
    assert len(list(generation.kuzu_dir.iterdir())) == 1


def test_disk_without_room_is_not_filled(generation: Generation, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kuzu_publication, "INDEX_BYTES", 1e18)
    with pytest.raises(Failure, match="no room"):
        publish_graph(generation, BUFFER_BYTES)
    assert list(generation.kuzu_dir.iterdir()) == []


def test_graph_of_another_version_of_kuzu_is_made_again(generation: Generation) -> None:
    made = publish_graph(generation, BUFFER_BYTES)
    assert made is not None
    other = msgspec.structs.replace(made, kuzu="0.11.2").seal()
    (generation.kuzu_dir / made.name / MANIFEST).write_bytes(msgspec.json.encode(other))
    with pytest.raises(Failure, match=r"Kùzu 0\.11\.2"):
        require_this_version(read_manifest(generation.kuzu_dir / made.name))
    publish_graph(generation, BUFFER_BYTES)
    require_this_version(read_manifest(generation.kuzu_dir / made.name))


def test_empty_graph_is_not_the_first_to_be_published(tmp_path: Path) -> None:
    generation = generation_in(tmp_path)
    write_snapshot(generation.snapshots_dir, [], 0, made_at_ms=1_000)
    assert publish_graph(generation, BUFFER_BYTES) is None
    assert not generation.kuzu_dir.exists()


def test_each_generation_has_a_graph_of_its_own(generation: Generation) -> None:
    following = Generation(generation.data_dir, "g0002")
    write_snapshot(following.snapshots_dir, contributions(2), 0, made_at_ms=5_000)
    publish_graph(generation, BUFFER_BYTES)
    publish_graph(following, BUFFER_BYTES)
    assert published(generation) == [("g0001", 1)]
    assert published(following) == [("g0002", 0)]
    assert (following.kuzu_dir / "000000000000-5000" / FILE).exists()
