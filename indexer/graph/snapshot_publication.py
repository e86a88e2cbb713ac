"""Publication of graph snapshots: written, kept for a while, removed."""

import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from indexer.graph.snapshots import SNAPSHOTS, GraphSnapshot, damaged_snapshots, published_snapshots
from indexer.graph.tables import TABLES, GraphTables
from indexer.integrity.files import Damage
from indexer.write.arrow_publication import publish_folder, remove_others

KEPT_SNAPSHOTS = 3  # a reader may just have chosen the one before, and the newest may be damaged
KEPT_DAMAGED = 1
DAMAGED = ".damaged"


def publish_tables(
    tables: GraphTables,
    snapshots_dir: Path,
    position: int,
    made_at_ms: int | None = None,
    kept: int = KEPT_SNAPSHOTS,
    positions: Mapping[int, int] = {},
) -> GraphSnapshot:
    """Make tables the newest snapshot, and remove all but the `kept` newest. `made_at_ms` is now without one.

    `position` of the contributions topic and `positions` of the documents topic are those that the tables include.
    """
    made_at_ms = time.time_ns() // 1_000_000 if made_at_ms is None else made_at_ms
    content = {name: tables.table(name) for name in TABLES}
    made = publish_folder(SNAPSHOTS, snapshots_dir, content, position, made_at_ms, positions=dict(positions))
    _prune(snapshots_dir, made, kept)
    return made


def set_aside_damaged(snapshots_dir: Path) -> list[Damage]:
    """Read every snapshot, and take the damaged ones out of the published ones; the last is kept to be looked at."""
    damage = list(damaged_snapshots(snapshots_dir))
    for name in {each.path.split("/")[1] for each in damage}:
        set_aside(snapshots_dir, name)
    return damage


def set_aside(snapshots_dir: Path, name: str) -> None:
    """Take a snapshot out of the published ones."""
    folder = snapshots_dir / name
    if folder.exists():
        folder.rename(snapshots_dir / f".{name}{DAMAGED}")


def _prune(snapshots_dir: Path, newest: GraphSnapshot, count: int) -> None:
    """Remove what is left of snapshots before the newest. Those with damaged manifests are left to `set_aside_damaged`,
    so that they are reported."""
    kept = {snapshot.name for snapshot in published_snapshots(snapshots_dir)[:count]}
    damaged = {name for name, snapshot in SNAPSHOTS.described(snapshots_dir) if snapshot is None}
    remove_others(snapshots_dir, kept | damaged)
    for hidden in sorted(snapshots_dir.glob(".*"), reverse=True):
        is_left = hidden.name.endswith(".part") and _made_at_ms(hidden) < newest.made_at_ms
        if is_left or hidden.name.endswith(".removed"):
            _remove(hidden)
    for path in sorted(snapshots_dir.glob(f".*{DAMAGED}"), key=_made_at_ms)[:-KEPT_DAMAGED]:
        _remove(path)


def _made_at_ms(path: Path) -> int:
    milliseconds = path.name.partition("-")[2].partition(".")[0]
    return int(milliseconds) if milliseconds.isdecimal() else 0


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
