"""A generation backed up while it is written to, and restored: what it held then, as a generation of its own."""

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from indexer.backup.archive import open_backup, write_backup
from indexer.backup.frozen import frozen
from indexer.backup.restore import UNPACKED, restore_backup
from indexer.errors import DamagedStore
from indexer.generation_folders import Generation, LogIdentity, current_generation, make_generation, read_manifest
from indexer.graph.snapshots import published_snapshots
from indexer.graph.store import GraphStore
from indexer.lance_connection import connect
from indexer.read.lance_reader import stored_positions
from indexer.schema import POSITIONS, StoredPosition
from indexer.write.lance_writer import LanceWriter
from schemas.errors import WrongSetting
from tests.support.fixtures.manifest import MANIFEST
from tests.support.fixtures.text_rows import DIMENSION, contents, document, story

LOG = LogIdentity("d" * 32, "e" * 32)


def ignore(_bytes: int) -> None:
    """Progress that nobody looks at."""


@pytest.fixture
def live(tmp_path: Path) -> Generation:
    return make_generation(tmp_path / "live", msgspec.structs.replace(MANIFEST, log=LOG))


def restored(source: Path, data_dir: Path) -> Generation:
    data_dir.mkdir(exist_ok=True)
    with open_backup(source) as backup:
        return restore_backup(backup, data_dir, ignore)


def test_backup_holds_its_state_whatever_was_written_since(live: Generation, tmp_path: Path) -> None:
    writer = LanceWriter.open(live, DIMENSION)
    first, second, third = story()
    writer.replace(first)
    writer.replace(second)
    writer.store_positions({0: StoredPosition(14, 7, 99), 1: StoredPosition(3, -1, 98)})
    before = contents(live)
    with frozen(live) as held:
        writer.replace(third)
        writer.store_positions({0: StoredPosition(22, 9, 100)})
        for name in ("documents", "chunks", "passages", "positions"):
            table = connect(live.lance_dir).open_table(name)
            table.optimize(cleanup_older_than=timedelta(milliseconds=1), delete_unverified=True)
        write_backup(held.root, held.manifest, tmp_path / "backup.tar", ignore)
    assert contents(live) != before
    assert list(live.data_dir.glob(".*")) == []
    made = restored(tmp_path / "backup.tar", tmp_path / "new")
    assert made == current_generation(tmp_path / "new")
    assert made.name != live.name
    assert contents(made) == before
    assert read_manifest(made).log == LogIdentity(LOG.documents, "")
    assert (made.restored_path.exists(), made.incomplete_graph_dir.exists()) == (True, True), "it had no graph snapshot"
    assert stored_positions(connect(made.lance_dir).open_table(POSITIONS)) == {
        0: StoredPosition(14, -1, 99),
        1: StoredPosition(3, -1, 98),
    }
    writer.close()
    again = LanceWriter.open(made, DIMENSION)  # with the checksums that were recorded
    again.replace([document("d9", "A text that came later", offset=30)])
    again.close()


@pytest.mark.parametrize("ahead", [0, 1])
def test_restored_graph_is_complete_unless_tables_are_ahead(live: Generation, tmp_path: Path, ahead: int) -> None:
    writer = LanceWriter.open(live, DIMENSION)
    writer.replace([document("a", "A text")])
    writer.store_positions({0: StoredPosition(3, 5 + ahead), 1: StoredPosition(2, 4)})
    graph = GraphStore.open(live)
    graph.apply([], 5)
    graph.snapshot()
    writer.close()
    with frozen(live) as held:
        write_backup(held.root, held.manifest, tmp_path / "backup", ignore)
    made = restored(tmp_path / "backup", tmp_path / "new")
    (snapshot,) = published_snapshots(made.snapshots_dir)
    opened = GraphStore.open(made)
    assert (snapshot.graph_position, opened.position(), opened.is_complete) == (-1, -1, not ahead)


def test_interrupted_restore_leaves_no_stores_and_is_repeated(live: Generation, tmp_path: Path) -> None:
    writer = LanceWriter.open(live, DIMENSION)
    writer.replace([document("a", "A text")])
    writer.close()
    with frozen(live) as held:
        write_backup(held.root, held.manifest, tmp_path / "backup", ignore)

    def interrupt(_bytes: int) -> None:
        raise KeyboardInterrupt

    (tmp_path / "new").mkdir()
    with open_backup(tmp_path / "backup") as backup, pytest.raises(KeyboardInterrupt):
        restore_backup(backup, tmp_path / "new", interrupt)
    assert list((tmp_path / "new").iterdir()) == []
    (tmp_path / "new" / UNPACKED / "generations").mkdir(parents=True)  # as kill -9 leaves it
    made = restored(tmp_path / "backup", tmp_path / "new")
    assert contents(made) == contents(live)
    with pytest.raises(WrongSetting, match="is not empty"):
        restored(tmp_path / "backup", tmp_path / "new")


def test_a_damaged_backup_leaves_no_stores(live: Generation, tmp_path: Path) -> None:
    LanceWriter.open(live, DIMENSION).close()
    with frozen(live) as held:
        write_backup(held.root, held.manifest, tmp_path / "backup", ignore)
    next((tmp_path / "backup").rglob("*.manifest")).write_bytes(b"")
    with pytest.raises(DamagedStore, match="does not match its checksum"):
        restored(tmp_path / "backup", tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []
