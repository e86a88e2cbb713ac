"""The live generation held still while the worker continues: hard links to files of versions that belong together.

A file of a table, and a published snapshot of the graph, never changes once it has its name. So links keep what the
worker removes meanwhile, without a copy and without a lock. Where the file system has no links, files are copied.
"""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock, Timeout

from indexer.backup.archive import FORMAT, BackupFile, BackupManifest
from indexer.errors import TransientStoreError
from indexer.generation_folders import Generation, read_manifest, replace_file
from indexer.graph.snapshots import newest_intact_snapshot
from indexer.integrity.files import CHECKSUMS, SUFFIX, checksum_line, file_checksum, files_of_version, read_checksums
from indexer.lance_connection import connect, read_errors, store_errors
from indexer.read.lance_reader import LanceReader, LanceSnapshot
from indexer.schema import DOCUMENTS, FEEDBACK, RETRIEVALS
from schemas.errors import Failure, InUse

HELD = ".backup"
LOCK = "backup.lock"
ATTEMPTS = 10
RETRY_SECONDS = 0.2


@dataclass(frozen=True)
class FrozenGeneration:
    """`root` is laid out as a data directory; the files of `manifest` are below it."""

    root: Path
    manifest: BackupManifest

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.manifest.files.values())


@contextmanager
def frozen(live: Generation) -> Iterator[FrozenGeneration]:
    """Held until the end of the block. One at a time in a data directory.

    Raises InUse while another one is, TransientStoreError where its files were removed again and again while they were
    linked, DamagedStore for a table that cannot be read, Failure before the worker has made the tables.
    """
    if not (live.lance_dir / f"{DOCUMENTS}{SUFFIX}").is_dir():  # made last
        raise Failure(f"There is nothing in generation {live.name} yet: the worker makes its tables when it starts.")
    root = live.data_dir / HELD
    lock = FileLock(live.data_dir / LOCK, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout as error:
        raise InUse(f"Another backup of {live.data_dir} is being written: wait for it.") from error
    try:
        yield _freeze(live, root)
    finally:
        shutil.rmtree(root, ignore_errors=True)
        lock.release()


def _freeze(live: Generation, root: Path) -> FrozenGeneration:
    for _ in range(ATTEMPTS):
        shutil.rmtree(root, ignore_errors=True)
        try:
            return _link(live, root)
        except FileNotFoundError as error:  # removed by the worker's maintenance meanwhile
            reason = error
            time.sleep(RETRY_SECONDS)
    raise TransientStoreError(f"The files of generation {live.name} were removed while they were held: {reason}.")


def _link(live: Generation, root: Path) -> FrozenGeneration:
    """1. a graph snapshot, which is at or before the tables; 2. the tables at versions that belong together; 3. what
    is recorded of their checksums."""
    held = Generation(root, live.name)
    is_complete = not live.incomplete_graph_dir.exists()
    graph = newest_intact_snapshot(live.snapshots_dir) if is_complete else None  # 1
    known: dict[str, str] = {}
    if graph is not None:
        folder = held.snapshots_dir / graph.name
        for path in sorted((live.snapshots_dir / graph.name).iterdir()):
            _hold(path, folder / path.name)
        known |= {str((folder / table.file).relative_to(root)): table.checksum for table in graph.tables.values()}
    recorded = read_checksums(live.lance_dir).by_path
    tables = LanceReader(connect(live.lance_dir)).snapshot()  # 2
    linked = list(_link_tables(live, held, tables))
    lines = "".join(checksum_line(path, recorded[path]) for path in linked if path in recorded)
    (held.lance_dir / CHECKSUMS).write_text(lines)  # 3
    known |= {str((held.lance_dir / path).relative_to(root)): recorded[path] for path in linked if path in recorded}
    for path in (live.manifest_path, live.missed_deletes_path):
        if path.exists():
            replace_file(held.root / path.name, path.read_bytes())
    pipeline = read_manifest(live)
    manifest = BackupManifest(
        format=FORMAT,
        version=version("thalweg"),
        made_at_ms=time.time_ns() // 1_000_000,
        generation=live.name,
        model=pipeline.embedding_model,
        log=pipeline.log,
        positions={partition: stored.offset for partition, stored in sorted(tables.positions.items())},
        graph_position=-1 if graph is None else graph.graph_position,
        documents=tables.counts()["documents"],
        files=dict(sorted(_described(root, known))),
    )
    return FrozenGeneration(root, manifest.seal())


def _link_tables(live: Generation, held: Generation, tables: LanceSnapshot) -> Iterator[str]:
    """Link each table with one version, and read it; yields the paths in the tables' folder.

    Raises FileNotFoundError where a file, or a version, was removed meanwhile.
    """
    versions = dict(tables.table_versions)
    connection = connect(live.lance_dir)
    for name in (RETRIEVALS, FEEDBACK):
        with store_errors(f"open {name}"):
            if name in connection.list_tables().tables:
                versions[name] = connection.open_table(name).version
    for name, number in versions.items():
        for path in files_of_version(live.lance_dir, name, number):
            _hold(live.lance_dir / path, held.lance_dir / path)
            yield path
    if not tables.is_kept():
        raise FileNotFoundError("a version of a table")
    held_tables = connect(held.lance_dir)
    for name in versions:
        with read_errors(name):
            table = held_tables.open_table(name)
            for _ in table.search().select(table.schema.names[:1]).to_batches():
                pass


def _hold(path: Path, held: Path) -> None:
    held.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, held)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        shutil.copyfile(path, held)


def _described(root: Path, known: dict[str, str]) -> Iterator[tuple[str, BackupFile]]:
    """Every held file; those whose checksum was not recorded yet are read for it."""
    for path in root.rglob("*"):
        if path.is_file():
            name = str(path.relative_to(root))
            yield name, BackupFile(path.stat().st_size, known.get(name) or file_checksum(path))
