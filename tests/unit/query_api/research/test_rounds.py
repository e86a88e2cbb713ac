"""The rounds of a research, over searches that follow a script."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from query_api.admission import SearchRefused
from query_api.research import rounds as module
from query_api.research.investigation import ranked
from query_api.research.plan import plan_for
from query_api.research.rounds import Rounds
from schemas.answers import Answer, Citation
from schemas.hits import SearchAnswer, SnapshotInfo
from schemas.research import NOTE_URI, ResearchRequest, ResearchStep
from schemas.search import SearchRequest

SNAPSHOT = SnapshotInfo(generation="g", graph_position=1, table_versions={}, positions="0:1", as_of="2026-01-01")


def citation(number: int, title: str, text: str) -> Citation:
    return Citation(
        number=number, text=text, title=title, document_id=title, collection="a", chunk_id="c", passage_id="p", hit=1,
        section=[], start=hash(text) % 1000, end=1000,
    )  # fmt: skip


def answer(query: str, *sentences: tuple[str, str]) -> SearchAnswer:
    cited = [citation(at, *each) for at, each in enumerate(sentences, start=1)]
    made = Answer(text="…", citations=cited) if cited else Answer(text="", refused=True, reason="Nothing was found.")
    return SearchAnswer(
        retrieval_id=f"r_{query}", query=query, mode="hybrid", snapshot=SNAPSHOT, hits=[], timings={"total": 0.5},
        next_offset=None, answer=made,
    )  # fmt: skip


class Script:
    """Answers by the beginning of what is searched for."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self.answers = answers
        self.asked: list[SearchRequest] = []

    async def __call__(self, request: SearchRequest) -> SearchAnswer:
        self.asked.append(request)
        found = next((each for words, each in self.answers.items() if request.q.startswith(words)), [])
        if isinstance(found, Exception):
            raise found
        return answer(request.q, *found)


ALPHA = ("Alpha Film", "Alpha Film is a film that was directed by Jane Doe.")
JANE = ("Jane Doe", "Jane Doe saw the light in Lisbon.")
CREDITS = ("Credits of Jane Doe", "Its director is named first.")
QUESTION = "Where was the director of Alpha Film born?"


async def searched(
    search: Callable[[SearchRequest], Awaitable[SearchAnswer]], question: str = QUESTION, **more: Any
) -> tuple[Rounds, list[ResearchStep]]:
    rounds = Rounds(ResearchRequest(q=question, **more), plan_for(question), search, notes_left_out=True)
    return rounds, [step async for step in rounds.run()]


async def test_a_name_is_followed_with_what_its_sentence_leaves_open() -> None:
    script = Script({"Where": [CREDITS, ALPHA], "Credits": [], "Jane": [JANE]})
    rounds, steps = await searched(script)
    assert [each.q for each in script.asked] == [QUESTION, "Credits of Jane Doe Alpha Film born"]
    assert [(step.round, step.sentences, step.names) for step in steps] == [(1, 2, ["Credits of Jane Doe"]), (2, 0, [])]
    assert rounds.stopped == "nothing_new"
    assert rounds.open_words() == ["born"]
    assert all(each.filter == (f"uri!={NOTE_URI}",) and each.answer for each in script.asked)


async def test_sentences_of_something_else_are_left_out_of_a_search_that_follows_a_name() -> None:
    rounds, _ = await searched(Script({"Where": [CREDITS], "Credits": [("Beta Film", "Nobody liked it.")]}))
    assert [len(each.citations) for each in rounds.found] == [1, 0]


async def test_it_ends_once_every_word_is_held() -> None:
    script = Script({"Where": [ALPHA, ("Jane Doe", "The director Jane Doe was born in Lisbon.")]})
    rounds, steps = await searched(script)
    assert (rounds.stopped, len(steps)) == ("complete", 1)


async def test_what_nothing_answers_is_asked_once_more_through_the_graph() -> None:
    script = Script({})
    rounds, _ = await searched(script, rounds=4)
    assert [each.graph_method for each in script.asked] == ["hop", "pagerank"]
    assert (rounds.stopped, [each.query.text for each in rounds.unanswered()][:1]) == ("nothing_new", [QUESTION])


async def test_rounds_and_searches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 0

    async def ever_more(request: SearchRequest) -> SearchAnswer:
        nonlocal count
        count += 1
        name = request.q.split(" zebra")[0]
        return answer(request.q, (f"Name{count}", f"{name} knows Name{count}."))

    rounds, steps = await searched(ever_more, "Which zebra?", rounds=2)
    assert (rounds.stopped, max(step.round for step in steps)) == ("rounds", 2)
    monkeypatch.setattr(module, "SEARCHES", 3)
    rounds, steps = await searched(ever_more, "Which zebra?", rounds=4)
    assert (rounds.stopped, len(steps)) == ("searches", 3)


async def test_a_slow_search_ends_it_and_a_later_refusal_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = SearchRefused("overloaded", 1.0)
    rounds, steps = await searched(Script({"Where": [CREDITS], "Credits": refusal}))
    assert (rounds.stopped, len(rounds.found), steps[-1].detail) == ("failed", 1, refusal.detail)
    with pytest.raises(SearchRefused):
        await searched(Script({"Where": refusal}))

    answered: list[str] = []

    async def forever(request: SearchRequest) -> SearchAnswer:
        if request.q not in answered:
            await asyncio.Event().wait()
        return answer(request.q, CREDITS)

    monkeypatch.setattr(module, "SECONDS", 0.05)
    for found in (0, 1):
        rounds, steps = await searched(forever)
        assert (rounds.stopped, len(rounds.found)) == ("seconds", found)
        assert steps[-1].detail == "It was not answered in time."
        answered.append(QUESTION)


async def test_the_first_sentence_of_each_search_comes_before_the_second_of_any() -> None:
    script = Script({"Where": [CREDITS, ALPHA], "Credits": [("Credits of Jane Doe", "The end.")]})
    rounds, _ = await searched(script)
    [(first, cited), (second, _)] = ranked(rounds.found, 2)
    assert (first.heading, first.citations, cited[0].text) == (QUESTION, [1], CREDITS[1])
    assert (second.heading, second.citations) == ("Credits of Jane Doe", [2])
