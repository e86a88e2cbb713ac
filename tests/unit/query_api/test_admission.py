"""Which searches run, wait, and are refused: by hand, with a clock that a test moves on."""

import asyncio

import pytest

from query_api.admission import FIRST_GUESS_SECONDS, SearchAdmission, SearchRefused, Turn


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def places(admission: SearchAdmission, caller: str, most: int = 1_000) -> list[Turn]:
    """Turns of this caller in the queue, until it is refused one."""
    taken: list[Turn] = []
    while len(taken) < most:
        turn = admission.turn(caller)
        try:
            turn.enqueue()
        except SearchRefused:
            return taken
        taken.append(turn)
    return taken


async def test_so_many_run_at_once_and_the_others_begin_in_the_order_they_came() -> None:
    admission = SearchAdmission(2, 10)
    turns = [admission.turn("a") for _ in range(4)]
    began: list[int] = []

    async def search(number: int) -> None:
        await turns[number].begin()
        began.append(number)

    searches = [asyncio.create_task(search(number)) for number in range(4)]
    await settled()
    assert (began, admission.running, admission.waiting) == ([0, 1], 2, 2)
    turns[1].end()
    await settled()
    assert (began, admission.running, admission.waiting) == ([0, 1, 2], 2, 1)
    turns[0].end()
    turns[0].end()  # a second end is none
    await asyncio.gather(*searches)
    assert (began, admission.running, admission.waiting) == ([0, 1, 2, 3], 2, 0)


async def test_the_queue_is_as_long_as_its_expected_wait() -> None:
    admission = SearchAdmission(4, 2.0)
    taken = places(admission, "a")
    # 4 run; each place in the queue is worth .1 s / 4 of waiting, and 2 s are allowed
    assert len(taken) == 4 + 80
    with pytest.raises(SearchRefused) as refused:
        admission.check("a")
    assert (refused.value.status, refused.value.reason) == (503, "overloaded")
    assert refused.value.headers["Retry-After"] == "3"  # 81 x .1 s / 4, rounded up
    assert admission.refused == {"overloaded": 2}


async def test_how_long_searches_took_tells_how_long_others_will_wait() -> None:
    clock = Clock()
    admission = SearchAdmission(1, 2.0, clock=clock)
    for _ in range(100):
        with admission.turn("a") as turn:
            await turn.begin()
            clock.now += 0.5
            turn.end(answered=True)
    assert admission.mean_seconds == pytest.approx(0.5, rel=1e-3)
    assert len(places(admission, "a")) == 1 + 4


async def test_a_search_that_was_not_answered_tells_nothing() -> None:
    clock = Clock()
    admission = SearchAdmission(1, 2.0, clock=clock)
    turn = admission.turn("a")
    await turn.begin()
    clock.now += 50
    turn.end()
    assert admission.mean_seconds == FIRST_GUESS_SECONDS


async def test_a_queue_that_turns_out_slower_than_expected_is_shortened_from_its_end() -> None:
    clock = Clock()
    admission = SearchAdmission(1, 2.0, clock=clock)
    taken = places(admission, "a")
    waiting = [asyncio.create_task(turn.begin()) for turn in taken]
    await settled()
    clock.now += 2.2  # of the first: the mean becomes .1 + .1 x 2.1 = .31 s
    taken[0].end(answered=True)
    results = await asyncio.gather(*(asyncio.wait_for(each, 1) for each in waiting[11:]), return_exceptions=True)
    assert len(taken) == 21
    assert all(isinstance(result, SearchRefused) for result in results)
    assert (admission.running, admission.waiting) == (1, 9)  # the last expects 9 x .31 s; 10 would be over 1.5 x 2 s
    for turn in taken:
        turn.end()
    await asyncio.gather(*waiting[:11], return_exceptions=True)
    assert (admission.running, admission.waiting) == (0, 0)


async def test_who_took_the_whole_queue_makes_room_for_others_up_to_equal_shares() -> None:
    admission = SearchAdmission(1, 2.0)
    greedy = places(admission, "greedy")
    waiting = [asyncio.create_task(turn.begin()) for turn in greedy]
    await settled()
    others = places(admission, "other")
    # 21 places: 11 are an equal share, rounded up
    assert len(others) == 10
    await settled()
    refused = [each.exception() for each in waiting if each.done() and each.exception() is not None]
    assert len(refused) == 10
    assert {(each.status, each.reason) for each in refused if isinstance(each, SearchRefused)} == {(429, "fair_share")}
    assert all(each.done() for each in waiting[11:])  # the newest
    for turn in (*greedy, *others):
        turn.end()
    await asyncio.gather(*waiting, return_exceptions=True)


async def test_one_who_holds_more_than_his_share_while_others_wait_is_told_so() -> None:
    admission = SearchAdmission(1, 2.0)
    few, many = places(admission, "few", 3), places(admission, "many")
    assert len(many) == 18
    with pytest.raises(SearchRefused) as refused:
        admission.check("many")
    assert (refused.value.status, refused.value.reason) == (429, "fair_share")
    admission.check("few")
    for turn in (*few, *many):
        turn.end()


async def test_a_client_that_leaves_the_queue_gives_its_place_back() -> None:
    admission = SearchAdmission(1, 2.0)
    running, leaving = places(admission, "a", 2)
    waiting = asyncio.create_task(leaving.begin())
    await settled()
    waiting.cancel()
    leaving.end()
    assert (admission.running, admission.waiting) == (1, 0)
    running.end()
    assert (admission.running, admission.waiting) == (0, 0)
    assert admission.expected_wait_seconds == 0


async def test_a_turn_that_never_was_in_the_queue_ends_without_effect() -> None:
    admission = SearchAdmission(1, 2.0)
    admission.turn("a").end()
    assert (admission.running, admission.waiting) == (0, 0)
