"""Publishing snapshots of the graph: copy, sync, rename, then the pointer; a crash anywhere leaves the one before."""

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from indexer.generations import replace_file
from indexer.graph_schema import SCHEMA_VERSION
from indexer.read.graph import POINTER, SnapshotFile

KEPT = 3  # a reader may have just read the pointer to the one before


def publish_snapshot(graph: Path, snapshots_dir: Path, *, position: int, counts: Mapping[str, int]) -> SnapshotFile:
    """Make a copy of the checkpointed graph file the newest snapshot, and drop those nobody reads any more."""
    snapshots_dir.mkdir(parents=True, exist_ok=True)
    made_at_ms = time.time_ns() // 1_000_000
    snapshot = SnapshotFile(
        name=f"{max(position, 0):012d}-{made_at_ms}.kuzu",
        graph_position=position,
        made_at_ms=made_at_ms,
        documents=counts["Document"],
        chunks=counts["Chunk"],
        entities=counts["Entity"],
        statements=counts["Statement"],
        schema=SCHEMA_VERSION,
    )
    copy = snapshots_dir / f".{snapshot.name}.part"
    shutil.copyfile(graph, copy)
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    copy.replace(snapshots_dir / snapshot.name)
    replace_file(snapshots_dir / POINTER, msgspec.json.encode(snapshot))
    _prune(snapshots_dir)
    return snapshot


def _prune(snapshots_dir: Path) -> None:
    whole = sorted(snapshots_dir.glob("*.kuzu"), key=lambda path: path.name.partition("-")[2])
    for stale in [*whole[:-KEPT], *snapshots_dir.glob(".*.part")]:
        stale.unlink(missing_ok=True)
