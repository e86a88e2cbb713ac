"""The graph writer: replaces documents' contributions in Kùzu together with the position reached; makes snapshots.

Kùzu's own recovery is not used: a process killed in a COMMIT after COPY keeps the deletes and the position and loses
the rows, and replaying deletes drops other rows from the primary keys. So a graph that was not closed is loaded from
the newest snapshot, and the log is replayed from the position stored in it.
"""

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import structlog
from filelock import FileLock, Timeout

from indexer.errors import StoreInDoubt, StoreInUse, TransientStoreError
from indexer.generations import Generation, replace_file
from indexer.graph.publication import (
    KEPT_SNAPSHOTS,
    GraphCopy,
    copy_graph,
    publish_snapshot,
    set_aside,
    set_aside_damaged,
)
from indexer.graph.snapshots import GraphSnapshot, newest_intact_snapshot, published_snapshots, read_graph
from indexer.integrity.files import CLOSED, Damage, damaged_graph, file_checksum
from indexer.runtime.resources import usable_memory_bytes
from indexer.write.kuzu_compaction import (
    Compaction,
    CompactionAbandoned,
    RecordedChanges,
    load_graph,
    needs_compaction,
    remove_database,
    replace_database,
)
from indexer.write.kuzu_database import Change, GraphChanges, GraphDatabase
from schemas.ids import DocumentKey, document_node_id

MIN_BUFFER_BYTES = 1024**3
BUFFER_DIVISOR = 4  # of the memory that the process may use; only as much is used as the graph needs
UNCLOSED = "unclosed"  # a file beside the graph while a process has it open
FRESH = "fresh"
REMAKE = "remake"  # a file beside the graph that is to be made again from its topic

log = structlog.get_logger(__name__)


