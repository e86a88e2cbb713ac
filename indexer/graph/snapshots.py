"""Snapshots of the graph: folders of Arrow IPC files, which any process opens.

`snapshots/<name>/` holds a file for each table, and `manifest.json` with their checksums. A folder gets its name when
all is on disk, and nothing in it changes afterwards. What its tables hold is in `indexer.graph.tables`.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pyarrow as pa
import structlog

from indexer.errors import DamagedStore
from indexer.graph.tables import TABLES, GraphTables, require_known_rows
from indexer.integrity.files import Damage, file_checksum
from indexer.integrity.seal import Sealed

FORMAT = 4
MANIFEST = "manifest.json"

log = structlog.get_logger(__name__)


class TableFile(msgspec.Struct, frozen=True):
    """One file of a snapshot; `checksum` is its SHA-256."""

    file: str
    rows: int
    bytes: int
    checksum: str


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


class _Format(msgspec.Struct):
    format: int


def published_snapshots(snapshots_dir: Path) -> list[GraphSnapshot]:
    """Those of this format, newest first, without those whose manifest is damaged; other files are not read."""
    found = [snapshot for _, snapshot in _described(snapshots_dir) if snapshot is not None]
    return sorted(found, key=lambda snapshot: (snapshot.made_at_ms, snapshot.name), reverse=True)


def with_damaged_manifests(snapshots_dir: Path) -> set[str]:
    """The names of snapshots that cannot be read for their manifests."""
    return {name for name, snapshot in _described(snapshots_dir) if snapshot is None}


def latest_snapshot(snapshots_dir: Path) -> GraphSnapshot | None:
    """The newest published snapshot; None before the first. Only its manifest is read."""
    return next(iter(published_snapshots(snapshots_dir)), None)


def snapshot_named(snapshots_dir: Path, name: str) -> GraphSnapshot:
    """Raises FileNotFoundError when newer snapshots have replaced it, DamagedStore for a damaged manifest."""
    found = [snapshot for folder, snapshot in _described(snapshots_dir) if folder == name]
    if not found:
        raise _gone(name)
    if found[0] is None:
        raise _damaged(name, MANIFEST, "cannot be read as the manifest of a snapshot")
    return found[0]


def newest_intact_snapshot(snapshots_dir: Path) -> GraphSnapshot | None:
    """The newest one whose files match their checksums. Damaged ones are skipped with a warning."""
    for snapshot in published_snapshots(snapshots_dir):
        try:
            require_intact_snapshot(snapshots_dir, snapshot)
        except (DamagedStore, FileNotFoundError) as error:
            log.warning("a snapshot of the graph is passed over", name=snapshot.name, reason=str(error))
            continue
        return snapshot
    return None


def require_intact_snapshot(snapshots_dir: Path, snapshot: GraphSnapshot) -> None:
    """Raises DamagedStore for files that do not match their checksums, FileNotFoundError where it was removed."""
    for file, what in _damaged_files(snapshots_dir, snapshot):
        raise _damaged(snapshot.name, file, what)


def damaged_snapshots(snapshots_dir: Path) -> Iterator[Damage]:
    """Read each file of each snapshot once and compare it with its checksum."""
    for folder, snapshot in _described(snapshots_dir):
        if snapshot is None:
            yield Damage(f"snapshots/{folder}/{MANIFEST}", "cannot be read as the manifest of a snapshot")
            continue
        try:
            for file, what in _damaged_files(snapshots_dir, snapshot):
                yield Damage(f"snapshots/{folder}/{file}", what)
        except FileNotFoundError:  # replaced by a newer one meanwhile
            continue


def read_graph(snapshots_dir: Path, snapshot: GraphSnapshot, *, is_mapped: bool = True) -> GraphTables:
    """The content of a snapshot; its files are mapped into memory, or read into it.

    Raises FileNotFoundError when newer snapshots have replaced it, DamagedStore when a file is not as it was written.
    """
    return GraphTables(**{name: _read_table(snapshots_dir, snapshot, name, is_mapped=is_mapped) for name in TABLES})


def _read_table(snapshots_dir: Path, snapshot: GraphSnapshot, name: str, *, is_mapped: bool) -> pa.Table:
    stored = snapshot.tables[name]
    path = snapshots_dir / snapshot.name / stored.file
    try:
        if path.stat().st_size != stored.bytes:
            raise _damaged(snapshot.name, stored.file, "has another length than was written")
        with pa.memory_map(str(path)) if is_mapped else pa.OSFile(str(path)) as file:
            content = file.read_buffer()
    except FileNotFoundError:
        _require_published(snapshots_dir, snapshot)
        raise _damaged(snapshot.name, stored.file, "is gone") from None
    if hashlib.sha256(content).hexdigest() != stored.checksum:
        raise _damaged(snapshot.name, stored.file, "does not match its checksum")
    table = pa.ipc.open_file(content).read_all()
    if table.schema != TABLES[name]:
        raise _damaged(snapshot.name, stored.file, "has other columns than this version reads")
    require_known_rows(name, table, {each: stored.rows for each, stored in snapshot.tables.items()})
    return table


def _described(snapshots_dir: Path) -> Iterator[tuple[str, GraphSnapshot | None]]:
    """The name of every folder and its manifest; None for a damaged one. Other formats are left out."""
    for folder in sorted(snapshots_dir.glob("[!.]*/")):
        try:
            content = (folder / MANIFEST).read_bytes()
        except FileNotFoundError:
            if folder.exists():  # else it was removed just now
                yield folder.name, None
            continue
        try:
            if msgspec.json.decode(content, type=_Format).format != FORMAT:
                continue
            snapshot = msgspec.json.decode(content, type=GraphSnapshot)
        except ValueError:
            yield folder.name, None
            continue
        is_whole = snapshot.name == folder.name and TABLES.keys() <= snapshot.tables.keys()
        is_intact = is_whole and snapshot.seal() == snapshot
        yield folder.name, snapshot if is_intact else None


def _damaged_files(snapshots_dir: Path, snapshot: GraphSnapshot) -> Iterator[tuple[str, str]]:
    """(file, what is wrong with it). Raises FileNotFoundError for a snapshot that was removed."""
    for stored in snapshot.tables.values():
        path = snapshots_dir / snapshot.name / stored.file
        try:
            if file_checksum(path) != stored.checksum:
                yield stored.file, "does not match its checksum"
        except FileNotFoundError:
            _require_published(snapshots_dir, snapshot)
            yield stored.file, "is gone"


def _require_published(snapshots_dir: Path, snapshot: GraphSnapshot) -> None:
    """Raises FileNotFoundError for a snapshot that was removed."""
    manifest = snapshots_dir / snapshot.name / MANIFEST
    if not manifest.exists():
        raise _gone(snapshot.name)


def _gone(name: str) -> FileNotFoundError:
    return FileNotFoundError(f"The snapshot {name} of the graph is no longer there.")


def _damaged(snapshot: str, file: str, what: str) -> DamagedStore:
    return DamagedStore(
        f"The file {file} of the graph's snapshot {snapshot} {what}. The snapshot before is read in its place, and the "
        "worker's next snapshot replaces it: nothing is to be done."
    )
