"""Snapshots of the graph: published as a whole, checked when opened, kept for a while."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from indexer.errors import DamagedStore
from indexer.generation_folders import Generation
from indexer.graph.snapshots import (
    FORMAT,
    SNAPSHOTS,
    damaged_snapshots,
    latest_snapshot,
    newest_intact_snapshot,
    published_snapshots,
    read_graph,
)
from indexer.graph.store import GraphStore
from indexer.graph.tables import TABLES
from indexer.read.arrow_folders import MANIFEST
from tests.support.fixtures.graph import document, generation_in

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda content: content[: len(content) // 2],
    "empty": lambda content: b"",
    "zeroed": lambda content: bytes(len(content)),
    "one byte flipped": lambda content: content[:-30] + bytes([content[-30] ^ 1]) + content[-29:],
}


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    return generation_in(tmp_path / "data")


@pytest.fixture
def store(generation: Generation) -> GraphStore:
    return GraphStore.open(generation)


def test_snapshot_lists_what_it_holds(store: GraphStore, generation: Generation) -> None:
    store.apply([document(number) for number in range(9)], 12)

    made = store.snapshot()

    folder = generation.snapshots_dir / made.name
    assert {path.name for path in folder.iterdir()} == {MANIFEST, *(f"{name}.arrow" for name in TABLES)}
    assert (made.graph_position, made.rows("documents"), made.rows("chunks"), made.positions) == (12, 9, 36, {})
    assert made.content_bytes == sum(path.stat().st_size for path in folder.glob("*.arrow"))
    assert [made] == published_snapshots(generation.snapshots_dir)
    assert SNAPSHOTS.named(generation.snapshots_dir, made.name) == made
    with pytest.raises(FileNotFoundError, match="no longer there"):
        SNAPSHOTS.named(generation.snapshots_dir, "000000000012-1")


def test_chosen_number_of_snapshots_is_kept(generation: Generation) -> None:
    store = GraphStore.open(generation, kept_snapshots=5)
    for position in range(7):
        store.apply([document(position)], position)
        store.snapshot()
    assert [each.graph_position for each in published_snapshots(generation.snapshots_dir)] == [6, 5, 4, 3, 2]


def test_snapshot_names_positions_also_after_restart(store: GraphStore, generation: Generation) -> None:
    store.apply([document(1)], 3, {0: 7})
    store.apply([document(2)], 5, {1: 2})
    assert store.snapshot().positions == {0: 7, 1: 2}
    again = GraphStore.open(generation, positions={0: 99})
    again.apply([document(3)], 8, {1: 4})
    assert again.snapshot().positions == {0: 7, 1: 4}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_named_and_snapshot_before_is_read(
    damage: str, store: GraphStore, generation: Generation
) -> None:
    store.apply([document(1)], 0)
    before = store.snapshot()
    store.apply([document(2)], 1)
    newest = store.snapshot()
    for path in (generation.snapshots_dir / newest.name).iterdir():
        content = path.read_bytes()
        path.write_bytes(DAMAGES[damage](content))
        found = list(damaged_snapshots(generation.snapshots_dir))
        assert [each.path for each in found] == [f"snapshots/{newest.name}/{path.name}"]
        assert newest_intact_snapshot(generation.snapshots_dir) == before
        if path.name != MANIFEST:
            with pytest.raises(DamagedStore, match=f"{path.name} .* {newest.name}.* snapshot before is read"):
                read_graph(generation.snapshots_dir, newest)
        path.unlink()
        assert newest_intact_snapshot(generation.snapshots_dir) == before
        assert list(damaged_snapshots(generation.snapshots_dir))
        path.write_bytes(content)
    assert newest_intact_snapshot(generation.snapshots_dir) == newest


def test_damaged_snapshots_are_set_aside_and_last_is_kept(store: GraphStore, generation: Generation) -> None:
    for position in range(3):
        store.apply([document(position)], position)
        made = store.snapshot()
        (generation.snapshots_dir / made.name / "chunks.arrow").write_bytes(b"")
        assert [each.what for each in store.set_aside_damaged()] == ["does not match its checksum"]
        assert published_snapshots(generation.snapshots_dir) == []
        assert list(damaged_snapshots(generation.snapshots_dir)) == []

    intact = store.snapshot()

    assert published_snapshots(generation.snapshots_dir) == [intact]
    assert sorted(path.name for path in generation.snapshots_dir.iterdir()) == [f".{made.name}.damaged", intact.name]


@pytest.mark.parametrize("difference", [-1, 1])
def test_snapshot_of_other_format_is_not_read(generation: Generation, difference: int) -> None:
    store = GraphStore.open(generation)
    store.apply([document(1)], 3)
    made = store.snapshot()
    manifest = generation.snapshots_dir / made.name / MANIFEST
    manifest.write_bytes(msgspec.json.encode(msgspec.structs.replace(made, format=FORMAT + difference).seal()))

    assert latest_snapshot(generation.snapshots_dir) is None
    store = GraphStore.open(generation)
    assert store.position() == -1


def test_three_newest_snapshots_are_kept(generation: Generation) -> None:
    store = GraphStore.open(generation)
    made = []
    for position in range(5):
        store.apply([document(position)], position)
        made.append(store.snapshot())

    assert published_snapshots(generation.snapshots_dir) == made[:-4:-1]
    assert sorted(path.name for path in generation.snapshots_dir.iterdir()) == [each.name for each in made[-3:]]
