"""Maintenance of the LanceDB tables: indexing new rows, compacting small files, removing old versions."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import isqrt
from typing import Any

from lancedb.expr import col, lit
from lancedb.index import IvfFlat
from lancedb.table import Table

from indexer.errors import TransientStoreError
from indexer.lance_connection import checkout_latest, store_errors
from indexer.schema import CHUNKS, FEEDBACK, POSITIONS, RETRIEVALS

VECTOR_INDEX = "vector_{size}"  # with the target size of its partitions
UNPINNED = {POSITIONS, RETRIEVALS, FEEDBACK}  # readers pin no versions of these
NEVER = 10 * 365 * 86_400.0
REOPEN_AFTER = 20  # optimisations
MAX_IDLE_OPTIMISATIONS = 3  # each makes versions itself, which can only be removed later


@dataclass(frozen=True)
class MaintenanceParameters:
    """When a table is optimised, which takes time proportional to its size.

    - Need: so many `commits`, `fragments` or unindexed rows (`unindexed_rows` or `unindexed_share` of the table,
      whichever is more). A look-up opens every unindexed fragment: 8 of them take about 1 ms, and writing and reading
      back a document makes some ten look-ups.
    - Load: within `load_seconds` after a commit, `unindexed_rows_of_load` are allowed instead, as a load would pay for
      each optimisation; a look-up of 256 texts among 7,600 unindexed rows took as long as by index.
    - Time: at most `busy_share` of the time goes into one table, unless there was no commit for `idle_seconds`.
    - Vector index: built at `vector_index_rows`, before there are too many for memory; rebuilt when the table has grown
      by `vector_index_growth` or the index has more than `vector_index_segments`. Each optimisation adds a segment, and
      each segment costs a search .3 ms.
    - Versions: kept for `kept_version_seconds` after they were replaced, longer than a cursor lasts; but of those
      replaced `least_kept_seconds` ago, longer than a search takes, at most `kept_versions`.
    - A table without commits for `kept_version_seconds` is optimised as well, to remove what a load has replaced.
    """

    commits: int = 64
    fragments: int = 24
    unindexed_rows: int = 2_000
    unindexed_rows_of_load: int = 8_000
    unindexed_share: float = 0.02
    vector_index_rows: int = 30_000
    vector_index_growth: float = 4.0
    vector_index_segments: int = 8
    kept_version_seconds: float = 600.0
    least_kept_seconds: float = 20.0
    kept_versions: int = 16
    busy_share: float = 0.05
    idle_seconds: float = 2.0
    load_seconds: float = 30.0


@dataclass(frozen=True)
class MaintenanceReport:
    """The tables that one call `optimised` or gave a new vector index (`indexed`), and the `seconds` that took.

    `fragments`: the number of each table's files; `unindexed`: the rows that a search must scan.
    """

    optimised: tuple[str, ...]
    indexed: tuple[str, ...]
    seconds: float
    fragments: dict[str, int]
    unindexed: dict[str, int]


@dataclass
class _TableState:
    """`begun`: when the latest commits began, the first maybe before this process. `commits`: since the last
    optimisation. `idle_optimisations`: since the last commit of anybody else. `seconds`: what the last one took."""

    begun: deque[float] = field(default_factory=deque)
    commits: int = 0
    idle_optimisations: int = 0
    seconds: float | None = None


@dataclass(eq=False)
class Maintainer:
    """Optimises tables through its own handles; `maintain` may run in another thread than the commits. `now` is the
    wall clock, by which versions are dated; `stopwatch` a monotonic one; both in seconds."""

    open_tables: Callable[[], Mapping[str, Table]]
    parameters: MaintenanceParameters
    now: Callable[[], float] = time.time
    stopwatch: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._tables = tables = dict(self.open_tables())
        self._optimisations = 0
        self._state_lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._state = {name: _TableState() for name in tables}
        self._not_before = dict.fromkeys(tables, float("-inf"))
        self._last_commit = float("-inf")
        self._failed: set[str] = set()

    @contextmanager
    def committing(self, name: str) -> Iterator[None]:
        """For each commit to the table: counts it, and excludes it from maintenance that conflicted before."""
        with self._commit_lock:
            self._count(name)
            self._state[name].idle_optimisations = 0
            self._last_commit = self.stopwatch()
            yield

    def maintain(self) -> MaintenanceReport:
        """Optimise the table that needs it most, if one does and the time spent so far allows it; cheap otherwise.

        Raises TransientStoreError; a later call then does the work.
        """
        started = self.stopwatch()
        with store_errors("look at the tables"):
            if self._optimisations >= REOPEN_AFTER:
                self._tables, self._optimisations = dict(self.open_tables()), 0
            for name, table in self._tables.items():
                checkout_latest(table)
                if not self._state[name].begun:
                    self._note_version(name, _newest_version_time(table))
            rows = {name: table.count_rows() for name, table in self._tables.items()}
            unindexed = {name: _unindexed_rows(table) for name, table in self._tables.items()}
            fragments = {name: _fragments(table) for name, table in self._tables.items()}
        optimised: tuple[str, ...] = ()
        indexed: tuple[str, ...] = ()
        need = {name: self._need(name, rows[name], unindexed[name], fragments[name]) for name in self._allowed(started)}
        neediest = max(need, key=lambda name: need[name], default="")
        if CHUNKS in need and (size := self._partition_size_wanted(rows[CHUNKS])):
            self._work(CHUNKS, started, lambda: self._index_vectors(size))
            indexed = (CHUNKS,)
        elif need and need[neediest] >= 1:
            self._work(neediest, started, lambda: self._optimise(neediest))
            optimised = (neediest,)
        with store_errors("look at the tables"):
            fragments |= {name: _fragments(self._tables[name]) for name in optimised}
            unindexed |= {name: _unindexed_rows(self._tables[name]) for name in optimised + indexed}
        return MaintenanceReport(optimised, indexed, self.stopwatch() - started, fragments, unindexed)

    def forget(self, before_ms: int) -> int:
        """Delete retrievals and feedback from before a time, in milliseconds since 1970; returns their number.

        Their files are removed by the next optimisation. May be repeated. Raises TransientStoreError.
        """
        deleted = 0
        for name in (RETRIEVALS, FEEDBACK):
            table = self._tables[name]
            with store_errors(f"look for old {name}"):
                checkout_latest(table)
                old = table.count_rows(f"at_ms < {before_ms:d}")
            if old:
                with store_errors(f"delete old {name}"), self.committing(name):
                    checkout_latest(table)
                    table.delete(col("at_ms") < lit(before_ms))
                deleted += old
        return deleted

    def _allowed(self, now: float) -> list[str]:
        """The tables that `busy_share` allows to work on."""
        idle = now >= self._last_commit + self.parameters.idle_seconds
        return [name for name, start in self._not_before.items() if now >= start or (idle and name not in self._failed)]

    def _work(self, name: str, started: float, work: Callable[[], None]) -> None:
        """Work concurrently with the writer; after a conflict, once more while commits wait."""
        self._failed.add(name)
        self._optimisations += 1
        try:
            try:
                work()
            except TransientStoreError:
                with self._commit_lock:
                    work()
            self._failed.discard(name)
        finally:
            spent = self.stopwatch() - started
            self._not_before[name] = started + spent / self.parameters.busy_share

    def _count(self, name: str) -> None:
        with self._state_lock:
            state = self._state[name]
            state.commits += 1
            state.begun.append(self.now())

    def _note_version(self, name: str, made: float) -> None:
        """Note the newest version of a table without commits by this process."""
        with self._state_lock:
            if not self._state[name].begun:
                self._state[name].begun.append(made)

    def _need(self, name: str, rows: int, unindexed: int, fragments: int) -> float:
        """1 or more if the table needs to be optimised."""
        parameters = self.parameters
        loading = self.stopwatch() < self._last_commit + parameters.load_seconds
        most = parameters.unindexed_rows_of_load if loading else parameters.unindexed_rows
        allowed = max(most, parameters.unindexed_share * rows)
        state = self._state[name]
        is_quiet = state.begun[-1] <= self.now() - parameters.kept_version_seconds
        cleanup = is_quiet and state.idle_optimisations < MAX_IDLE_OPTIMISATIONS
        return max(state.commits / parameters.commits, unindexed / allowed, fragments / parameters.fragments, cleanup)

    def _partition_size_wanted(self, rows: int) -> int:
        """The rows of a partition of a new vector index; 0 if none is needed."""
        parameters = self.parameters
        if rows < parameters.vector_index_rows:
            return 0
        wanted = isqrt(rows)
        for name, segments in _vector_indexes(self._tables[CHUNKS]).items():
            if (
                segments <= parameters.vector_index_segments
                and wanted**2 < _size(name) ** 2 * parameters.vector_index_growth
            ):
                return 0
        return wanted

    def _index_vectors(self, size: int) -> None:
        """Build the index by partition size: given a number of partitions, `optimize` would merge them into a few."""
        table = self._tables[CHUNKS]
        with store_errors("index the vectors"):
            checkout_latest(table)
            old = _vector_indexes(table)
            name = VECTOR_INDEX.format(size=size)
            self._count(CHUNKS)
            table.create_index("vector", config=IvfFlat(distance_type="cosine", target_partition_size=size), name=name)
            for index in old.keys() - {name}:
                self._count(CHUNKS)
                table.drop_index(index)

    def _optimise(self, name: str) -> None:
        state = self._state[name]
        with self._state_lock:
            before = state.commits
        table = self._tables[name]
        with store_errors(f"optimise {name}"):
            checkout_latest(table)
            version = table.version
            self._count(name)
            began = state.begun[-1]
            started = self.stopwatch()
            table.optimize(cleanup_older_than=timedelta(seconds=self._removable_after(name)))
            state.seconds = self.stopwatch() - started
            checkout_latest(table)
        with self._state_lock:
            state.commits -= before + 1
            state.idle_optimisations += 1
            if table.version == version:  # it made no new version
                state.begun.remove(began)

    def _removable_after(self, name: str) -> float:
        """The age in seconds from which versions of the table may be removed.

        A version is kept for a while after the *next* one, not after itself: on a quiet table an old version may have
        been the newest until a moment ago. So find the last commit that is old enough, and keep its version and all
        later ones. Commits of other processes only make this more cautious.
        """
        parameters = self.parameters
        least = min(parameters.least_kept_seconds, parameters.kept_version_seconds)
        kept = least if name in UNPINNED else parameters.kept_version_seconds
        now = self.now()
        with self._state_lock:
            state = self._state[name]
            begun = state.begun
            while len(begun) > 1 and begun[1] <= now - (least if len(begun) > parameters.kept_versions else kept):
                begun.popleft()
            old = now - (least if len(begun) >= parameters.kept_versions else kept)
            oldest = begun[0] if begun and begun[0] <= old else None
        # optimise reads the clock again when it is done
        margin = max(least / 2, kept / 3 if state.seconds is None else 2 * state.seconds)
        return NEVER if oldest is None else now - oldest + margin


def _newest_version_time(table: Table) -> float:
    newest: datetime = max(version["timestamp"] for version in table.list_versions())
    return newest.timestamp()


def _unindexed_rows(table: Table) -> int:
    """The rows missing from the least complete index of the table."""
    return max((index.num_unindexed_rows or 0 for index in table.list_indices()), default=0)


def _fragments(table: Table) -> int:
    statistics: Any = table.stats()  # a dict, whatever its annotation says
    return int(statistics["fragment_stats"]["num_fragments"])


def _vector_indexes(table: Table) -> dict[str, int]:
    """The vector indexes, by name, with their numbers of segments."""
    return {index.name: index.num_segments or 1 for index in table.list_indices() if index.columns == ["vector"]}


def _size(index_name: str) -> int:
    return int(index_name.rpartition("_")[2])
