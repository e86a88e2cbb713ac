"""The graph goes on from its newest snapshot, whatever happened to the process or the disk."""

import errno
from pathlib import Path

import msgspec
import pytest

from indexer.errors import StoreInDoubt
from indexer.graph import publication
from indexer.graph.contributions import tables_of
from indexer.graph.snapshots import (
    MANIFEST,
    SINCE_FORMAT_3,
    GraphSnapshot,
    latest_snapshot,
    published_snapshots,
    read_graph,
)
from indexer.graph.store import GraphStore
from indexer.verify import graph_digest
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey
from tests.support.fixtures.graph import document, hand_made_edge, story, withdrawn


def snapshot(store: GraphStore) -> GraphSnapshot:
    return store.publish(store.changes())


def digest_of(folder: Path, made: GraphSnapshot) -> str:
    return graph_digest(read_graph(folder, made))


def expected_after(batches: int) -> str:
    """The digest of tables made of what the first batches of the story leave."""
    held: dict[DocumentKey, Contribution | None] = {}
    for batch in story()[:batches]:
        held |= dict(batch)
    return graph_digest(tables_of(each for each in held.values() if each is not None))


def carry_on(folder: Path) -> str:
    """The digest after another process has read the story from where the store is."""
    store = GraphStore.open(folder)
    for position, batch in enumerate(story()):
        if position > store.position():
            store.apply(batch, position)
    return digest_of(folder, snapshot(store))


def test_each_snapshot_holds_all_that_was_applied(tmp_path: Path) -> None:
    store = GraphStore.open(tmp_path)
    for position, batch in enumerate(story()):
        store.apply(batch, position)
        made = snapshot(store)
        assert (made.graph_position, digest_of(tmp_path, made)) == (position, expected_after(position + 1))
    assert len(published_snapshots(tmp_path)) == publication.KEPT_SNAPSHOTS


def test_killed_process_reads_again_from_its_snapshot(tmp_path: Path) -> None:
    store = GraphStore.open(tmp_path)
    for position, batch in enumerate(story()[:4]):
        store.apply(batch, position)
        if position == 1:
            snapshot(store)

    again = GraphStore.open(tmp_path)

    assert again.position() == 1
    assert carry_on(tmp_path) == expected_after(len(story()))


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_damaged_snapshot_is_passed_over_by_next_start(damage: str, tmp_path: Path) -> None:
    store = GraphStore.open(tmp_path)
    for position, batch in enumerate(story()[:3]):
        store.apply(batch, position)
        newest = snapshot(store)
    path = tmp_path / newest.name / "mentions.arrow"
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        half = len(content) // 2
        path.write_bytes(
            content[:half] + (b"" if damage == "cut" else bytes([content[half] ^ 1]) + content[half + 1 :])
        )

    assert GraphStore.open(tmp_path).position() == 1
    assert carry_on(tmp_path) == expected_after(len(story()))


def test_snapshot_damaged_while_open_is_never_merged(tmp_path: Path) -> None:
    store = GraphStore.open(tmp_path)
    for position, batch in enumerate(story()[:2]):
        store.apply(batch, position)
        newest = snapshot(store)
    path = tmp_path / newest.name / "chunks.arrow"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    store.apply(story()[2], 2)

    with pytest.raises(StoreInDoubt, match=r"cannot be merged: .*chunks\.arrow"):
        snapshot(store)

    assert published_snapshots(tmp_path)[0] == newest
    assert carry_on(tmp_path) == expected_after(len(story()))


def test_changes_during_publication_are_in_next_snapshot(tmp_path: Path) -> None:
    store = GraphStore.open(tmp_path)
    store.apply([document(1), document(2), document(3)], 0)
    changes = store.changes()
    store.apply([document(1, revision=1), withdrawn(2)], 1)

    first, second = store.publish(changes), snapshot(store)

    assert (first.graph_position, first.rows("documents")) == (0, 3)
    expected = [each for _, each in (document(1, revision=1), document(3)) if each is not None]
    assert digest_of(tmp_path, second) == graph_digest(tables_of(expected))


def test_full_disk_leaves_the_changes_for_another_try(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = GraphStore.open(tmp_path)
    store.apply([document(1)], 0)
    before = snapshot(store)
    store.apply([document(2)], 1)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(publication, "replace_file", full)
        with pytest.raises(OSError, match="No space left"):
            snapshot(store)
    assert published_snapshots(tmp_path) == [before]

    assert snapshot(store).rows("documents") == 2


def test_repeated_publication_changes_nothing(tmp_path: Path) -> None:
    store = GraphStore.open(tmp_path)
    store.apply([document(1), document(2)], 0)
    changes = store.changes()

    once, again = store.publish(changes), store.publish(changes)

    assert digest_of(tmp_path, again) == digest_of(tmp_path, once)


def test_contribution_that_tables_cannot_hold_changes_nothing(tmp_path: Path) -> None:
    store = GraphStore.open(tmp_path)
    store.apply([document(1)], 0)
    name, good = document(2)
    assert good is not None

    with pytest.raises(ValueError, match="surrogates"):
        store.apply([document(3), (name, msgspec.structs.replace(good, title="\ud800"))], 1)

    assert (store.position(), snapshot(store).rows("documents")) == (0, 1)


@pytest.mark.parametrize("format_before", [1, 2])
def test_snapshot_of_an_earlier_format_has_nothing_made_by_hand(format_before: int, tmp_path: Path) -> None:
    store = GraphStore.open(tmp_path)
    store.apply(story()[0], 7)
    made = snapshot(store)
    folder = tmp_path / made.name
    tables = {name: stored for name, stored in made.tables.items() if name not in SINCE_FORMAT_3}
    for name in made.tables.keys() - tables.keys():
        (folder / made.tables[name].file).unlink()
    earlier = msgspec.structs.replace(made, format=format_before, tables=tables).seal()
    (folder / MANIFEST).write_bytes(msgspec.json.encode(earlier))

    assert latest_snapshot(tmp_path) == earlier
    assert digest_of(tmp_path, earlier) == expected_after(1)
    carried_on = GraphStore.open(tmp_path)
    carried_on.apply([hand_made_edge("e", "a", "b")], 8)
    assert read_graph(tmp_path, snapshot(carried_on)).relations.num_rows == 1
