"""Keeping the tables fast: new rows into the indexes, small files into large ones, old versions away."""

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
from indexer.schema import CHUNKS, FEEDBACK, POSITIONS, RETRIEVALS, checkout_latest, store_errors

VECTOR_INDEX = "vector_{size}"  # its name keeps the size its partitions were made with
UNPINNED = {POSITIONS, RETRIEVALS, FEEDBACK}  # readers copy what they need at once
NEVER = 10 * 365 * 86_400.0
REOPENED_AFTER = 20  # optimisings
TIDIED_ENOUGH = 3  # times: optimising makes versions itself, which only go when the next one is old enough


@dataclass(frozen=True)
class MaintenanceParameters:
    """When a table is optimised. That costs time in proportion to the table, so it is bounded twice: by need (so many
    `commits`, so many `fragments`, or so many rows that no index knows: a number or a share of the table, whichever is
    more) and by `busy_share`, the most of the time that may go into one table while commits keep coming: after
    `idle_seconds` without one, nobody is held up by it. A look-up opens every fragment that no index covers: 8 of them
    cost it about 1 ms, and a document that is written and read back waits for some ten look-ups.

    While the last commit is less than `load_seconds` ago more rows may be unknown: a load, whose commits are seconds
    apart, would pay for each optimising, and a look-up of 256 texts among 7,600 unknown rows took as long as by index.

    The vector index is made at `vector_index_rows`, before there are too many to be held in memory; and anew when the
    table has grown by `vector_index_growth` or the index has more than `vector_index_segments`: each optimising adds
    one, and each costs a search .3 ms.

    A version is kept for `kept_version_seconds` after the next one came, which is longer than a cursor lasts. Where
    commits keep coming that would be tens of thousands of files: so of the versions that have been replaced for
    `least_kept_seconds`, which is longer than a search takes, at most `kept_versions` stay.

    A table without commits for `kept_version_seconds` is optimised as well: what a load has replaced, several times the
    size of what is left, would else stay until the next one."""

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
    """What one call did: the tables it `optimised` and those it gave a new vector index (`indexed`), in `seconds`;
    `fragments` are the files of each table, `unindexed` the rows that a search must scan."""

    optimised: tuple[str, ...]
    indexed: tuple[str, ...]
    seconds: float
    fragments: dict[str, int]
    unindexed: dict[str, int]


@dataclass
class _Upkeep:
    """How many commits there were since the table was last optimised, when the latest ones began (the first may be one
    from before this process), how often it was optimised since somebody else committed, and how long that took."""

    begun: deque[float] = field(default_factory=deque)
    commits: int = 0
    tidied: int = 0
    seconds: float | None = None


