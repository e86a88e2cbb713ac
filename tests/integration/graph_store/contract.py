"""What every store of the graph promises to who reads it. A module of tests gives the fixture `store`, and inherits."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from indexer.errors import DamagedStore
from indexer.graph.contributions import tables_of
from indexer.graph.tables import TABLES, GraphTables
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey
from tests.support.fixtures.graph import Batch, document, story

Rows = Mapping[str, list[tuple[Any, ...]]]
"""{table of a snapshot: its rows, sorted, with ids in place of numbers of rows}"""


class OpenGraph(Protocol):
    """A graph as it was when it was opened, whatever is published since."""

    position: int

    def rows(self) -> Rows: ...
    def close(self) -> None: ...


class GraphStore(Protocol):
    """Takes documents' contributions, and publishes the whole graph for readers."""

    def publish(self, changes: Batch, position: int) -> None:
        """Publishes the graph with these changes. May be called again with the same, and then changes nothing."""

    def open(self) -> OpenGraph | None:
        """The newest graph; None before the first. Raises DamagedStore where it is not as it was written."""

    def files(self) -> Sequence[Path]:
        """The files of the newest graph, its manifest first."""

    def repair(self) -> None:
        """Takes damaged graphs away. The next publication makes the graph again, without any change to it."""


def rows_of(tables: GraphTables) -> Rows:
    return {
        name: sorted(
            (tuple(map(comparable, row.values())) for part in tables.with_ids(name) for row in part.to_pylist()),
            key=repr,
        )
        for name in TABLES
    }


def rows_after(batches: Sequence[Batch]) -> Rows:
    """Of the graph that holds the last contribution of each document."""
    last: dict[DocumentKey, Contribution | None] = {}
    for batch in batches:
        last |= dict(batch)
    return rows_of(tables_of(each for each in last.values() if each is not None))


def comparable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def read(store: GraphStore) -> tuple[Rows, int]:
    opened = store.open()
    assert opened is not None
    try:
        return opened.rows(), opened.position
    finally:
        opened.close()


class GraphStoreContract:
    """Each test is one promise."""

    def test_store_without_publication_has_no_graph(self, store: GraphStore) -> None:
        assert store.open() is None

    def test_each_publication_holds_exactly_the_newest_revisions(self, store: GraphStore) -> None:
        batches = story()
        for position, batch in enumerate(batches):
            store.publish(batch, position)
            rows, reached = read(store)
            assert reached == position
            assert rows == rows_after(batches[: position + 1])

    def test_empty_graph_is_published(self, store: GraphStore) -> None:
        store.publish([document(1)], 0)
        store.publish([(document(1)[0], None)], 1)
        rows, position = read(store)
        assert position == 1
        assert not any(rows.values())

    def test_publishing_again_changes_no_file(self, store: GraphStore) -> None:
        store.publish([document(1)], 0)
        before = {path: path.stat().st_mtime_ns for path in store.files()}
        store.publish([], 0)
        assert {path: path.stat().st_mtime_ns for path in store.files()} == before

    def test_open_graph_stays_as_it_was_when_opened(self, store: GraphStore) -> None:
        store.publish([document(1)], 0)
        opened = store.open()
        assert opened is not None
        for position in range(1, 5):  # more than are kept
            store.publish([document(1, revision=position)], position)
        assert opened.rows() == rows_after([[document(1)]])
        opened.close()

    def test_interrupted_publication_leaves_the_graph_before(self, store: GraphStore) -> None:
        store.publish([document(1)], 0)
        folder = store.files()[0].parent
        part = folder.with_name(".000000000001-1.part")
        part.mkdir()
        (part / store.files()[1].name).write_bytes(b"the beginning of a")
        assert read(store) == (rows_after([[document(1)]]), 0)
        store.publish([document(2)], 1)
        assert read(store) == (rows_after([[document(1), document(2)]]), 1)
        assert not part.exists()

    @pytest.mark.parametrize("file", [0, 1])
    @pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
    def test_damaged_graph_is_refused_and_made_again(self, store: GraphStore, file: int, damage: str) -> None:
        store.publish([document(1)], 0)
        path = store.files()[file]
        content = path.read_bytes()
        if damage == "gone":
            path.unlink()
        elif damage == "cut":
            path.write_bytes(content[: len(content) // 2])
        else:
            middle = len(content) // 2
            path.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
        with pytest.raises(DamagedStore):
            store.open()
        store.repair()
        store.publish([], 0)
        assert read(store) == (rows_after([[document(1)]]), 0)
