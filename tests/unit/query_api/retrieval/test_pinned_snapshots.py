"""Snapshots for cursors: kept for a while, a few of them, those whose pages are being turned the longest."""

from dataclasses import replace

from query_api.index.snapshot import Snapshot
from query_api.retrieval.pinned_snapshots import PinnedSnapshots
from tests.unit.query_api.in_memory_text import InMemoryText, WordCounts, world


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def snapshot(version: int) -> Snapshot:
    return replace(world([])[0], text=InMemoryText({}, WordCounts({}), table_versions={"chunks": version}))


def kept_with(clock: Clock, most: int = 2, seconds: float = 10.0) -> PinnedSnapshots:
    return PinnedSnapshots(most, seconds, clock)


def name_of(kept: PinnedSnapshots, version: int) -> str:
    name = kept.keep(snapshot(version), was_current=True)
    assert name is not None
    return name


def test_a_snapshot_is_found_until_its_time_is_over_which_turning_pages_does_not_prolong() -> None:
    clock = Clock()
    kept = kept_with(clock)
    held = snapshot(1)
    name = kept.keep(held, was_current=True)
    clock.now = 9
    assert kept.find(name or "") is held
    assert kept.keep(held, was_current=False) == name
    clock.now = 11
    assert kept.find(name or "") is None
    assert kept.keep(held, was_current=False) is None
    assert len(kept) == 0


def test_a_snapshot_that_is_still_the_current_one_is_kept_longer_under_its_name() -> None:
    clock = Clock()
    kept = kept_with(clock)
    name = name_of(kept, 1)
    clock.now = 9
    assert name_of(kept, 1) == name
    clock.now = 18
    assert kept.find(name) is not None


def test_of_too_many_those_go_first_whose_next_page_nobody_asked_for() -> None:
    kept = kept_with(Clock())
    turned, idle = name_of(kept, 1), name_of(kept, 2)
    kept.find(turned)
    third = name_of(kept, 3)
    assert kept.find(idle) is None
    kept.find(third)
    newest = name_of(kept, 4)
    assert [kept.find(name) is not None for name in (turned, third, newest)] == [False, True, True]


def test_none_is_kept_where_none_may_be() -> None:
    assert kept_with(Clock(), most=0).keep(snapshot(1), was_current=True) is None
