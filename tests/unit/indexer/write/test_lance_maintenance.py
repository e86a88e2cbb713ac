"""When tables are optimised, how much time may go into it, and which versions must stay for readers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from indexer.errors import TransientStoreError
from indexer.schema import CHUNKS, DOCUMENTS, PASSAGES, POSITIONS, RETRIEVALS
from indexer.write.lance_maintenance import NEVER, Maintainer, MaintenanceParameters


@dataclass
class FakeIndex:
    name: str
    columns: list[str]
    num_unindexed_rows: int = 0
    num_segments: int = 1


@dataclass
class FakeTable:
    """A table that notes what is done to it; optimising takes `seconds` of the clock."""

    pass_time: Callable[[float], None]
    rows: int = 0
    seconds: float = 0.0
    fragments: int = 3
    indexes: list[FakeIndex] = field(default_factory=lambda: [FakeIndex("key_idx", ["key"])])
    cleaned: list[float] = field(default_factory=list)
    fail: list[Exception] = field(default_factory=list)

    born: float = 0.0
    version: int = 1
    schema = pa.schema([("key", pa.string())])

    def checkout_latest(self) -> None: ...

    def list_versions(self) -> list[dict[str, Any]]:
        return [{"timestamp": datetime.fromtimestamp(each)} for each in (self.born - 60, self.born)]  # noqa: DTZ006 -- as LanceDB tells it

    def count_rows(self) -> int:
        return self.rows

    def list_indices(self) -> list[FakeIndex]:
        return self.indexes

    def stats(self) -> dict[str, Any]:
        return {"fragment_stats": {"num_fragments": self.fragments}}

    def optimize(self, cleanup_older_than: timedelta) -> None:
        self.pass_time(self.seconds)
        if self.fail:
            raise self.fail.pop()
        self.cleaned.append(cleanup_older_than.total_seconds())
        self.version += self.fragments > 1
        self.fragments = 1
        for index in self.indexes:
            index.num_unindexed_rows = 0

    def create_index(self, column: str, config: Any, name: str) -> None:
        assert (config.distance_type, config.num_partitions) == ("cosine", None)
        self.indexes = [index for index in self.indexes if index.name != name] + [FakeIndex(name, [column])]

    def drop_index(self, name: str) -> None:
        self.indexes = [index for index in self.indexes if index.name != name]


class World:
    """Five fake tables, a clock that advances by call, and the maintainer."""

    def __init__(self, **parameters: Any) -> None:
        self.clock = 1_000_000.0
        self.opened = 0
        names = (CHUNKS, PASSAGES, DOCUMENTS, POSITIONS, RETRIEVALS)
        self.tables = {name: FakeTable(self.pass_time, born=self.clock) for name in names}
        self.maintainer = Maintainer(
            self.open_tables,
            MaintenanceParameters(**parameters),
            now=lambda: self.clock,
            stopwatch=lambda: self.clock,
        )

    def open_tables(self) -> dict[str, FakeTable]:
        self.opened += 1
        return self.tables

    def pass_time(self, seconds: float) -> None:
        self.clock += seconds

    def commit(self, table: str, times: int = 1) -> None:
        for _ in range(times):
            with self.maintainer.committing(table):
                pass

    def has_unindexed(self, table: str, rows: int) -> None:
        self.tables[table].indexes[0].num_unindexed_rows = rows


def test_nothing_is_done_while_nothing_is_needed() -> None:
    world = World(commits=5)
    world.commit(CHUNKS, 4)
    report = world.maintainer.maintain()
    assert (report.optimised, report.indexed) == ((), ())
    assert report.fragments[CHUNKS] == 3


def test_the_neediest_table_comes_first_and_one_at_a_time() -> None:
    world = World(commits=5)
    world.commit(CHUNKS, 6)
    world.commit(DOCUMENTS, 9)
    assert [world.maintainer.maintain().optimised for _ in range(3)] == [(DOCUMENTS,), (CHUNKS,), ()]


def test_many_fragments_are_made_one() -> None:
    world = World(fragments=24)
    world.tables[DOCUMENTS].fragments = 23
    assert world.maintainer.maintain().optimised == ()
    world.tables[DOCUMENTS].fragments = 24
    report = world.maintainer.maintain()
    assert report.optimised == (DOCUMENTS,)
    assert report.fragments[DOCUMENTS] == 1


@pytest.mark.parametrize(
    ("table", "rows", "unindexed", "due"),
    [
        (CHUNKS, 5_000, 1_999, False),
        (CHUNKS, 5_000, 2_000, True),
        (CHUNKS, 1_000_000, 19_999, False),
        (CHUNKS, 1_000_000, 20_000, True),
    ],
)
def test_rows_outside_the_indexes_are_bounded_by_number_and_by_share(
    table: str, rows: int, unindexed: int, due: bool
) -> None:
    world = World(vector_index_rows=10**9)
    world.tables[table].rows = rows
    world.has_unindexed(table, unindexed)
    assert world.maintainer.maintain().optimised == ((table,) if due else ())


def test_during_a_load_more_rows_may_wait_for_the_indexes() -> None:
    world = World(unindexed_rows_of_load=8_000, load_seconds=15.0, idle_seconds=2.0)
    world.commit(CHUNKS)
    world.has_unindexed(CHUNKS, 7_999)
    world.pass_time(5.0)
    assert world.maintainer.maintain().optimised == ()
    world.pass_time(10.0)
    assert world.maintainer.maintain().optimised == (CHUNKS,)
    world.commit(CHUNKS)
    world.has_unindexed(CHUNKS, 8_000)
    world.pass_time(100.0)
    world.commit(CHUNKS)
    assert world.maintainer.maintain().optimised == (CHUNKS,)


def test_maintenance_takes_its_share_of_the_time_while_commits_keep_coming() -> None:
    world = World(commits=1, busy_share=0.05)
    world.tables[CHUNKS].seconds = 3.0
    world.commit(CHUNKS)
    assert world.maintainer.maintain().optimised == (CHUNKS,)
    world.pass_time(56.0)  # 3 seconds are 5 % of 60
    world.commit(CHUNKS)
    world.pass_time(0.9)
    assert world.maintainer.maintain().optimised == ()
    world.pass_time(0.2)
    assert world.maintainer.maintain().optimised == (CHUNKS,)


def test_nobody_is_held_up_by_maintenance_when_no_commits_come() -> None:
    world = World(commits=1, busy_share=0.05, idle_seconds=2.0)
    world.tables[PASSAGES].seconds = 1.0
    world.commit(CHUNKS)
    world.commit(PASSAGES, 2)
    assert world.maintainer.maintain().optimised == (PASSAGES,)
    world.commit(PASSAGES)
    assert world.maintainer.maintain().optimised == (CHUNKS,), "it need not rest for what another table took"
    assert world.maintainer.maintain().optimised == ()
    world.pass_time(2.0)
    assert world.maintainer.maintain().optimised == (PASSAGES,)


def test_work_undone_by_a_commit_is_done_again_while_the_writer_waits() -> None:
    world = World(commits=1)
    world.tables[CHUNKS].fail = [RuntimeError("commit conflict")]
    world.commit(CHUNKS)
    assert world.maintainer.maintain().optimised == (CHUNKS,)
    assert len(world.tables[CHUNKS].cleaned) == 1


def test_work_that_keeps_failing_is_told_stays_due_and_rests_in_between() -> None:
    world = World(commits=1, busy_share=0.5)
    world.tables[CHUNKS].fail = [OSError("disk full"), OSError("disk full")]
    world.tables[CHUNKS].seconds = 1.0
    world.commit(CHUNKS)
    with pytest.raises(TransientStoreError, match="disk full"):
        world.maintainer.maintain()
    assert world.maintainer.maintain().optimised == ()
    world.pass_time(10)
    assert world.maintainer.maintain().optimised == (CHUNKS,)


def test_the_vector_index_has_as_many_partitions_as_rows_in_each_and_grows_with_the_table() -> None:
    world = World(vector_index_rows=10_000, vector_index_growth=4.0)
    chunks = world.tables[CHUNKS]
    seen = []
    for chunks.rows in (9_999, 10_000, 39_999, 40_000, 1_000_000):
        world.maintainer.maintain()
        seen.append([index.name for index in chunks.indexes if index.columns == ["vector"]])
    assert seen == [[], ["vector_100"], ["vector_100"], ["vector_200"], ["vector_1000"]]


def test_a_vector_index_in_many_segments_is_made_again() -> None:
    world = World(vector_index_rows=10_000, vector_index_segments=3)
    chunks = world.tables[CHUNKS]
    chunks.rows = 10_000
    assert world.maintainer.maintain().indexed == (CHUNKS,)
    for chunks.indexes[-1].num_segments, again in ((3, ()), (4, (CHUNKS,))):
        world.pass_time(1e6)
        assert world.maintainer.maintain().indexed == again


def test_versions_stay_until_their_successor_is_old_enough() -> None:
    world = World(commits=3, kept_version_seconds=900.0, busy_share=1e9)
    world.commit(CHUNKS)  # the newest version for an hour: a reader may have opened it a moment ago
    world.pass_time(3_600)
    world.commit(CHUNKS, 2)
    world.maintainer.maintain()
    world.pass_time(901)
    world.commit(CHUNKS, 3)
    world.maintainer.maintain()
    an_hour_ago, fifteen_minutes_ago = world.tables[CHUNKS].cleaned
    assert an_hour_ago == 3_600 + 300
    assert fifteen_minutes_ago == 901 + 10, "the margin is no longer a guess"


def test_nothing_is_cleaned_before_the_writer_knows_how_old_versions_are() -> None:
    world = World(commits=1)
    world.commit(CHUNKS)
    world.maintainer.maintain()
    assert world.tables[CHUNKS].cleaned == [NEVER]


def test_versions_of_tables_that_readers_copy_go_within_minutes() -> None:
    world = World(commits=2)
    world.commit(POSITIONS)
    world.pass_time(100)
    world.commit(POSITIONS)
    world.maintainer.maintain()
    assert world.tables[POSITIONS].cleaned == [100 + 10]


def test_while_commits_keep_coming_no_more_versions_stay_than_a_reader_can_still_be_at() -> None:
    world = World(commits=10, kept_versions=8, least_kept_seconds=30.0, kept_version_seconds=600.0, busy_share=1e9)
    for _ in range(100):
        world.pass_time(1.0)
        world.commit(CHUNKS)
        world.maintainer.maintain()
    last = world.tables[CHUNKS].cleaned[-1]
    assert 30 <= last <= 30 + 15 + 2, "the versions of the last 30 seconds and a margin"


def test_on_a_quiet_system_a_version_stays_as_long_as_a_cursor_may_last() -> None:
    world = World(commits=2, kept_versions=8, least_kept_seconds=30.0, kept_version_seconds=600.0, busy_share=1e9)
    for _ in range(9):
        world.pass_time(100.0)
        world.commit(CHUNKS)
        world.maintainer.maintain()
    assert world.tables[CHUNKS].cleaned[-1] >= 600


def test_the_margin_is_twice_what_the_last_optimising_took() -> None:
    world = World(commits=1, kept_versions=1, least_kept_seconds=30.0, busy_share=1e9)
    world.tables[CHUNKS].seconds = 20.0
    world.commit(CHUNKS)
    world.maintainer.maintain()
    world.pass_time(100.0)
    world.commit(CHUNKS)
    world.maintainer.maintain()
    assert world.tables[CHUNKS].cleaned[-1] == 20.0 + 100.0 + 2 * 20.0


def test_tables_are_opened_afresh_now_and_then_so_that_caches_stay_small() -> None:
    world = World(commits=1, busy_share=1e9)
    for _ in range(100):
        world.commit(CHUNKS)
        assert world.maintainer.maintain().optimised == (CHUNKS,)
    assert world.opened == 1 + 4


def test_what_a_load_replaced_goes_once_the_tables_are_quiet_and_then_nothing_is_done() -> None:
    world = World(kept_version_seconds=900.0)
    world.commit(CHUNKS, 5)
    done = []
    for _ in range(60):
        world.pass_time(100)
        done += world.maintainer.maintain().optimised
    assert {name: done.count(name) for name in world.tables} == dict.fromkeys(world.tables, 3)
    assert world.tables[CHUNKS].cleaned[0] < 1_900, "all but what the last commit left is older"
    world.commit(CHUNKS)
    world.pass_time(901)
    assert world.maintainer.maintain().optimised == (CHUNKS,)


def test_after_a_restart_the_version_that_was_the_newest_until_then_stays() -> None:
    """It was made 5,000 seconds before; a reader may have opened it a moment before the first commit."""
    world = World(kept_version_seconds=900.0, commits=1)
    for table in world.tables.values():
        table.born, table.fragments = world.clock - 5_000, 1
    for _ in range(20):
        world.maintainer.maintain()
    world.pass_time(2_000)
    world.commit(CHUNKS)
    assert world.maintainer.maintain().optimised == (CHUNKS,)
    assert len(world.tables[CHUNKS].cleaned) == 4
    assert world.tables[CHUNKS].cleaned[-1] >= 5_000 + 2_000, "nothing as young as that version is removed"
