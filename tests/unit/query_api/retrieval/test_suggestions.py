"""What a query may have meant: the nearest word of the collection for one that it lacks."""

from concurrent.futures import Executor

import pytest

from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import ask

PAGES = [
    Page("locks", "Locks", [["Navigation through the lock at Zürich needs a permit. The lock keeper keeps a ledger."]]),
    Page("fish", "Fish ladders", [["Salmon climb the ladder; Tschaikowskaja counted them. A ladder needs water."]]),
    Page("ru", "Шлюзы", [["Навигация начинается весной, навигация кончается осенью."]]),
    Page("code", "Code", [["The variable lockkeeper holds LOCKS42."]]),
    Page("other", "Other", [["Submarine cables lie here."]], collection="sea"),
]


@pytest.mark.parametrize("mode", ["hybrid", "keyword"])
@pytest.mark.parametrize(
    ("query", "suggestion"),
    [
        ("navigaton permit", "Navigation permit"),
        ("who counted the samlon?", "who counted the Salmon?"),
        ('"salmom" -water', '"Salmon" -water'),
        ("permit in Zurihc", "permit in Zürich"),
        ("навгиация весной", "навигация весной"),
        ("laddder navigatoin", "ladder Navigation"),
        ("salmon", None),
        ("salmons navigating", None),
        ("lcok", None),  # short
        ("SALMOM", None),
        ("salmom42 salmom.py nav_igaton", None),
        ("zebra crossings", None),
        ("submarin", None),  # of another collection
        ("salmon -navigaton", None),
    ],
)
async def test_a_word_that_is_not_there_has_the_nearest_that_is(
    executor: Executor, query: str, suggestion: str | None, mode: str
) -> None:
    answer = await ask(world(PAGES), executor, query, mode=mode, collection="wiki")
    assert answer.done.suggestion == suggestion
    assert answer.parts[0].query == query


async def test_two_errors_are_seen_in_long_words_of_what_was_found(executor: Executor) -> None:
    assert (await ask(world(PAGES), executor, "ladder Tschaikovskaya")).done.suggestion == "ladder Tschaikowskaja"
