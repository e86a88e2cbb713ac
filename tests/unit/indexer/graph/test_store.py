"""The graph goes on from its newest snapshot, whatever happened to the process or the disk."""

import errno
from pathlib import Path

import msgspec
import pytest

from indexer.generation_folders import Generation
from indexer.graph.contributions import tables_of
from indexer.graph.snapshot_publication import KEPT_SNAPSHOTS
from indexer.graph.snapshots import (
    GraphSnapshot,
    published_snapshots,
    read_graph,
)
from indexer.graph.store import GraphStore, held, order_remake
from indexer.graph.tables import TABLES
from indexer.store_verification import graph_digest
from indexer.write import arrow_publication
from schemas.graph_delta import Contribution, decode_contribution, encode_contribution
from schemas.ids import DocumentKey
from tests.support.fixtures.graph import document, generation_in, story, withdrawn


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    return generation_in(tmp_path)


def digest_of(generation: Generation, made: GraphSnapshot) -> str:
    return graph_digest(read_graph(generation.snapshots_dir, made))


def expected_after(batches: int) -> str:
    """The digest of tables made of what the first batches of the story leave."""
    held: dict[DocumentKey, Contribution | None] = {}
    for batch in story()[:batches]:
        held |= dict(batch)
    return graph_digest(tables_of(each for each in held.values() if each is not None))


def carry_on(generation: Generation) -> str:
    """The digest after another process has read the story from where the store is."""
    store = GraphStore.open(generation)
    for position, batch in enumerate(story()):
        if position > store.position():
            store.apply(batch, position)
    return digest_of(generation, store.snapshot())


def test_each_snapshot_holds_all_that_was_applied(generation: Generation) -> None:
    store = GraphStore.open(generation)
    for position, batch in enumerate(story()):
        store.apply(batch, position)
        made = store.snapshot()
        assert (made.graph_position, digest_of(generation, made)) == (position, expected_after(position + 1))
    assert len(published_snapshots(generation.snapshots_dir)) == KEPT_SNAPSHOTS


def test_killed_process_reads_again_from_its_snapshot(generation: Generation) -> None:
    store = GraphStore.open(generation)
    for position, batch in enumerate(story()[:4]):
        store.apply(batch, position)
        if position == 1:
            store.snapshot()

    again = GraphStore.open(generation)

    assert again.position() == 1
    assert carry_on(generation) == expected_after(len(story()))


@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_damaged_snapshot_is_passed_over_by_next_start(damage: str, generation: Generation) -> None:
    store = GraphStore.open(generation)
    for position, batch in enumerate(story()[:3]):
        store.apply(batch, position)
        newest = store.snapshot()
    path = generation.snapshots_dir / newest.name / "mentions.arrow"
    content = path.read_bytes()
    path.unlink()
    if damage != "gone":
        half = len(content) // 2
        path.write_bytes(
            content[:half] + (b"" if damage == "cut" else bytes([content[half] ^ 1]) + content[half + 1 :])
        )

    assert GraphStore.open(generation).position() == 1
    assert carry_on(generation) == expected_after(len(story()))


def test_damage_of_open_snapshot_is_in_no_further_one(generation: Generation) -> None:
    store = GraphStore.open(generation)
    store.apply(story()[0], 0)
    store.snapshot()
    store = GraphStore.open(generation)
    damage_all_tables(generation)
    store.apply(story()[1], 1)
    store.snapshot()
    damage_all_tables(generation)
    store.apply(story()[2], 2)

    third = store.snapshot()

    assert digest_of(generation, third) == expected_after(3)
    assert len(store.set_aside_damaged()) == 2 * len(TABLES)
    assert published_snapshots(generation.snapshots_dir) == [third]


def damage_all_tables(generation: Generation) -> None:
    for path in (generation.snapshots_dir / published_snapshots(generation.snapshots_dir)[0].name).glob("*.arrow"):
        path.write_bytes(bytes(path.stat().st_size))


def test_ordered_graph_replaces_old_one_when_it_is_complete(generation: Generation) -> None:
    store = GraphStore.open(generation)
    store.apply([document(1), document(2)], 4)
    wrong = store.snapshot()
    order_remake(generation)
    store.apply([document(3)], 5)
    assert store.snapshot() in published_snapshots(generation.snapshots_dir), "until the next start all goes on"

    store = GraphStore.open(generation, needed=7)
    assert (store.is_complete, store.position(), store.keys()) == (False, 7, set())
    store.apply([document(1)], 8)
    store.snapshot()
    store = GraphStore.open(generation, needed=7)  # killed
    assert (store.is_complete, store.position(), store.keys()) == (False, 8, {document(1)[0]})
    store.apply([document(2, revision=2)], 9)
    store.snapshot()
    assert wrong in published_snapshots(generation.snapshots_dir), "readers go on with what there is"

    store.complete()
    made = store.snapshot()

    assert published_snapshots(generation.snapshots_dir) == [made]
    expected = [each for _, each in (document(1), document(2, revision=2)) if each is not None]
    assert digest_of(generation, made) == graph_digest(tables_of(expected))
    store = GraphStore.open(generation, needed=9)
    assert (store.is_complete, store.position()) == (True, 9)