class GraphWriter:
    """Writes a generation's graph, one process at a time. Not thread-safe but where it says so.

    Each call may be repeated with the same arguments and then changes nothing. After a failure of the store every
    method raises StoreInDoubt: the process then ends, and the next one starts from the newest snapshot.
    """

    def __init__(self, generation: Generation, lock: FileLock, buffer_bytes: int, kept_snapshots: int) -> None:
        """Use `open`. `lock` is acquired, and released by `close`."""
        self._kept_snapshots = kept_snapshots
        self._buffer_bytes = buffer_bytes
        self._path = generation.graph_path
        self._snapshots_dir = generation.snapshots_dir
        self._lock = lock
        self._unclosed = self._path.with_name(UNCLOSED)
        self._fresh = self._path.with_name(f"{self._path.name}.{FRESH}")
        self._in_doubt = False
        self._least_bytes = 0
        self._unchanged_checksum: str | None = None  # of its file, where it is known and nothing was changed since
        self._recorded: RecordedChanges | None = None
        self._recorded_since: GraphCopy | None = None
        self._compaction: Compaction | None = None
        remove_database(self._fresh)
        self._open()

    @classmethod
    def open(
        cls, generation: Generation, buffer_bytes: int | None = None, kept_snapshots: int = KEPT_SNAPSHOTS
    ) -> "GraphWriter":
        """Open or create the graph.

        `buffer_bytes` bounds Kùzu's page cache, by default to a quarter of the machine's memory. A COMMIT needs about
        the size of the graph's file: with 256 MiB one of 390 MB accepted no more changes.

        A graph that was not closed, was changed since, or cannot be opened is loaded from the newest intact snapshot;
        `position()` then tells from where to replay the graph topic. Raises StoreInUse if another process has it open.
        """
        path = generation.graph_path
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = _locked(path)
        buffer_bytes = buffer_bytes or default_buffer_bytes()
        if path.with_name(REMAKE).exists():
            log.warning("the graph is made again from its topic")
            _discard(generation)
        damage = damaged_graph(path)
        if damage:
            log.warning("the graph is taken from its newest intact snapshot", reason=str(damage[0]))
        if damage or path.with_name(UNCLOSED).exists():
            _restore(generation, buffer_bytes)
        try:
            return cls(generation, lock, buffer_bytes, kept_snapshots)
        except RuntimeError:  # damaged, or of another version: Kùzu raises nothing more telling
            _restore(generation, buffer_bytes)
            return cls(generation, lock, buffer_bytes, kept_snapshots)

    def position(self) -> int:
        """The last offset of the graph topic that is applied; -1 for none."""
        with self._failing_in_doubt("tell its position"):
            return self._database.position()

    def apply(self, changes: Sequence[Change], position: int) -> None:
        """Replace, or delete (None), the contribution of each document and store the position, in one transaction.

        Raises ValueError for a value that no column can hold.
        """
        rows = GraphChanges.from_changes(changes)
        self._require_unchanged()
        with self._failing_in_doubt(f"take {len(changes)} changes"):
            self._database.apply(rows, position)
        if self._recorded is not None:
            self._recorded.add(changes, position)

    def documents(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, tuple[str, int]]:
        """{key: (revision, number of chunks)} of those that there are."""
        by_id = {document_node_id(key): key for key in keys}
        with self._failing_in_doubt("tell its documents"):
            found = self._database.documents(list(by_id)) if by_id else {}
        return {by_id[identifier]: stored for identifier, stored in found.items()}

    def extractors(self) -> set[str]:
        """The extractors that its statements come from."""
        with self._failing_in_doubt("tell its extractors"):
            return self._database.extractors()

    def snapshot(self) -> GraphSnapshot:
        """Publish the graph as the newest snapshot, and compact it where that is due."""
        copy = self.copy()
        snapshot = self.publish(copy)
        compaction = self.compaction(copy, snapshot)
        if compaction is not None:
            compaction.build()
            self.put_in_place(compaction)
        return snapshot

    def copy(self) -> GraphCopy:
        """Copy the graph for a snapshot; what is applied from here on is recorded until `compaction`."""
        with self._failing_in_doubt("be copied"):
            self._database.run("CHECKPOINT")
            position = self._database.position()
        copy = copy_graph(self._path, self._snapshots_dir, position)
        self._unchanged_checksum = copy.checksum
        self._least_bytes = copy.bytes
        if self._compaction is None:
            self._recorded, self._recorded_since = RecordedChanges(), copy
        return copy

    def publish(self, copy: GraphCopy) -> GraphSnapshot:
        """Make the copy the newest snapshot. May run beside other calls, in another thread."""
        return publish_snapshot(copy, self._kept_snapshots)

    def set_aside_damaged(self) -> list[Damage]:
        """Set aside the snapshots that are not as they were written. May run beside other calls, in another thread.

        Raises StoreInDoubt where the graph's own file is gone, shorter than it was, or was changed by another.
        """
        known = self._unchanged_checksum
        try:
            size = self._path.stat().st_size
            is_other = known is not None and file_checksum(self._path) != known
        except FileNotFoundError:
            size, is_other = -1, False
        if size < self._least_bytes or (
            is_other and self._unchanged_checksum == known
        ):  # else it was written meanwhile
            self._in_doubt = True
            raise StoreInDoubt(f"The graph at {self._path} is gone, cut off, or was changed on disk.")
        return set_aside_damaged(self._snapshots_dir)

    def compaction(self, copy: GraphCopy, snapshot: GraphSnapshot) -> Compaction | None:
        """A compaction to build, where the file has swollen to a multiple of its content; see `put_in_place`."""
        if self._compaction is not None or self._recorded_since != copy:
            return None
        recorded = self._recorded
        free_bytes = shutil.disk_usage(self._path.parent).free
        if recorded is None or not needs_compaction(copy.bytes, snapshot.content_bytes, free_bytes):
            self._recorded = None
            return None
        self._compaction = Compaction(self._fresh, self._snapshots_dir, snapshot, recorded, self._buffer_bytes)
        return self._compaction

    def put_in_place(self, compaction: Compaction) -> bool:
        """Take the file of a compaction that was built; False where there was too much to catch up with."""
        self._compaction = None
        try:
            with self._failing_in_doubt("be compacted"):
                compaction.catch_up()
                if compaction.position() != self._database.position():
                    raise CompactionAbandoned("it does not reach the graph's position")
                compaction.close()
                self._unchanged_checksum, self._least_bytes = None, 0
                self._database.close()
                replace_database(self._path, compaction.path)
                self._open()
        except CompactionAbandoned as error:
            log.warning("the compaction of the graph is abandoned", reason=str(error))
            compaction.discard()
            return False
        finally:
            self._recorded = None
        return True

    def abandon(self, compaction: Compaction) -> None:
        """Forget a compaction that could not be built."""
        self._compaction = self._recorded = None
        compaction.discard()

    def cancel_compaction(self) -> None:
        """A compaction that is being built ends soon, by CompactionAbandoned. For any thread."""
        compaction = self._compaction
        if compaction is not None:
            compaction.cancel()

    def close(self) -> None:
        """Close the store with its checksum; one in doubt is left for the next start to replace."""
        self._unchanged_checksum, self._least_bytes = None, 0
        if not self._in_doubt:
            with self._failing_in_doubt("be closed"):
                self._database.run("CHECKPOINT")
                self._database.close()
            replace_file(self._path.with_name(CLOSED), file_checksum(self._path).encode())
            self._unclosed.unlink(missing_ok=True)
        self._lock.release()

    def _open(self) -> None:
        closed = self._path.with_name(CLOSED)
        self._unclosed.touch()
        if closed.exists() and self._path.exists():
            self._unchanged_checksum = closed.read_text()
        closed.unlink(missing_ok=True)
        self._database = GraphDatabase(self._path, self._buffer_bytes)

    def _require_unchanged(self) -> None:
        """Before the first change after a start or a copy, check that the file is still what it was.

        Kùzu does not check its pages: a damaged one would be in every further snapshot.
        """
        known, self._unchanged_checksum = self._unchanged_checksum, None
        if known is not None and file_checksum(self._path) != known:
            self._in_doubt = True
            raise StoreInDoubt(f"The graph at {self._path} was changed on disk.")

    @contextmanager
    def _failing_in_doubt(self, doing: str) -> Iterator[None]:
        """After an error the handle is not used again: after a COMMIT that met a full disk the next call crashes."""
        if self._in_doubt:
            raise StoreInDoubt(f"The graph could not {doing}: it failed before; restart the worker.")
        try:
            yield
        except RuntimeError as error:
            self._in_doubt = True
            raise StoreInDoubt(f"The graph could not {doing}: {error}") from error


