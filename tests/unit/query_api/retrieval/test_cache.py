"""The cache of results: within its number, age and size, and honest about how often it helped."""

import tracemalloc
from datetime import date

import pytest

from query_api.retrieval.cache import AnswerKey, ResultCache, SnapshotIdentity, replay_answer
from schemas.frames import Done, Meta, SearchFrame
from schemas.hits import Hit, HitPassage, SnapshotInfo
from tests.support.fakes.engine import make_hit

INFO = SnapshotInfo(generation="g0001", graph_position=1, table_versions={}, positions="0:7", as_of="now")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def key(question: str, version: int = 1) -> AnswerKey:
    return AnswerKey(SnapshotIdentity("g0001", 1, 1, (("chunks", version),)), question, 0, 10, date(2026, 1, 1))


def answer(text: str = "The river is high.") -> list[SearchFrame]:
    meta = Meta(retrieval_id="r_1", query="q", mode="hybrid", collection=None, snapshot=INFO, budget_seconds=1)
    done = Done(retrieval_id="r_1", hits=1, timings={"vector": 0.5, "total": 1.0}, next_offset=1, next_cursor="once")
    return [meta, make_hit(1, text), done]


def test_an_answer_is_kept_for_its_question_to_its_snapshot() -> None:
    cache = ResultCache(10, 60, 10**6, Clock())
    kept = answer()
    cache.put(key("a"), kept)
    assert cache.get(key("a")) == tuple(kept)
    assert cache.get(key("b")) is None
    assert cache.get(key("a", version=2)) is None
    told = cache.statistics()
    assert (told.entries, told.hits, told.misses, told.evictions) == (1, 1, 2, 0)
    assert 6_000 < told.bytes < 8_000


def test_too_many_make_the_longest_unused_go() -> None:
    cache = ResultCache(2, 60, 10**6, Clock())
    cache.put(key("a"), answer())
    cache.put(key("b"), answer())
    cache.get(key("a"))
    cache.put(key("c"), answer())
    assert [cache.get(key(name)) is not None for name in "abc"] == [True, False, True]
    assert cache.statistics().evictions == 1


def test_too_much_makes_room_and_what_is_larger_than_all_is_not_taken() -> None:
    cache = ResultCache(10, 60, 20_000, Clock())
    cache.put(key("a"), answer("x" * 3_000))
    cache.put(key("b"), answer("x" * 3_000))
    cache.put(key("huge"), answer("x" * 9_000))
    assert [cache.get(key(name)) is not None for name in ("a", "b", "huge")] == [False, True, False]


def test_an_answer_grows_old() -> None:
    clock = Clock()
    cache = ResultCache(10, 60, 10**6, clock)
    cache.put(key("a"), answer())
    clock.now = 61
    assert cache.get(key("a")) is None
    assert cache.statistics().entries == 0


@pytest.mark.parametrize("passages", [0, 2])
def test_cache_takes_the_memory_that_it_states_and_gives_it_back(passages: int) -> None:
    clock = Clock()
    cache = ResultCache(100, 60, 10**8, clock)
    scores = {f"channel{number}": number / 7 for number in range(8)}
    parts = {f"part{number}": number for number in range(10)}
    texts = {"text": "river " * 50, "parent_text": "water " * 230}
    marks = {"highlights": [{"start": 0, "end": 5}] * 4, "answer": {"start": 0, "end": 9}}
    further = HitPassage.model_validate(make_hit(2, "river " * 50).model_dump() | marks)
    inside = {"passages": [further] * passages}
    hit = make_hit(1).model_copy(update={**texts, **inside, "scores": scores, "ranks": parts, "parts": parts})
    line = hit.model_dump_json(by_alias=True)
    tracemalloc.start()
    try:
        for number in range(20):
            cache.put(key(str(number)), [Hit.model_validate_json(line) for _ in range(50)])
        taken, _ = tracemalloc.get_traced_memory()
        assert 0.7 < cache.statistics().bytes / taken < 1.5
        clock.now = 61
        cache.prune()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 0.1 * taken


def test_it_can_be_cleared_and_turned_off() -> None:
    cache = ResultCache(10, 60, 10**6, Clock())
    cache.put(key("a"), answer())
    assert (cache.clear(), cache.clear()) == (1, 0)
    assert (cache.get(key("a")), cache.statistics().evictions) == (None, 0)
    off = ResultCache(0, 60, 10**6, Clock())
    off.put(key("a"), answer())
    assert off.get(key("a")) is None


async def test_a_kept_answer_is_told_under_a_new_id_without_the_times_and_the_cursor_of_the_old_one() -> None:
    meta, hit, done = [part async for part in replay_answer(answer(), "r_2")]
    assert isinstance(meta, Meta)
    assert isinstance(done, Done)
    assert (meta.retrieval_id, meta.cached, done.retrieval_id) == ("r_2", True, "r_2")
    assert hit == make_hit(1)
    assert (done.timings, done.next_cursor, done.next_offset) == ({}, None, 1)
