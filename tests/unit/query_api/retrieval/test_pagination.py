"""Pages by cursor: cursors, and the snapshots kept for them."""

from dataclasses import replace

from query_api.index.search_snapshot import Snapshot
from query_api.retrieval.cache import answer_key, question_digest
from query_api.retrieval.pagination import Cursor, PinnedSnapshots
from schemas.search import SearchRequest
from tests.support.fakes.text_stores import InMemoryText, WordCounts, world

CURSOR = Cursor("a-snapshot", "a-question", 40)


def test_a_question_is_the_same_whatever_page_of_it_and_however_fresh_or_answered() -> None:
    first = SearchRequest(q="the river", collection="a")
    same = {"k": 3, "offset": 20, "after": "0:7", "wait_seconds": 1, "cache": False, "answer": True, "answer_words": 90}
    assert question_digest(first.model_copy(update=same)) == question_digest(first)
    for other in ({"q": "the River"}, {"collection": None}, {"mode": "graph"}, {"group": "chunk"}):
        assert question_digest(first.model_copy(update=other)) != question_digest(first)


def test_what_is_kept_of_a_question_is_kept_with_its_answer() -> None:
    asked = [{}, {"answer": True}, {"answer": True, "answer_words": 90}, {"answer": True, "answer_sentences": 2}]
    keys = {answer_key(SearchRequest(q="the river", **each), snapshot(1)) for each in asked}
    assert len(keys) == len(asked)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


def snapshot(version: int) -> Snapshot:
    return replace(world([])[0], text=InMemoryText({}, WordCounts({}), table_versions={"chunks": version}))


def pinned_with(clock: Clock, most: int = 2, seconds: float = 10.0) -> PinnedSnapshots:
    return PinnedSnapshots(most, seconds, clock)


def name_of(pinned: PinnedSnapshots, version: int) -> str:
    name = pinned.pin(snapshot(version), was_current=True)
    assert name is not None
    return name


def test_a_snapshot_is_found_until_its_time_is_over_which_turning_pages_does_not_prolong() -> None:
    clock = Clock()
    pinned = pinned_with(clock)
    held = snapshot(1)
    name = pinned.pin(held, was_current=True)
    clock.now = 9
    assert pinned.find(name or "") is held
    assert pinned.pin(held, was_current=False) == name
    clock.now = 11
    assert pinned.find(name or "") is None
    assert pinned.pin(held, was_current=False) is None
    assert len(pinned) == 0


def test_a_snapshot_that_is_still_the_current_one_is_pinned_longer_under_its_name() -> None:
    clock = Clock()
    pinned = pinned_with(clock)
    name = name_of(pinned, 1)
    clock.now = 9
    assert name_of(pinned, 1) == name
    clock.now = 18
    assert pinned.find(name) is not None


def test_of_too_many_those_go_first_whose_next_page_nobody_asked_for() -> None:
    pinned = pinned_with(Clock())
    turned, idle = name_of(pinned, 1), name_of(pinned, 2)
    pinned.find(turned)
    third = name_of(pinned, 3)
    assert pinned.find(idle) is None
    pinned.find(third)
    newest = name_of(pinned, 4)
    assert [pinned.find(name) is not None for name in (turned, third, newest)] == [False, True, True]


def test_none_is_pinned_where_none_may_be() -> None:
    assert pinned_with(Clock(), most=0).pin(snapshot(1), was_current=True) is None
