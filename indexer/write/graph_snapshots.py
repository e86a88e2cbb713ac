"""Publishing snapshots of the graph: copy, sync, rename, then the pointer; a crash anywhere leaves the one before."""

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from indexer.generations import replace_file
from indexer.graph_schema import SCHEMA_VERSION
from indexer.integrity.file_checksums import file_checksum
from indexer.read.graph_snapshots import POINTER, SUFFIX, SnapshotFile, description_of

KEPT = 3  # a reader may have just read the pointer to the one before, and the newest may be damaged


def publish_snapshot(graph: Path, snapshots_dir: Path, *, position: int, counts: Mapping[str, int]) -> SnapshotFile:
    """Make a copy of the checkpointed graph file the newest snapshot, and drop those nobody reads any more."""
    snapshots_dir.mkdir(parents=True, exist_ok=True)
    made_at_ms = time.time_ns() // 1_000_000
    name = f"{max(position, 0):012d}-{made_at_ms}{SUFFIX}"
    copy = snapshots_dir / f".{name}.part"
    shutil.copyfile(graph, copy)
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    snapshot = SnapshotFile(
        name=name,
        graph_position=position,
        made_at_ms=made_at_ms,
        documents=counts["Document"],
        chunks=counts["Chunk"],
        entities=counts["Entity"],
        statements=counts["Statement"],
        schema=SCHEMA_VERSION,
        checksum=file_checksum(copy),
    ).seal()
    copy.replace(snapshots_dir / name)
    replace_file(description_of(snapshots_dir / name), msgspec.json.encode(snapshot))
    replace_file(snapshots_dir / POINTER, msgspec.json.encode(snapshot))
    _prune(snapshots_dir)
    return snapshot


def _prune(snapshots_dir: Path) -> None:
    whole = sorted(snapshots_dir.glob(f"*{SUFFIX}"), key=lambda path: path.name.partition("-")[2])
    for stale in whole[:-KEPT]:
        description_of(stale).unlink(missing_ok=True)
        stale.unlink(missing_ok=True)
    for part in snapshots_dir.glob(".*.part"):
        part.unlink(missing_ok=True)