def default_buffer_bytes() -> int:
    return max(MIN_BUFFER_BYTES, usable_memory_bytes() // BUFFER_DIVISOR)


def _locked(path: Path) -> FileLock:
    """Our own lock: Kùzu's is a POSIX one, which the process loses when it closes a copy of the file."""
    lock = FileLock(path.with_name("lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise StoreInUse(f"Another process writes the graph at {path}; stop it first.") from error
    return lock


def order_remake(generation: Generation) -> None:
    """The next `GraphWriter.open` begins with an empty graph, and its snapshots are set aside."""
    generation.graph_path.with_name(REMAKE).touch()


def _discard(generation: Generation) -> None:
    """May be interrupted and made again."""
    path = generation.graph_path
    remove_database(path)
    for name in (UNCLOSED, CLOSED):
        path.with_name(name).unlink(missing_ok=True)
    for snapshot in published_snapshots(generation.snapshots_dir):
        set_aside(generation.snapshots_dir, snapshot.name)
    path.with_name(REMAKE).unlink()


def _restore(generation: Generation, buffer_bytes: int) -> None:
    """Load the newest intact snapshot, or nothing, where the graph was. May be interrupted and made again."""
    path = generation.graph_path
    path.with_name(UNCLOSED).touch()
    path.with_name(CLOSED).unlink(missing_ok=True)  # of the file that was there
    remove_database(path)
    newest = newest_intact_snapshot(generation.snapshots_dir)
    if newest is None:
        return
    try:
        load_graph(read_graph(generation.snapshots_dir, newest), newest.graph_position, path, buffer_bytes)
    except OSError as error:
        raise TransientStoreError(f"The graph could not be taken from {newest.name}: {error}") from error
