"""What is quoted stands together in each hit; what is excluded is in none."""

from concurrent.futures import Executor

import pytest

from query_api.retrieval.exact_phrases import AS_TEXT
from schemas.frames import Meta
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import Answer, ask

PAGES = [
    Page("order", "Order", [["The lamp burns before the fog signal sounds at dusk."]]),
    Page("other", "Other", [["The fog signal sounds before the lamp burns at dawn."]]),
    Page("lines", "Lines", [["At dusk the fog\nsignal-sounded, and nobody heard it in the Café."]]),
    Page("Fog signal sounds", "Fog signal sounds", [["A page about what is heard."], ["A second part of it."]]),
    Page("bare", "Bare", [["To be, or not to be, on a lamp."]]),
    Page("long", "Long", [["Nothing here of lamps."], ["The keeper says that fog signal sounds carry."]]),
]


def told(answer: Answer) -> tuple[str, ...]:
    meta = answer.parts[0]
    assert isinstance(meta, Meta)
    assert meta.understanding is not None
    return meta.understanding.phrases


def found(answer: Answer) -> set[str]:
    return {hit.document_id for hit in answer.hits}


SOUNDS = {"order", "other", "Fog signal sounds", "long"}


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('"lamp burns before the fog"', {"order"}),
        ("„Lamp burns, before the fog“", {"order"}),
        ("«fog signal sounds»", SOUNDS),
        ("「fog signal sounds」 keeper", SOUNDS),
        ('"fog signal sounds before"', {"other"}),
        ('"fog signal sounds" -dusk', {"other", "Fog signal sounds", "long"}),
        ('"fog signal sounds" -"before the lamp" -keeper', {"order", "Fog signal sounds"}),
        ('"fog SIGNAL sounded" -"cafe noir"', {"lines"}),
        ('"nobody heard it in the cafe"', {"lines"}),
        ('"to be or not to be"', {"bare"}),
        ('"keeper says" "nothing here"', {"long"}),
        ('"lamp burns" "nothing here"', set()),
        ('"the keeper\'s lamp"', set()),
        ("lamp -burns -long -nothing", {"bare"}),
    ],
)
async def test_phrases_stand_together_and_exclusions_are_left_out(
    executor: Executor, query: str, expected: set[str], mode: str
) -> None:
    answer = await ask(world(PAGES), executor, query, mode=mode)
    if "-" in query and '"' not in query and mode != "keyword":
        assert found(answer) >= expected
        assert found(answer).isdisjoint({"order", "other", "long"})
    else:
        assert found(answer) == expected
    assert answer.parts[0].query == query


async def test_hits_are_the_passages_that_hold_the_phrase(executor: Executor) -> None:
    answer = await ask(world(PAGES), executor, '"signal sounds carry"', group="document")
    assert [hit.text for hit in answer.hits] == ["The keeper says that fog signal sounds carry."]


async def test_a_question_may_quote_a_title(executor: Executor) -> None:
    answer = await ask(world(PAGES), executor, 'who heard "The Fog Signal Sounds"?')
    assert len(found(answer)) == len(PAGES)
    assert told(answer) == (AS_TEXT,)
    alone = await ask(world(PAGES), executor, 'who heard "The Fog Signal Sounds"?', mode="keyword")
    assert found(alone) == {"order", "other"}


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ('lamp "fog signal sounds"', ["Only what holds “fog signal sounds” was searched; documents: 4."]),
        ("lamp -dusk", ["What holds “dusk” was left out; documents: 2."]),
        ("lamp -keeper", ["What holds “keeper” was left out; documents: 1."]),
        ("-lamp", [AS_TEXT]),
        ('a 5" and a 6" lamp', []),
        ("lamp -5 --force - -rf", []),
        ('state-of-the-art "lamp', []),
    ],
)
async def test_what_was_done_is_told(executor: Executor, query: str, said: list[str]) -> None:
    answer = await ask(world(PAGES), executor, query)
    assert list(told(answer)) == said
    assert answer.hits
