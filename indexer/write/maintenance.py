"""Keeping the tables fast: new rows into the indexes, small files into large ones, old versions away."""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from math import isqrt
from typing import Any

from lancedb.index import IvfFlat
from lancedb.table import Table

from indexer.tables import CHUNKS, POSITIONS, RETRIEVALS, go_to_newest, store_errors

VECTOR_INDEX = "vector_{partitions}"
UNPINNED = {POSITIONS, RETRIEVALS}  # readers copy what they need at once
UNPINNED_SECONDS = 60.0
NEVER = 10 * 365 * 86_400.0


@dataclass(frozen=True)
class MaintenanceParameters:
    """When a table is optimised. Optimising costs time in proportion to the table, so it is bounded twice: by need (any
    of the first three) and by `busy_share`, the most of the writer's time that may go into it."""

    commits: int = 64
    unindexed_rows: int = 2_000
    unindexed_share: float = 0.05
    vector_index_rows: int = 10_000
    vector_index_growth: float = 4.0
    kept_version_seconds: float = 900.0
    busy_share: float = 0.05


@dataclass(frozen=True)
class MaintenanceReport:
    """What one call did: the tables it `optimised` and those it gave a new vector index (`indexed`), in `seconds`;
    `fragments` are the files of each table, `unindexed` the rows that a search must scan."""

    optimised: tuple[str, ...]
    indexed: tuple[str, ...]
    seconds: float
    fragments: dict[str, int]
    unindexed: dict[str, int]


@dataclass
class _Upkeep:
    """Commits since the table was last optimised, and when they began."""

    commits: int = 0
    begun: deque[float] = field(default_factory=deque)


class Maintainer:
    """Optimises tables through handles of its own. `committing` and `maintain` may be called from two threads."""

    def __init__(
        self,
        tables: Mapping[str, Table],
        parameters: MaintenanceParameters,
        now: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` is the wall clock, which also dates the versions; `stopwatch` measures, in seconds."""
        self._tables = dict(tables)
        self._parameters = parameters
        self._now = now
        self._stopwatch = stopwatch
        self._lock = threading.Lock()
        self._upkeep = {name: _Upkeep() for name in tables}
        self._rest_until = float("-inf")

    def committing(self, name: str) -> None:
        """Say, just before it, that a commit to the table begins."""
        with self._lock:
            upkeep = self._upkeep[name]
            upkeep.commits += 1
            upkeep.begun.append(self._now())

    def maintain(self) -> MaintenanceReport:
        """Optimise the table that needs it most, if one does and the time spent so far allows it. Cheap otherwise.

        Versions that a reader may have opened in the last `kept_version_seconds` stay. Raises TransientStoreError; then
        nothing is lost and a later call does the work.
        """
        optimised: tuple[str, ...] = ()
        indexed: tuple[str, ...] = ()
        started = self._stopwatch()
        with store_errors("look at the tables"):
            for table in self._tables.values():
                go_to_newest(table)
            rows = {name: table.count_rows() for name, table in self._tables.items()}
            unindexed = {name: _unindexed_rows(table) for name, table in self._tables.items()}
        if started >= self._rest_until:
            partitions = self._partitions_wanted(rows[CHUNKS])
            name = max(self._tables, key=lambda table: self._need(table, rows[table], unindexed[table]))
            try:
                if partitions:
                    self._index_vectors(partitions)
                    indexed = (CHUNKS,)
                elif self._need(name, rows[name], unindexed[name]) >= 1:
                    self._optimise(name)
                    optimised = (name,)
            finally:
                if (spent := self._stopwatch() - started) and (partitions or optimised):
                    self._rest_until = started + spent / self._parameters.busy_share
        with store_errors("look at the tables"):
            fragments = {name: _fragments(table) for name, table in self._tables.items()}
            unindexed |= {name: _unindexed_rows(self._tables[name]) for name in optimised + indexed}
        return MaintenanceReport(optimised, indexed, self._stopwatch() - started, fragments, unindexed)

    def _need(self, name: str, rows: int, unindexed: int) -> float:
        """From 1 on, the table wants to be optimised."""
        parameters = self._parameters
        allowed = max(parameters.unindexed_rows, parameters.unindexed_share * rows)
        return max(self._upkeep[name].commits / parameters.commits, unindexed / allowed)

    def _partitions_wanted(self, rows: int) -> int:
        """How many partitions a new vector index should have; 0 when the one there is will do, or none is needed."""
        if rows < self._parameters.vector_index_rows:
            return 0
        wanted = isqrt(rows)
        held = max((_partitions(index) for index in _vector_indexes(self._tables[CHUNKS])), default=0)
        return 0 if held and wanted**2 < held**2 * self._parameters.vector_index_growth else wanted

    def _index_vectors(self, partitions: int) -> None:
        table = self._tables[CHUNKS]
        with store_errors("index the vectors"):
            old = _vector_indexes(table)
            name = VECTOR_INDEX.format(partitions=partitions)
            config = IvfFlat(distance_type="cosine", num_partitions=partitions)
            self.committing(CHUNKS)
            table.create_index("vector", config=config, name=name)
            for index in old:
                if index != name:
                    self.committing(CHUNKS)
                    table.drop_index(index)

    def _optimise(self, name: str) -> None:
        with self._lock:
            upkeep = self._upkeep[name]
            begun, upkeep.commits = upkeep.commits, 0
        try:
            with store_errors(f"optimise {name}"):
                self.committing(name)
                self._tables[name].optimize(cleanup_older_than=timedelta(seconds=self._removable_after(name)))
        except BaseException:
            with self._lock:
                upkeep.commits += begun
            raise
        with self._lock:
            upkeep.commits = max(0, upkeep.commits - 1)

    def _removable_after(self, name: str) -> float:
        """The age in seconds from which versions of the table may go.

        A version is wanted for `kept_version_seconds` after the *next* one came, not after its own birth: on a quiet
        table an old version may be the newest until a moment ago. So find the last commit that is old enough, and keep
        its version and all younger ones. Commits before this process, or of others, only make that more cautious.
        """
        kept = min(UNPINNED_SECONDS, self._parameters.kept_version_seconds)
        kept = kept if name in UNPINNED else self._parameters.kept_version_seconds
        now = self._now()
        with self._lock:
            begun = self._upkeep[name].begun
            while len(begun) > 1 and begun[1] <= now - kept:
                begun.popleft()
            oldest = begun[0] if begun and begun[0] <= now - kept else None
        return NEVER if oldest is None else now - oldest + kept / 3  # optimise reads the clock again when it is done


def _unindexed_rows(table: Table) -> int:
    """Rows that the least complete index of the table does not know."""
    return max((index.num_unindexed_rows or 0 for index in table.list_indices()), default=0)


def _fragments(table: Table) -> int:
    statistics: Any = table.stats()  # a dict, whatever its annotation says
    return int(statistics["fragment_stats"]["num_fragments"])


def _vector_indexes(table: Table) -> list[str]:
    return [index.name for index in table.list_indices() if index.columns == ["vector"]]


def _partitions(index_name: str) -> int:
    return int(index_name.rpartition("_")[2])
