"""The service's re-ranker: before it is loaded, while it is away, and when it gives what is no score."""

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from query_api.rerankers import Reranker, RerankerFailure, RerankerRefused, RerankerUnavailable, TextsNotScored
from query_api.rerankers.reranker import ServedReranker
from query_api.settings import RerankerSettings
from tests.support.fakes.reranker import StubReranker, served
from tests.support.waiting import eventually

SETTINGS = RerankerSettings(provider="cross-encoder", model="stub")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def stub() -> StubReranker:
    return StubReranker()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def reranker(stub: StubReranker, clock: Clock) -> AsyncIterator[ServedReranker]:
    made = ServedReranker(SETTINGS, lambda _: stub, reset_seconds=5.0, clock=clock)
    made.load()
    yield made
    made.close()


async def test_until_it_is_loaded_it_says_so(stub: StubReranker) -> None:
    reranker = served(stub, loaded=False)
    assert reranker.name is None
    with pytest.raises(RerankerUnavailable, match="being loaded"):
        await reranker.scores("a b", ["a"])
    reranker.load()
    assert (await reranker.scores("a b", ["a b", "c"])).tolist() == [2.0, 0.0]
    assert (reranker.name, reranker.problem) == ("stub", None)
    reranker.close()
    assert stub.closed


async def test_one_that_cannot_be_loaded_says_why_for_good() -> None:
    def load(_: RerankerSettings) -> Reranker:
        raise RerankerRefused("There is no such model.")

    reranker = ServedReranker(SETTINGS, load)
    reranker.load()
    with pytest.raises(RerankerFailure, match="There is no such model"):
        await reranker.scores("a", ["a"])
    reranker.close()


async def test_one_that_is_away_is_asked_again_once_it_has_rested(
    reranker: ServedReranker, stub: StubReranker, clock: Clock
) -> None:
    stub.failure = RerankerUnavailable("It is away.")
    for _ in range(3):
        with pytest.raises(RerankerUnavailable, match="It is away"):
            await reranker.scores("a", ["a"])
    assert len(stub.asked) == 1
    assert reranker.problem == "It is away."
    clock.now, stub.failure = 5.0, None
    assert (await reranker.scores("a", ["a"])).tolist() == [1.0]
    assert reranker.problem is None


async def test_one_that_said_when_is_not_asked_before_but_within_five_minutes(
    reranker: ServedReranker, stub: StubReranker, clock: Clock
) -> None:
    stub.failure = RerankerUnavailable("It is busy.", 3_600.0)
    for now, asked in ((0.0, 1), (299.0, 1), (300.0, 2)):
        clock.now = now
        with pytest.raises(RerankerUnavailable):
            await reranker.scores("a", ["a"])
        assert len(stub.asked) == asked


async def test_texts_that_are_not_scored_are_no_reason_to_rest(reranker: ServedReranker, stub: StubReranker) -> None:
    stub.failure = TextsNotScored("Too long.")
    with pytest.raises(TextsNotScored):
        await reranker.scores("a", ["a"])
    stub.failure = None
    assert (await reranker.scores("a", ["a"])).tolist() == [1.0]


@pytest.mark.parametrize("score", [float("nan"), float("inf"), None, "high", [0.1, 0.2]], ids=repr)
async def test_what_is_no_number_is_no_score(reranker: ServedReranker, stub: StubReranker, score: Any) -> None:
    stub.scored = lambda question, text: score
    with pytest.raises(TextsNotScored, match="a number for each of 2 texts"):
        await reranker.scores("a", ["a", "b"])


async def test_a_score_too_few_is_none_at_all(
    reranker: ServedReranker, stub: StubReranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stub, "scores", lambda question, texts: [1.0])
    with pytest.raises(TextsNotScored):
        await reranker.scores("a", ["a", "b"])


async def test_who_no_longer_waits_is_not_asked_for(reranker: ServedReranker, stub: StubReranker) -> None:
    stub.hold = threading.Event()
    first, second = (asyncio.ensure_future(reranker.scores(name, ["a"])) for name in ("first", "second"))
    await eventually(lambda: stub.asked)
    second.cancel()
    await asyncio.wait([second])
    stub.hold.set()
    await first
    await reranker.scores("third", ["a"])
    assert [question for question, _ in stub.asked] == ["first", "third"]
