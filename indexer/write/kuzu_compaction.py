"""Compaction of the graph: a new file from a snapshot, beside the live one, then caught up and put in its place.

Kùzu neither reuses the place of a deleted row nor, fully, that of the pages which a commit rewrites: without a single
delete 45 commits left a file five times its content, and a commit needs as much memory as the file has.
"""

import os
import threading
from collections.abc import Sequence
from pathlib import Path

from indexer.graph.kuzu_schema import copied_tables, rows_to_copy
from indexer.graph.snapshots import GraphSnapshot, read_graph
from indexer.graph.tables import GraphTables
from indexer.runtime.resources import trim_memory
from indexer.write.kuzu_database import Change, GraphChanges, GraphDatabase
from schemas.graph_delta import decode_contribution, encode_contribution
from schemas.ids import DocumentKey

MAX_SWELLING = 2.0  # the file's size over that of a new file with its content
INDEX_BYTES = 24 * 1024**2  # of a new file, whatever it holds
NEW_FILE_SHARE = 2.0  # what it has more, over the size of the snapshot's files
MAX_RECORDED_BYTES = 64 * 1024**2
MAX_ROUNDS = 8
FEW_DOCUMENTS = 50


class CompactionAbandoned(Exception):
    """It was cancelled, or more changed than it can catch up with: the live file stays as it is."""


def needs_compaction(file_bytes: int, content_bytes: int, free_bytes: int) -> bool:
    """Whether a graph's file is that much larger than its content, by the size of its snapshot, and there is room for
    another beside it."""
    expected_bytes = new_file_bytes(content_bytes)
    return file_bytes > MAX_SWELLING * expected_bytes and free_bytes > 2 * expected_bytes


def new_file_bytes(content_bytes: int) -> float:
    """What a new file takes, by the size of its snapshot."""
    return INDEX_BYTES + NEW_FILE_SHARE * content_bytes


class RecordedChanges:
    """What was applied to the live file since a copy of it was made: the last contribution of each document, encoded.

    `add` and `take` may be called from two threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: dict[DocumentKey, bytes | None] = {}
        self._bytes = 0
        self._position: int | None = None

    def add(self, changes: Sequence[Change], position: int) -> None:
        encoded = {key: None if new is None else encode_contribution(new) for key, new in changes}
        with self._lock:
            self._bytes += sum(len(value or b"") for value in encoded.values())
            self._newest |= encoded
            self._position = position
            if self._bytes > MAX_RECORDED_BYTES:
                self._newest.clear()

    def __len__(self) -> int:
        return len(self._newest)

    def take(self) -> tuple[list[Change], int | None]:
        """The changes not taken yet, and the position they reach; None where nothing was applied.

        Raises CompactionAbandoned where these were too many to keep.
        """
        with self._lock:
            if self._bytes > MAX_RECORDED_BYTES:
                raise CompactionAbandoned("too much changed meanwhile")
            newest, position = self._newest, self._position
            self._newest, self._bytes, self._position = {}, 0, None
        return [(key, None if value is None else decode_contribution(value)) for key, value in newest.items()], position


class Compaction:
    """A new file of the graph at `path`. `build` may run beside the writer's calls; the rest is for its thread."""

    def __init__(
        self, path: Path, snapshots_dir: Path, snapshot: GraphSnapshot, recorded: RecordedChanges, buffer_bytes: int
    ) -> None:
        """`recorded` holds what was applied to the live file after the snapshot's position."""
        self.path = path
        self._snapshots_dir = snapshots_dir
        self._snapshot = snapshot
        self._recorded = recorded
        self._buffer_bytes = buffer_bytes
        self._cancelled = threading.Event()
        self._database: GraphDatabase | None = None

    def build(self) -> None:
        """Load the snapshot, and apply what came meanwhile until little is left. Raises CompactionAbandoned."""
        tables = read_graph(self._snapshots_dir, self._snapshot)
        load_graph(tables, self._snapshot.graph_position, self.path, self._buffer_bytes, self._cancelled)
        self._database = GraphDatabase(self.path, self._buffer_bytes)
        for _ in range(MAX_ROUNDS):
            if len(self._recorded) <= FEW_DOCUMENTS:
                break
            self._require_wanted()
            self.catch_up()

    def catch_up(self) -> None:
        changes, position = self._recorded.take()
        if position is not None and self._database is not None:
            self._database.apply(GraphChanges.from_changes(changes), position)

    def position(self) -> int:
        return -1 if self._database is None else self._database.position()

    def cancel(self) -> None:
        """`build` ends as soon as it can."""
        self._cancelled.set()

    def close(self) -> None:
        """Close the new file, which is then complete and synced."""
        if self._database is not None:
            self._database.run("CHECKPOINT")
            self._database.close()
            self._database = None
            _sync(self.path)

    def discard(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None
        remove_database(self.path)

    def _require_wanted(self) -> None:
        if self._cancelled.is_set():
            raise CompactionAbandoned("the worker ends")


def load_graph(
    tables: GraphTables,
    position: int,
    path: Path,
    buffer_bytes: int,
    cancelled: threading.Event | None = None,
    *,
    both_directions: bool = False,
) -> None:
    """Write a snapshot into a new, closed and synced database file; `both_directions` as in `statements_that_create`.
    Needs memory for the largest table."""
    remove_database(path)
    database = GraphDatabase(path, buffer_bytes, both_directions=both_directions)
    try:
        for label in copied_tables():
            if cancelled is not None and cancelled.is_set():
                raise CompactionAbandoned("the worker ends")
            database.copy_in(label, rows_to_copy(tables, label))
            database.reconnect()
            trim_memory()
        database.set_position(position)
        database.run("CHECKPOINT")
    finally:
        database.close()
    _sync(path)


def remove_database(path: Path) -> None:
    """A file of Kùzu's and those beside it, with their space: a database that failed keeps them open."""
    for stale in path.parent.glob(f"{path.name}*"):
        os.truncate(stale, 0)
        stale.unlink()


def replace_database(path: Path, fresh: Path) -> None:
    """Put one closed file of Kùzu's in the place of another."""
    for stale in path.parent.glob(f"{path.name}.*"):
        if not stale.name.startswith(fresh.name):
            stale.unlink()
    fresh.replace(path)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
