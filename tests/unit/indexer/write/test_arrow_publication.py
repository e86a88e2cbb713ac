"""Published communities: written, read, replaced; damage found and removed."""

from pathlib import Path

import pytest

from indexer.errors import DamagedStore
from indexer.graph.snapshots import GraphSnapshot
from indexer.read.arrow_folders import MANIFEST
from indexer.read.community_reader import published_communities, read_communities
from indexer.write.arrow_publication import publish_communities, remove_damaged
from tests.support.fixtures.communities import communities_of, two_themes


def snapshot(position: int) -> GraphSnapshot:
    return GraphSnapshot(format=1, name=f"s{position}", graph_position=position, made_at_ms=0, tables={}, positions={})


def test_what_is_published_is_read_as_it_was(tmp_path: Path) -> None:
    tables = communities_of(two_themes())
    manifest = publish_communities(tmp_path, tables, snapshot(7), 0.25)
    [found] = published_communities(tmp_path)
    assert found == manifest
    assert (found.snapshot, found.graph_position) == ("s7", 7)
    read = read_communities(tmp_path, found)
    assert read.communities.to_pylist() == tables.communities.to_pylist()
    assert read.edges.equals(tables.edges)
    assert read.collections == tables.collections
    shown = read_communities(tmp_path, found, ("communities",))
    assert (shown.communities.num_rows, shown.members.num_rows) == (tables.communities.num_rows, 0)


def test_what_is_read_again_is_kept_up(tmp_path: Path) -> None:
    """The former state comes back from the files: unchanged documents leave every id and summary."""
    tables = communities_of(two_themes())
    former = read_communities(tmp_path, publish_communities(tmp_path, tables, snapshot(7), 0.25))
    again = communities_of(two_themes(), former)
    assert again.communities.to_pylist() == tables.communities.to_pylist()


def test_two_are_kept(tmp_path: Path) -> None:
    tables = communities_of(two_themes())
    made = [publish_communities(tmp_path, tables, snapshot(position), 0.1).name for position in range(4)]
    (tmp_path / ".left.part").mkdir()
    made.append(publish_communities(tmp_path, tables, snapshot(4), 0.1).name)
    assert sorted(path.name for path in tmp_path.iterdir()) == made[-2:]


@pytest.mark.parametrize("file", ["members.arrow", "edges.arrow", MANIFEST])
@pytest.mark.parametrize("gone", [True, False])
def test_damage_is_found_and_removed(tmp_path: Path, file: str, gone: bool) -> None:
    intact = publish_communities(tmp_path, communities_of(two_themes()), snapshot(1), 0.1)
    damaged = publish_communities(tmp_path, communities_of(two_themes()), snapshot(2), 0.1)
    path = tmp_path / damaged.name / file
    if gone:
        path.unlink()
    else:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    if file != MANIFEST:
        with pytest.raises(DamagedStore, match="nothing is to be done"):
            read_communities(tmp_path, damaged)
    assert remove_damaged(tmp_path) == [damaged.name]
    assert [each.name for each in published_communities(tmp_path)] == [intact.name]
    assert remove_damaged(tmp_path) == []


def test_those_that_were_replaced_are_told_from_damaged_ones(tmp_path: Path) -> None:
    first = publish_communities(tmp_path, communities_of(two_themes()), snapshot(0), 0.1)
    for position in (1, 2):
        publish_communities(tmp_path, communities_of(two_themes()), snapshot(position), 0.1)
    with pytest.raises(FileNotFoundError):
        read_communities(tmp_path, first)
    assert published_communities(tmp_path / "nowhere") == []
