"""What people said and collections chose, as records of the curation topic tell it one after the other."""

import asyncio
import random

from kafka_client.topic_offsets import Span
from kafka_client.unreadable_batches import skip_none
from query_api.index.curation_follower import Curation, CurationFollower, PlacedEvent, applied, fold
from query_api.index.follower import FollowedRecord
from schemas.curation import LinkingChoice, encode_choice
from schemas.graph_edits import (
    AnyEdit,
    DecisionEdit,
    EditKind,
    EntityEdit,
    GraphEdit,
    MergeEdit,
    decision_id,
    edit_key,
)
from schemas.orders import REPAIR, Repair, order_key


async def test_the_newest_record_of_a_collection_counts_and_a_changed_choice_is_told_of_once() -> None:
    changes: list[dict[str, LinkingChoice]] = []
    choices = CurationFollower(
        "curation", lambda: None, lambda: changes.append(dict(choices.linking)), never, skip_none
    )

    async def comes(key: bytes, value: bytes | None) -> None:
        await choices._take([FollowedRecord(0, 0, key, value)])

    await comes(b"a/settings/linking", b'{"max_across":2}')
    await comes(b"a/settings/linking", b'{"max_across":2}')
    await comes(b"a/settings/linking", b'{"max_across":"many"}')
    await comes(b"a/settings/chunking", b'{"child_characters":300}')
    await comes(b"a/relink/1", b"{}")
    await comes(b"a/settings/linking", None)
    assert changes == [{"a": LinkingChoice(max_across=2)}, {}]


async def test_a_repair_is_told_when_it_is_done_and_not_those_of_before() -> None:
    repaired: list[str] = []
    follower = CurationFollower("curation", lambda: None, lambda: None, repaired.append, skip_none)
    assert follower._begin({0: Span(0, 2)}) == {0: 0}
    states = ["done", "ordered", "running", "done"]
    values = [encode_choice(Repair(generation="g0001", state=state)) for state in states]
    await follower._take(
        [FollowedRecord(0, 1 + at, order_key(REPAIR, "0123456789ab"), each) for at, each in enumerate(values)]
    )
    assert repaired == ["g0001"]


def never(generation: str) -> None:
    raise AssertionError(generation)


A, B, C = ("a" * 32, "b" * 32, "c" * 32)
HISTORY: list[tuple[EditKind, str, AnyEdit | None]] = [
    ("entity", C, EntityEdit(name="Sea")),
    ("entity", C, EntityEdit(name="The Sea")),
    ("merge", "gone", MergeEdit(entities=[B, C])),
    ("merge", "gone", None),
    ("merge", "m1", MergeEdit(entities=[A, B], name="Acme")),
    ("merge", "m2", MergeEdit(entities=[B, C])),
    ("entity", A, EntityEdit(name="ACME", type="organisation")),
    ("merge", "m2", None),  # undone after a later edit, which stays
    ("decision", decision_id([A, C]), DecisionEdit(decision="accept", entities=[A, C], by="ada")),
    ("decision", decision_id([A, C]), DecisionEdit(decision="reject", entities=[C, A], by="bob")),
    ("merge", "m3", MergeEdit(entities=[A, B])),
]


def placed(history: list[tuple[EditKind, str, AnyEdit | None]]) -> list[PlacedEvent]:
    return [PlacedEvent(at, GraphEdit("notes", *each)) for at, each in enumerate(history)]


def test_the_newest_record_of_each_key_counts_in_any_order_of_reading() -> None:
    events = placed(HISTORY)
    state = fold(events).of("notes")
    assert state.groups().members == {A: (A, B), B: (A, B)}
    assert (state.name_of([A, B]), state.type_of([A, B]), state.name_of([C])) == ("ACME", "organisation", "The Sea")
    chance = random.Random(1)
    for _ in range(10):
        chance.shuffle(events)
        assert fold(events + events[:4]) == fold(placed(HISTORY))
    compacted = [each for each in placed(HISTORY) if each.offset not in {0, 2, 3, 5, 7, 8}]
    assert fold(compacted) == fold(placed(HISTORY))


def test_one_event_after_the_other_gives_the_same_and_shares_what_it_does_not_touch() -> None:
    state = Curation()
    for at, event in enumerate(placed(HISTORY)):
        before, state = state, applied(state, [event])
        assert state == fold(placed(HISTORY)[: at + 1])
        if event.event.kind == "entity":
            assert state.of("notes").merges is before.of("notes").merges
    undone = [PlacedEvent(100 + at, event.event._replace(edit=None)) for at, event in enumerate(placed(HISTORY))]
    assert fold([*placed(HISTORY), *undone]) == Curation()


def test_two_peoples_opposite_decisions_leave_the_newer() -> None:
    for first, second, together in (("accept", "reject", False), ("reject", "accept", True)):
        decisions = [DecisionEdit(decision=each, entities=[A, B]) for each in (first, second)]
        state = fold(placed([("decision", decision_id([A, B]), each) for each in decisions])).of("notes")
        assert (A in state.groups([[A, B]]).members) == together


def test_a_rename_of_a_merge_goes_with_it() -> None:
    merged = HISTORY[4:5]
    assert fold(placed(merged)).of("notes").name_of([A, B, C]) == "Acme"
    assert fold(placed(merged)).of("notes").name_of([A, C]) is None
    assert fold(placed([*merged, ("merge", "m1", None)])).of("notes").name_of([A, B, C]) is None


async def test_edits_are_told_of_once_and_waited_for() -> None:
    changes: list[int] = []
    follower = CurationFollower("curation", lambda: None, lambda: changes.append(follower.reached), never, skip_none)
    follower._begin({0: Span(0, 1)})
    assert not follower.was_reached
    record = FollowedRecord(0, 0, edit_key("notes", "entity", A), encode_choice(EntityEdit(name="Petrel")))
    waiting = asyncio.create_task(follower.wait_for(0, 5))
    await asyncio.sleep(0)
    await follower._take([record])
    assert await waiting
    await follower._take([record])  # as after a reconnection
    await follower._take([FollowedRecord(0, 1, b"notes/node/!", b"{}")])
    assert await follower.wait_until_reached()
    assert (changes, follower.reached) == ([0], 1)
    assert list(follower.state.of("notes").entities) == [A]
    assert not await follower.wait_for(7, 0)


async def test_a_topic_that_was_made_again_begins_again() -> None:
    changes: list[int] = []
    follower = CurationFollower("curation", lambda: None, lambda: changes.append(follower.reached), never, skip_none)
    follower._begin({0: Span(0, 0)})
    old = FollowedRecord(0, 7, edit_key("notes", "entity", A), encode_choice(EntityEdit(name="Petrel")))
    await follower._take([old, FollowedRecord(0, 8, b"notes/settings/linking", b'{"max_across":2}')])
    follower._begin({0: Span(3, 9)})  # only a reconnection
    assert (list(follower.state.of("notes").entities), follower.reached) == ([A], 8)
    follower._begin({0: Span(0, 2)})
    assert (follower.state, follower.linking, follower.reached) == (Curation(), {}, -1)
    new = FollowedRecord(0, 1, edit_key("notes", "entity", B), encode_choice(EntityEdit(name="Heron")))
    await follower._take([new])
    assert list(follower.state.of("notes").entities) == [B]
    assert changes == [8, -1, 1]