class Maintainer:
    """Optimises tables through handles of its own; `maintain` may run in another thread than the commits."""

    def __init__(
        self,
        open_tables: Callable[[], Mapping[str, Table]],
        parameters: MaintenanceParameters,
        now: Callable[[], float] = time.time,
        stopwatch: Callable[[], float] = time.monotonic,
    ) -> None:
        """`now` is the wall clock, which also dates the versions; `stopwatch` measures, in seconds."""
        self._open_tables = open_tables
        self._tables = tables = dict(open_tables())
        self._worked = 0
        self._parameters = parameters
        self._now = now
        self._stopwatch = stopwatch
        self._counting = threading.Lock()
        self._alone = threading.Lock()
        self._upkeep = {name: _Upkeep() for name in tables}
        self._rest_until = dict.fromkeys(tables, float("-inf"))
        self._last_commit = float("-inf")
        self._failed: set[str] = set()

    @contextmanager
    def committing(self, name: str) -> Iterator[None]:
        """Around each commit to the table: counts it, and keeps it apart from work that must run alone."""
        with self._alone:
            self._count(name)
            self._upkeep[name].tidied = 0
            self._last_commit = self._stopwatch()
            yield

    def maintain(self) -> MaintenanceReport:
        """Optimise the table that needs it most, if one does and the time spent so far allows it. Cheap otherwise.

        Versions that a reader may have opened in the last `least_kept_seconds` stay, and for longer as
        MaintenanceParameters says. Raises TransientStoreError; then nothing is lost and a later call does the work.
        """
        started = self._stopwatch()
        with store_errors("look at the tables"):
            if self._worked >= REOPENED_AFTER:
                self._tables, self._worked = dict(self._open_tables()), 0
            for name, table in self._tables.items():
                checkout_latest(table)
                if not self._upkeep[name].begun:
                    self._remember(name, _born(table))
            rows = {name: table.count_rows() for name, table in self._tables.items()}
            unindexed = {name: _unindexed_rows(table) for name, table in self._tables.items()}
            fragments = {name: _fragments(table) for name, table in self._tables.items()}
        optimised: tuple[str, ...] = ()
        indexed: tuple[str, ...] = ()
        need = {name: self._need(name, rows[name], unindexed[name], fragments[name]) for name in self._rested(started)}
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
        return MaintenanceReport(optimised, indexed, self._stopwatch() - started, fragments, unindexed)

    def forget(self, before_ms: int) -> int:
        """Delete the retrievals and the feedback from before a time, in milliseconds since 1970; how many these were.

        Their files go when the table is optimised. May be called again with the same time. Raises TransientStoreError.
        """
        forgotten = 0
        for name in (RETRIEVALS, FEEDBACK):
            table = self._tables[name]
            with store_errors(f"look for old {name}"):
                checkout_latest(table)
                old = table.count_rows(f"at_ms < {before_ms:d}")
            if old:
                with store_errors(f"delete old {name}"), self.committing(name):
                    checkout_latest(table)
                    table.delete(col("at_ms") < lit(before_ms))
                forgotten += old
        return forgotten

    def _rested(self, now: float) -> list[str]:
        """The tables that may be worked on: large ones rest long, and do not keep small ones waiting."""
        idle = now >= self._last_commit + self._parameters.idle_seconds
        return [name for name, until in self._rest_until.items() if now >= until or (idle and name not in self._failed)]

    def _work(self, name: str, started: float, work: Callable[[], None]) -> None:
        """Work beside the writer; if a commit of his undoes it, once more while he waits. Then let the table rest."""
        self._failed.add(name)
        self._worked += 1
        try:
            try:
                work()
            except TransientStoreError:
                with self._alone:
                    work()
            self._failed.discard(name)
        finally:
            spent = self._stopwatch() - started
            self._rest_until[name] = started + spent / self._parameters.busy_share

    def _count(self, name: str) -> None:
        with self._counting:
            upkeep = self._upkeep[name]
            upkeep.commits += 1
            upkeep.begun.append(self._now())

    def _remember(self, name: str, born: float) -> None:
        """When the newest version of a table was made that nobody has committed to in this process."""
        with self._counting:
            if not self._upkeep[name].begun:
                self._upkeep[name].begun.append(born)

    def _need(self, name: str, rows: int, unindexed: int, fragments: int) -> float:
        """From 1 on, the table wants to be optimised."""
        parameters = self._parameters
        loading = self._stopwatch() < self._last_commit + parameters.load_seconds
        most = parameters.unindexed_rows_of_load if loading else parameters.unindexed_rows
        allowed = max(most, parameters.unindexed_share * rows)
        upkeep = self._upkeep[name]
        quiet = upkeep.begun[-1] <= self._now() - parameters.kept_version_seconds and upkeep.tidied < TIDIED_ENOUGH
        return max(upkeep.commits / parameters.commits, unindexed / allowed, fragments / parameters.fragments, quiet)

    def _partition_size_wanted(self, rows: int) -> int:
        """How many rows a partition of a new vector index should have; 0 when none is needed or the old will do."""
        parameters = self._parameters
        if rows < parameters.vector_index_rows:
            return 0
        wanted = isqrt(rows)
        held = _vector_indexes(self._tables[CHUNKS])
        for name, segments in held.items():
            if (
                segments <= parameters.vector_index_segments
                and wanted**2 < _size(name) ** 2 * parameters.vector_index_growth
            ):
                return 0
        return wanted

    def _index_vectors(self, size: int) -> None:
        """Make the index by the size of its partitions: by their number, optimising would merge them into a few."""
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
        with self._counting:
            before = self._upkeep[name].commits
        table = self._tables[name]
        with store_errors(f"optimise {name}"):
            checkout_latest(table)
            version = table.version
            self._count(name)
            began = self._upkeep[name].begun[-1]
            started = self._stopwatch()
            table.optimize(cleanup_older_than=timedelta(seconds=self._removable_after(name)))
            self._upkeep[name].seconds = self._stopwatch() - started
            checkout_latest(table)
        with self._counting:
            self._upkeep[name].commits -= before + 1
            self._upkeep[name].tidied += 1
            if table.version == version:  # nothing came in the place of the newest version
                self._upkeep[name].begun.remove(began)

    def _removable_after(self, name: str) -> float:
        """The age in seconds from which versions of the table may go.

        A version is wanted for a while after the *next* one came, not after its own birth: on a quiet table an old
        version may be the newest until a moment ago. So find the last commit that is old enough, and keep its version
        and all younger ones. Commits of others only make that more cautious.
        """
        parameters = self._parameters
        least = min(parameters.least_kept_seconds, parameters.kept_version_seconds)
        kept = least if name in UNPINNED else parameters.kept_version_seconds
        now = self._now()
        with self._counting:
            upkeep = self._upkeep[name]
            begun = upkeep.begun
            while len(begun) > 1 and begun[1] <= now - (least if len(begun) > parameters.kept_versions else kept):
                begun.popleft()
            old = now - (least if len(begun) >= parameters.kept_versions else kept)
            oldest = begun[0] if begun and begun[0] <= old else None
        # optimise reads the clock again when it is done
        margin = max(least / 2, kept / 3 if upkeep.seconds is None else 2 * upkeep.seconds)
        return NEVER if oldest is None else now - oldest + margin


def _born(table: Table) -> float:
    """When the newest version of the table was made, by the wall clock."""
    newest: datetime = max(version["timestamp"] for version in table.list_versions())
    return newest.timestamp()


def _unindexed_rows(table: Table) -> int:
    """Rows that the least complete index of the table does not know."""
    return max((index.num_unindexed_rows or 0 for index in table.list_indices()), default=0)


def _fragments(table: Table) -> int:
    statistics: Any = table.stats()  # a dict, whatever its annotation says
    return int(statistics["fragment_stats"]["num_fragments"])


def _vector_indexes(table: Table) -> dict[str, int]:
    """The names of the vector indexes with how many segments each has."""
    return {index.name: index.num_segments or 1 for index in table.list_indices() if index.columns == ["vector"]}


def _size(index_name: str) -> int:
    return int(index_name.rpartition("_")[2])
