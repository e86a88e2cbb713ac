"""Publication of graph snapshots: written, kept for a while, removed."""

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pyarrow as pa

from indexer.generation_folders import replace_file
from indexer.graph.snapshots import (
    FORMAT,
    MANIFEST,
    GraphSnapshot,
    TableFile,
    damaged_snapshots,
    published_snapshots,
    with_damaged_manifests,
)
from indexer.graph.tables import TABLES, GraphTables
from indexer.integrity.files import Damage, file_checksum

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

    1. write the tables into a hidden folder; 2. sync each; 3. write the manifest with their checksums; 4. give the
    folder its name. A crash leaves the snapshots as they were.
    """
    snapshots_dir.mkdir(parents=True, exist_ok=True)
    made_at_ms = time.time_ns() // 1_000_000 if made_at_ms is None else made_at_ms
    name = f"{max(position, 0):012d}-{made_at_ms}"
    published, part = snapshots_dir / name, snapshots_dir / f".{name}.part"
    if not published.exists():
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for table, schema in TABLES.items():  # 1
            with pa.ipc.new_file(part / f"{table}.arrow", schema) as file:
                file.write_table(tables.table(table))
        rows = tables.counts()
        snapshot = GraphSnapshot(
            format=FORMAT,
            name=name,
            graph_position=position,
            positions=dict(positions),
            made_at_ms=made_at_ms,
            tables={table: stored_table(part / f"{table}.arrow", rows[table]) for table in TABLES},  # 2
        ).seal()
        replace_file(part / MANIFEST, msgspec.json.encode(snapshot))  # 3
        part.rename(published)  # 4
    made = msgspec.json.decode((published / MANIFEST).read_bytes(), type=GraphSnapshot)
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


def stored_table(path: Path, rows: int) -> TableFile:
    """What a manifest says of a written file, once it is synced."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return TableFile(path.name, rows, path.stat().st_size, file_checksum(path))


def remove_published(folder: Path) -> None:
    """At once for readers."""
    hidden = folder.with_name(f".{folder.name}.removed")
    if folder.exists():
        folder.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def remove_unfinished(parent: Path) -> None:
    """What an interrupted publication or removal left."""
    for left in parent.glob(".*/"):
        shutil.rmtree(left, ignore_errors=True)


def _prune(snapshots_dir: Path, newest: GraphSnapshot, count: int) -> None:
    """Remove what is left of snapshots before the newest. Those with damaged manifests are left to `set_aside_damaged`,
    so that they are reported."""
    kept = {snapshot.name for snapshot in published_snapshots(snapshots_dir)[:count]}
    kept |= with_damaged_manifests(snapshots_dir)
    for folder in snapshots_dir.glob("[!.]*/"):
        if folder.name not in kept:
            remove_published(folder)
    for hidden in sorted(snapshots_dir.glob(".*"), reverse=True):
        is_left = hidden.name.endswith(".part") and _made_at_ms(hidden) < newest.made_at_ms
        if is_left or hidden.name.endswith(".removed"):
            _remove(hidden)
    for damaged in sorted(snapshots_dir.glob(f".*{DAMAGED}"), key=_made_at_ms)[:-KEPT_DAMAGED]:
        _remove(damaged)


def _made_at_ms(path: Path) -> int:
    milliseconds = path.name.partition("-")[2].partition(".")[0]
    return int(milliseconds) if milliseconds.isdecimal() else 0


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
