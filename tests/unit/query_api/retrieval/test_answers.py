"""A search with `answer`: the answer's frames stand between the hits and the end, which has the whole of it."""

from concurrent.futures import Executor

import pytest
from pydantic import ValidationError

from schemas.answers import AnswerCitation, AnswerDelta
from schemas.frames import Done
from schemas.hits import Hit
from schemas.search import SearchRequest
from tests.support.fakes.text_stores import world
from tests.unit.query_api.retrieval.asking import PAGES, QUESTION, ask


async def test_the_answer_follows_the_hits(executor: Executor) -> None:
    found = await ask(world(PAGES), executor, QUESTION, answer=True)
    kinds = [type(part) for part in found.parts]
    last_hit = max(at for at, kind in enumerate(kinds) if kind is Hit)
    assert set(kinds[last_hit + 1 :]) <= {AnswerCitation, AnswerDelta, Done}
    answer = found.done.answer
    assert answer is not None
    assert "".join(part.text for part in found.parts if isinstance(part, AnswerDelta)) == answer.text
    assert "answer" in found.done.timings


async def test_hits_are_the_same_with_and_without(executor: Executor) -> None:
    made = world(PAGES)
    without = await ask(made, executor, QUESTION)
    assert (await ask(made, executor, QUESTION, answer=True)).hits == without.hits
    assert without.done.answer is None


@pytest.mark.parametrize(
    "wrong",
    [{"answer": True, "offset": 10}, {"answer": True, "cursor": "x"}, {"answer_sentences": 2}, {"answer_words": 9}],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SearchRequest.model_validate({"q": "where", **wrong})
