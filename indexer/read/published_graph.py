"""The published graph: a Kùzu file made of a snapshot, for queries in Cypher.

`kuzu/<name>/` holds the file and `manifest.json` with its position and checksum. A folder gets its name when all is on
disk, and nothing in it changes afterwards. No part of Thalweg needs it: what is damaged or missing is made again.
"""

from importlib.metadata import version
from pathlib import Path

import msgspec

from indexer.errors import DamagedStore
from indexer.generation_folders import Generation, Sealed
from indexer.graph.kuzu_schema import SCHEMA_VERSION
from indexer.graph.snapshots import latest_snapshot
from indexer.integrity.files import file_checksum
from indexer.read.arrow_folders import MANIFEST
from schemas.errors import Failure

FILE = "graph.kuzu"


class PublishedGraph(Sealed, frozen=True, kw_only=True):
    """Which snapshot of a generation it is: the offset on the contributions topic, and the time; the versions of Kùzu
    and of the tables. `checksum` is the file's SHA-256, `sealed` that of the other fields."""

    name: str
    generation: str
    graph_position: int
    snapshot_at_ms: int
    kuzu: str
    tables: int
    bytes: int
    checksum: str
    sealed: str = ""

    @property
    def is_of_this_version(self) -> bool:
        return (self.kuzu, self.tables) == (version("kuzu"), SCHEMA_VERSION)


def newest_folder(kuzu_dir: Path) -> Path | None:
    """The newest published graph; None before the first."""
    return max(kuzu_dir.glob("[!.]*/"), key=lambda folder: folder.name.partition("-")[2], default=None)


def read_manifest(folder: Path) -> PublishedGraph:
    """Raises DamagedStore; FileNotFoundError where a newer graph has just replaced this one."""
    path = folder / MANIFEST
    try:
        published = msgspec.json.decode(path.read_bytes(), type=PublishedGraph)
    except (FileNotFoundError, ValueError) as error:
        if folder.exists():
            raise _damaged(path) from error
        raise
    if published.seal() != published or published.name != folder.name:
        raise _damaged(path)
    return published


def require_intact(folder: Path) -> PublishedGraph:
    """Read it once, and compare it with its checksum. Raises as `read_manifest` does."""
    published = read_manifest(folder)
    try:
        is_intact = file_checksum(folder / FILE) == published.checksum
    except FileNotFoundError:
        if not folder.exists():
            raise
        is_intact = False
    if not is_intact:
        raise _damaged(folder / FILE)
    return published


def require_this_version(published: PublishedGraph) -> None:
    """Raises Failure for a graph that this program does not read."""
    if not published.is_of_this_version:
        raise Failure(
            f"The published graph was made with Kùzu {published.kuzu} and version {published.tables} of its tables, "
            f"and this program reads {version('kuzu')} and {SCHEMA_VERSION}. A worker of this program makes it again "
            "when it starts: 'thalweg up'."
        )


def is_due(generation: Generation) -> bool:
    """Whether the newest snapshot is not published, or not by this version; an empty one is not the first to be."""
    snapshot, folder = latest_snapshot(generation.snapshots_dir), newest_folder(generation.kuzu_dir)
    if snapshot is None or folder is None or folder.name != snapshot.name:
        return snapshot is not None and (folder is not None or snapshot.rows("documents") > 0)
    try:
        return not read_manifest(folder).is_of_this_version
    except (DamagedStore, FileNotFoundError):
        return True


def _damaged(path: Path) -> DamagedStore:
    return DamagedStore(
        f"{path} is not as it was written. A worker removes it within a minute or so, and makes it again of the newest "
        "snapshot; where none runs, start one with 'thalweg up'. Nothing else is made of this file."
    )
