"""Versions that guard: which event of a document wins."""

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from schemas.ids import Position
from schemas.versioning import DocumentState, fold


@dataclass(frozen=True)
class Event:
    position: Position
    version: int | None = None
    deletes: bool = False
    timestamp_ms: int = 0


def at(offset: int, version: int | None = None, *, deletes: bool = False, partition: int = 0, at_ms: int = 0) -> Event:
    return Event(Position(partition, offset), version, deletes, at_ms)


def winner_of(*events: Event) -> Event | None:
    return fold(None, events, {}).winner


def test_without_versions_the_later_event_wins() -> None:
    assert winner_of(at(1), at(2)) == at(2)


def test_an_older_version_never_wins_however_late_it_arrives() -> None:
    folded = fold(None, [at(1, 5), at(2, 4)], {})
    assert folded.winner == at(1, 5)
    assert folded.superseded == (at(2, 4),)


def test_an_equal_version_wins_over_a_live_document_when_it_comes_later() -> None:
    assert winner_of(at(1, 5), at(2, 5)) == at(2, 5)


def test_an_upsert_that_arrives_after_its_tombstone_does_not_win() -> None:
    assert winner_of(at(1, 5, deletes=True), at(2, 5)) == at(1, 5, deletes=True)
    assert winner_of(at(1, 5, deletes=True), at(2, 6)) == at(2, 6)


def test_a_tombstone_without_a_version_keeps_the_floor() -> None:
    folded = fold(None, [at(1, 5), at(2, deletes=True), at(3, 5)], {})
    assert folded.winner == at(2, deletes=True)
    assert folded.state == DocumentState(Position(0, 2), 0, 5, deleted=True)


def test_an_upsert_without_a_version_keeps_the_floor_too() -> None:
    folded = fold(None, [at(1, 5), at(2), at(3, 4)], {})
    assert folded.winner == at(2)
    assert folded.state is not None
    assert folded.state.version == 5


def test_a_record_that_was_done_before_changes_nothing() -> None:
    held = DocumentState(Position(0, 7), 0, None, deleted=False)
    assert fold(held, [at(7)], {0: 7}).repeated == (at(7),)
    assert fold(held, [at(6)], {0: 7}).superseded == (at(6),)


def test_what_the_watermark_has_passed_and_did_not_win_then_does_not_win_later() -> None:
    assert fold(None, [at(5)], {0: 7}).superseded == (at(5),), "it became a dead letter, and a crash brought it again"
    assert fold(DocumentState(at(3).position, 0, None, deleted=False), [at(5)], {0: 7}).winner is None
    assert fold(None, [at(8)], {0: 7}).winner == at(8)


def test_a_record_held_above_the_watermark_is_done_again() -> None:
    held = DocumentState(Position(0, 7), 0, None, deleted=False)
    assert fold(held, [at(7)], {0: 6}).winner == at(7)


def test_across_partitions_the_record_time_decides_and_then_the_partition() -> None:
    assert winner_of(at(9, at_ms=10), at(1, partition=1, at_ms=9)) == at(9, at_ms=10)
    assert winner_of(at(9, at_ms=10), at(1, partition=1, at_ms=10)) == at(1, partition=1, at_ms=10)


versions = st.none() | st.integers(0, 4)
histories = st.lists(st.tuples(versions, st.booleans()), min_size=1, max_size=12).map(
    lambda made: [at(offset, version, deletes=deletes) for offset, (version, deletes) in enumerate(made)]
)


batches = st.lists(st.tuples(st.integers(1, 6), st.booleans()), max_size=8)


@given(histories, batches)
def test_any_cut_into_batches_and_any_repetition_leaves_the_same_state(
    history: list[Event], cuts: list[tuple[int, bool]]
) -> None:
    whole = fold(None, history, {}).state
    state: DocumentState | None = None
    done = -1  # the watermark: what lies above it is read again after a crash
    for size, crashes in [*cuts, (len(history), False)]:
        batch = history[done + 1 : done + 1 + size]
        state = fold(state, batch, {0: done}).state
        if not crashes:
            done += len(batch)
    assert done == len(history) - 1
    assert state == whole
    assert fold(state, history, {0: done}).winner is None


@given(histories)
def test_every_event_ends_in_one_place(history: list[Event]) -> None:
    folded = fold(None, history, {})
    ended = [*folded.superseded, *folded.repeated, *([folded.winner] if folded.winner else [])]
    assert sorted(event.position for event in ended) == [event.position for event in history]
