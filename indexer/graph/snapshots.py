"""Snapshots of the graph: folders of Arrow files, `snapshots/<name>/`. What their tables hold is in
`indexer.graph.tables`.
"""

from collections.abc import Iterator
from pathlib import Path

import structlog

from indexer.errors import DamagedStore
from indexer.generation_folders import Sealed
from indexer.graph.tables import TABLES, GraphTables, require_known_rows
from indexer.integrity.files import Damage
from indexer.read.arrow_folders import ArrowFolders, TableFile

FORMAT = 4

log = structlog.get_logger(__name__)


class GraphSnapshot(Sealed, frozen=True, kw_only=True):
    """The manifest of a snapshot: the offset on the contributions topic and the `positions` of the documents topic that
    it includes, and its files by table. `sealed` is the checksum of the other fields.
    """

    format: int
    name: str
    graph_position: int
    positions: dict[int, int]
    made_at_ms: int
    tables: dict[str, TableFile]
    sealed: str = ""

    @property
    def content_bytes(self) -> int:
        return sum(table.bytes for table in self.tables.values())

    def rows(self, table: str) -> int:
        return self.tables[table].rows


SNAPSHOTS = ArrowFolders(
    GraphSnapshot,
    FORMAT,
    TABLES,
    called="the graph's snapshot",
    gone="The snapshot {} of the graph is no longer there.",
    advice="The snapshot before is read in its place, and the worker's next snapshot replaces it: nothing is to be "
    "done.",
)


def published_snapshots(snapshots_dir: Path) -> list[GraphSnapshot]:
    """Those of this format, newest first, without those whose manifest is damaged; other files are not read."""
    return SNAPSHOTS.published(snapshots_dir)


def latest_snapshot(snapshots_dir: Path) -> GraphSnapshot | None:
    """The newest published snapshot; None before the first. Only its manifest is read."""
    return next(iter(published_snapshots(snapshots_dir)), None)


def newest_intact_snapshot(snapshots_dir: Path) -> GraphSnapshot | None:
    """The newest one whose files match their checksums. Damaged ones are skipped with a warning."""
    for snapshot in published_snapshots(snapshots_dir):
        try:
            SNAPSHOTS.require_intact(snapshots_dir, snapshot)
        except (DamagedStore, FileNotFoundError) as error:
            log.warning("a snapshot of the graph is passed over", name=snapshot.name, reason=str(error))
            continue
        return snapshot
    return None


def damaged_snapshots(snapshots_dir: Path) -> Iterator[Damage]:
    """Read each file of each snapshot once and compare it with its checksum."""
    for folder, file, what in SNAPSHOTS.damage(snapshots_dir):
        yield Damage(f"snapshots/{folder}/{file}", what)


def read_graph(snapshots_dir: Path, snapshot: GraphSnapshot, *, is_mapped: bool = True) -> GraphTables:
    """The content of a snapshot; its files are mapped into memory, or read into it.

    Raises FileNotFoundError when newer snapshots have replaced it, DamagedStore when a file is not as it was written.
    """
    tables = {name: SNAPSHOTS.read(snapshots_dir, snapshot, name, is_mapped=is_mapped) for name in TABLES}
    rows = {name: stored.rows for name, stored in snapshot.tables.items()}
    for name, table in tables.items():
        require_known_rows(name, table, rows)
    return GraphTables(**tables)
