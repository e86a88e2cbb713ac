"""Publication of the graph as a Kùzu file: made of the newest snapshot by COPY, in a process of its own.

`python -m indexer.write.kuzu_publication DATA_DIR GENERATION BUFFER_BYTES` publishes and ends; the worker runs it
beside itself, with less urgency.
"""

import ctypes
import importlib.util  # noqa: F401 -- Kùzu's first COPY from Arrow looks for it without importing it
import os
import shutil
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from indexer.errors import DamagedStore
from indexer.generation_folders import Generation, replace_file
from indexer.graph.kuzu_schema import (
    MAX_DATABASE_BYTES,
    SCHEMA_VERSION,
    copied_tables,
    rows_to_copy,
    statements_that_create,
)
from indexer.graph.snapshots import latest_snapshot, read_graph
from indexer.graph.tables import GraphTables
from indexer.integrity.files import file_checksum
from indexer.read.arrow_folders import MANIFEST
from indexer.read.published_graph import FILE, PublishedGraph, is_due, require_intact
from indexer.runtime.resources import limit_malloc_arenas, trim_memory, usable_memory_bytes
from indexer.write.arrow_publication import remove_others, remove_published, remove_unfinished
from schemas.errors import Failure, plain_failures

NICENESS = 10  # after everything else; beside one busy thread it still gets a tenth of a core
OOM_SCORE = 1_000  # where memory runs out, the kernel ends this process and no other
INDEX_BYTES = 24 * 1024**2  # of a new file, whatever it holds
FILE_SHARE = 2.0  # what it has more, over the size of the snapshot's files
MIN_BUFFER_BYTES = 1024**3
BUFFER_DIVISOR = 4  # of the memory that the process may use; only as much is used as the graph needs


def publish_graph(generation: Generation, buffer_bytes: int) -> PublishedGraph | None:
    """Publish the newest snapshot; None where that is done already. A crash leaves what was published as it was.

    1. load the snapshot into a file in a hidden folder; 2. write the manifest with its checksum; 3. give the folder its
    name; 4. remove all others: who has one open keeps it.

    Raises DamagedStore for a damaged snapshot, FileNotFoundError for one that was replaced meanwhile, Failure without
    room for twice the file; RuntimeError, OSError.
    """
    snapshot = latest_snapshot(generation.snapshots_dir)
    if snapshot is None or not is_due(generation):
        return None
    part, folder = generation.kuzu_dir / f".{snapshot.name}.part", generation.kuzu_dir / snapshot.name
    remove_unfinished(generation.kuzu_dir)
    part.mkdir(parents=True)
    try:
        if shutil.disk_usage(part).free < 2 * (INDEX_BYTES + FILE_SHARE * snapshot.content_bytes):
            raise Failure(f"The disk of {generation.data_dir} has no room for twice the graph: it is not published.")
        tables = read_graph(generation.snapshots_dir, snapshot)
        load_graph(tables, snapshot.graph_position, part / FILE, buffer_bytes)  # 1
        published = PublishedGraph(
            name=snapshot.name,
            generation=generation.name,
            graph_position=snapshot.graph_position,
            snapshot_at_ms=snapshot.made_at_ms,
            kuzu=version("kuzu"),
            tables=SCHEMA_VERSION,
            bytes=(part / FILE).stat().st_size,
            checksum=file_checksum(part / FILE),
        ).seal()
        replace_file(part / MANIFEST, msgspec.json.encode(published))  # 2
        remove_published(folder)  # damaged, or of another version
        part.rename(folder)  # 3
    finally:
        shutil.rmtree(part, ignore_errors=True)
    remove_others(generation.kuzu_dir, {folder.name})  # 4
    return published


def load_graph(tables: GraphTables, position: int, path: Path, buffer_bytes: int) -> None:
    """Write a graph into a new, closed and synced file of Kùzu's. Needs memory for the largest table."""
    import kuzu  # in the child process only

    database = kuzu.Database(str(path), buffer_pool_size=buffer_bytes, max_db_size=MAX_DATABASE_BYTES)
    try:
        for statement in statements_that_create():
            _run(kuzu.Connection(database), statement)
        for label in copied_tables():
            rows = rows_to_copy(tables, label)
            if rows.num_rows:
                _run(kuzu.Connection(database), f"COPY {label} FROM $rows", rows=rows)
                del rows
                trim_memory()
        applied = "CREATE (:Applied {id: 0, position: $position, schema: $schema})"
        _run(kuzu.Connection(database), applied, position=position, schema=SCHEMA_VERSION)
        _run(kuzu.Connection(database), "CHECKPOINT")
    except RuntimeError:
        # Where a COMMIT met a full disk, its destructors corrupt the heap or never return: one reference more, which
        # nobody gives back, keeps Python from calling them.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(database))
        raise
    database.close()
    with path.open("rb") as file:
        os.fsync(file.fileno())


def _run(connection: Any, cypher: str, **parameters: object) -> None:
    """Each in a connection of its own: one keeps every table that it ever copied in memory until it is closed."""
    try:
        connection.execute(cypher, parameters)
    except RuntimeError:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))  # as `load_graph` does
        raise
    connection.close()


def default_buffer_bytes() -> int:
    return max(MIN_BUFFER_BYTES, usable_memory_bytes() // BUFFER_DIVISOR)


def remove_damaged(kuzu_dir: Path) -> list[str]:
    """Remove what is not as it was written; returns the names."""
    damaged = []
    for folder in kuzu_dir.glob("[!.]*/"):
        with suppress(FileNotFoundError):
            try:
                require_intact(folder)
            except DamagedStore:
                damaged.append(folder.name)
                remove_published(folder)
    return damaged


def _yield_to_others() -> None:
    os.nice(NICENESS)
    with suppress(OSError):  # not Linux
        Path("/proc/self/oom_score_adj").write_text(str(OOM_SCORE))
    limit_malloc_arenas()
    pa.set_memory_pool(pa.system_memory_pool())  # what a table took is given back before the next


def main(data_dir: str, generation: str, buffer_bytes: str) -> None:
    """The program: its last line of output says why it failed."""
    _yield_to_others()
    with plain_failures():
        publish_graph(Generation(Path(data_dir), generation), int(buffer_bytes))


if __name__ == "__main__":
    main(*sys.argv[1:])
