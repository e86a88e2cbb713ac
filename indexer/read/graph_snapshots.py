"""The published snapshots of the graph: which there are, newest first, and whether each is still what was written.

Beside each file lies its description with the file's checksum; the pointer is a copy of the newest description.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import structlog

from indexer.errors import DamagedStore
from indexer.graph_schema import SCHEMA_VERSION
from indexer.integrity.damage import Damage
from indexer.integrity.file_checksums import file_checksum

POINTER = "LATEST"
SUFFIX = ".kuzu"

log = structlog.get_logger(__name__)


class SnapshotFile(msgspec.Struct, frozen=True, kw_only=True):
    """A published snapshot: its file, the offset on the graph topic it holds, and what is in it.

    `checksum` is that of the file, `sealed` that of all these fields; both are empty in those of earlier programs.
    """

    name: str
    graph_position: int
    made_at_ms: int
    documents: int
    chunks: int
    entities: int
    statements: int
    schema: int = 1
    checksum: str = ""
    sealed: str = ""

    def seal(self) -> "SnapshotFile":
        """With the checksum of all the other fields."""
        fields = msgspec.json.encode(msgspec.structs.replace(self, sealed=""))
        return msgspec.structs.replace(self, sealed=hashlib.sha256(fields).hexdigest()[:32])


def description_of(file: Path) -> Path:
    """Where a snapshot file's description is."""
    return file.with_suffix(".json")


def published_snapshots(snapshots_dir: Path) -> list[SnapshotFile]:
    """The snapshots that are there, newest first. Those whose description is damaged are left out; nothing is said of
    the files themselves."""
    found = [snapshot for snapshot, _ in _described(snapshots_dir) if snapshot is not None]
    by_name = {snapshot.name: snapshot for snapshot in found if (snapshots_dir / snapshot.name).exists()}
    return sorted(by_name.values(), key=lambda snapshot: snapshot.made_at_ms, reverse=True)


def latest_snapshot(snapshots_dir: Path) -> SnapshotFile | None:
    """The newest published snapshot with the tables of this program; None before the first. Its file is not read."""
    return next((each for each in published_snapshots(snapshots_dir) if each.schema == SCHEMA_VERSION), None)


def newest_intact_snapshot(snapshots_dir: Path) -> SnapshotFile | None:
    """The newest one whose file is what was written; reads it to tell. A damaged one is passed over, with a warning."""
    for snapshot in published_snapshots(snapshots_dir):
        if snapshot.schema != SCHEMA_VERSION:
            continue
        try:
            require_intact_snapshot(snapshots_dir / snapshot.name, snapshot.checksum)
        except (DamagedStore, FileNotFoundError) as error:
            log.warning("a snapshot of the graph is passed over", name=snapshot.name, reason=str(error))
            continue
        return snapshot
    return None


def require_intact_snapshot(file: Path, checksum: str) -> None:
    """Raises DamagedStore for a snapshot file that is not what was written, FileNotFoundError for one that is gone."""
    if checksum and file_checksum(file) != checksum:
        raise DamagedStore(
            f"The snapshot {file.name} of the graph does not match its checksum. The one before it is read in its "
            "place, and the worker's next snapshot replaces it: nothing is to be done."
        )


def snapshot_damage(snapshots_dir: Path) -> Iterator[Damage]:
    """Read each snapshot file once, and tell which are not as written."""
    for snapshot, path in _described(snapshots_dir):
        if snapshot is None:
            yield Damage(f"snapshots/{path.name}", "cannot be read as the description of a snapshot")
    for snapshot in published_snapshots(snapshots_dir):
        try:
            require_intact_snapshot(snapshots_dir / snapshot.name, snapshot.checksum)
        except DamagedStore:
            yield Damage(f"snapshots/{snapshot.name}", "does not match its checksum")
        except FileNotFoundError:  # replaced by a newer one meanwhile
            continue


def _described(snapshots_dir: Path) -> Iterator[tuple[SnapshotFile | None, Path]]:
    """Every description, the pointer too; None for one that is not as written."""
    for path in [snapshots_dir / POINTER, *snapshots_dir.glob("*.json")]:
        try:
            snapshot = msgspec.json.decode(path.read_bytes(), type=SnapshotFile)
        except FileNotFoundError:
            continue
        except ValueError:
            yield None, path
            continue
        of_earlier_program = not snapshot.sealed and not snapshot.checksum
        sound = of_earlier_program or snapshot.seal() == snapshot
        yield snapshot if sound else None, path