def test_graph_of_filled_tables_without_snapshot_is_remade(generation: Generation) -> None:
    store = GraphStore.open(generation)
    assert store.is_complete
    store.apply([document(1)], 3)
    store.snapshot()
    assert GraphStore.open(generation, needed=3).is_complete
    damage_all_tables(generation)

    store = GraphStore.open(generation, needed=3)

    assert (store.is_complete, store.position(), store.keys()) == (False, 3, set())
    assert not GraphStore.open(generation, needed=3).is_complete, "until all of it was made"


def test_without_snapshot_graph_of_restored_tables_is_remade(generation: Generation) -> None:
    store = GraphStore.open(generation, needed=-1)
    assert (store.is_complete, store.position()) == (False, -1)


@pytest.mark.parametrize(
    ("position", "needed", "beginning", "expected"),
    [(-1, -1, 0, -1), (-1, -1, 5, 4), (7, 9, 0, 7), (7, 9, 8, 7), (7, 9, 9, None), (7, 7, 9, 8), (7, 6, 9, 8)],
)
def test_complete_graph_follows_topic_that_has_what_it_lacks(
    generation: Generation, position: int, needed: int, beginning: int, expected: int | None
) -> None:
    store = GraphStore.open(generation)
    store.apply([], position)
    assert store.follows(beginning, needed) == (expected is not None)
    assert store.position() == (position if expected is None else expected)
    order_remake(generation)
    store = GraphStore.open(generation, needed=position)
    assert store.follows(beginning, needed)
    assert store.position() == max(position, beginning - 1)


def test_contributions_are_held_by_revision_chunks_and_edges(generation: Generation) -> None:
    store = GraphStore.open(generation)
    made = {key: encode_contribution(each) for key, each in map(document, range(5)) if each is not None}
    store.apply([document(number) for number in (0, 1, 2)], 1)
    store.snapshot()
    store.apply([document(3), withdrawn(2)], 2)
    zero, one, two, three, four = made
    other = decode_contribution(made[one])
    made[one] = encode_contribution(msgspec.structs.replace(other, edges=other.edges[1:]))
    gone = document(99)[0]

    assert held(store.documents(list(made)), made | {gone: None}) == {zero, three, gone}
    assert held(store.documents(list(made)), dict.fromkeys((zero, two, four))) == {two, four}
    assert store.keys() == {zero, one, three}


def test_documents_are_found_in_snapshot_and_in_what_came_since(generation: Generation) -> None:
    store = GraphStore.open(generation)
    assert store.documents([document(1)[0]]) == {}
    store.apply([document(number) for number in range(40)], 1)
    store.snapshot()
    store.apply([document(3, revision=2), withdrawn(4), document(50)], 2)

    found = store.documents([document(number)[0] for number in (1, 3, 4, 50, 99)])

    assert {key.document_id: stored[:2] for key, stored in found.items()} == {
        "document 1": ("1-0", 4),
        "document 3": ("3-2", 4),
        "document 50": ("50-0", 4),
    }
    assert store.documents([]) == {}


def test_extractors_are_those_of_newest_snapshots_statements(generation: Generation) -> None:
    store = GraphStore.open(generation)
    assert store.extractors() == set()
    store.apply([document(7)], 1)
    store.snapshot()
    assert store.extractors() == {"pattern"}
    store.apply([withdrawn(7)], 2)
    store.snapshot()
    assert store.extractors() == set()


def test_pending_bytes_are_given_back_by_a_snapshot(generation: Generation) -> None:
    store = GraphStore.open(generation)
    store.apply([document(1), withdrawn(2)], 1)
    once = store.pending_bytes
    store.apply([document(1)], 2)
    assert store.pending_bytes == once > 0
    changes = store.changes()
    store.apply([document(2)], 3)
    store.publish(changes)
    assert 0 < store.pending_bytes < 2 * once
    store.snapshot()
    assert store.pending_bytes == 0


def test_changes_during_publication_are_in_next_snapshot(generation: Generation) -> None:
    store = GraphStore.open(generation)
    store.apply([document(1), document(2), document(3)], 0)
    changes = store.changes()
    store.apply([document(1, revision=1), withdrawn(2)], 1)

    first, second = store.publish(changes), store.snapshot()

    assert (first.graph_position, first.rows("documents")) == (0, 3)
    expected = [each for _, each in (document(1, revision=1), document(3)) if each is not None]
    assert digest_of(generation, second) == graph_digest(tables_of(expected))


def test_full_disk_leaves_the_changes_for_another_try(generation: Generation, monkeypatch: pytest.MonkeyPatch) -> None:
    store = GraphStore.open(generation)
    store.apply([document(1)], 0)
    before = store.snapshot()
    store.apply([document(2)], 1)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(arrow_publication, "replace_file", full)
        with pytest.raises(OSError, match="No space left"):
            store.snapshot()
    assert published_snapshots(generation.snapshots_dir) == [before]

    assert store.snapshot().rows("documents") == 2


def test_repeated_publication_changes_nothing(generation: Generation) -> None:
    store = GraphStore.open(generation)
    store.apply([document(1), document(2)], 0)
    changes = store.changes()

    once, again = store.publish(changes), store.publish(changes)

    assert digest_of(generation, again) == digest_of(generation, once)


def test_contribution_that_tables_cannot_hold_changes_nothing(generation: Generation) -> None:
    store = GraphStore.open(generation)
    store.apply([document(1)], 0)
    name, good = document(2)
    assert good is not None

    with pytest.raises(ValueError, match="surrogates"):
        store.apply([document(3), (name, msgspec.structs.replace(good, title="\ud800"))], 1)

    assert (store.position(), store.snapshot().rows("documents")) == (0, 1)
