"""When a snapshot is due; the clock advances by call."""

from collections.abc import Callable

import pytest

from streams.runtime.snapshot_schedule import SnapshotSchedule


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def schedule(clock: Clock, *, pending: bool = False, is_busy: Callable[[], bool] = lambda: False) -> SnapshotSchedule:
    return SnapshotSchedule(
        idle_seconds=1,
        min_seconds=5,
        max_seconds=300,
        share=0.05,
        is_pending=pending,
        is_busy=is_busy,
        clock=clock,
    )


def make(made: SnapshotSchedule, clock: Clock, took: float) -> None:
    token = made.begin()
    clock.now += took
    made.made(token)


def test_nothing_is_due_while_nothing_changed(clock: Clock) -> None:
    assert schedule(clock).due_in() is None


def test_a_change_is_due_when_it_has_been_quiet_for_a_moment(clock: Clock) -> None:
    made = schedule(clock)
    clock.now = 100
    made.changed()
    assert made.due_in() == 1
    clock.now += 1
    assert made.due_in() == 0
    make(made, clock, 0.01)
    assert made.due_in() is None


def test_while_changes_keep_coming_the_interval_grows_with_the_cost(clock: Clock) -> None:
    made = schedule(clock)
    made.changed()
    make(made, clock, took=2.0)
    for _ in range(40):
        clock.now += 1
        made.changed()
        assert made.due_in() != 0
    clock.now += 1
    made.changed()
    assert made.due_in() == 0


def test_while_documents_are_being_indexed_no_moment_is_quiet(clock: Clock) -> None:
    under_way = {"a load"}
    made = schedule(clock, is_busy=lambda: bool(under_way))
    made.changed()
    clock.now += 4
    assert made.due_in() == 1, "the least time between snapshots; a second of quiet is long over"
    under_way.clear()
    assert made.due_in() == 0


def test_after_a_burst_the_last_changes_need_not_wait_for_the_interval_of_busy_times(clock: Clock) -> None:
    made = schedule(clock)
    made.changed()
    make(made, clock, took=8.0)
    made.changed()
    clock.now += 31
    assert made.due_in() == 1
    clock.now += 1
    assert made.due_in() == 0


def test_the_interval_has_an_upper_bound(clock: Clock) -> None:
    made = schedule(clock)
    made.changed()
    make(made, clock, took=60.0)
    made.changed()
    clock.now += 300
    assert made.due_in() == 0


def test_a_change_during_a_snapshot_is_still_pending(clock: Clock) -> None:
    made = schedule(clock, pending=True)
    token = made.begin()
    made.changed()
    made.made(token)
    assert made.pending


async def test_waiting_ends_when_it_is_due() -> None:
    quick = SnapshotSchedule(idle_seconds=0.01, min_seconds=5, max_seconds=300, share=0.05, is_pending=False)
    quick.changed()
    await quick.until_due()
    assert quick.due_in() == 0
