"""Collections and questions that no ranking is made for: an answer no worse than the vector channel's, and no error."""

from concurrent.futures import Executor

import pytest

from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import ask

SENTENCES = [
    "The ferry leaves the harbour at noon.",
    "Bread is baked before the town wakes.",
    "A glacier carves the valley slowly.",
    "The library lends maps of the coast.",
    "Wind turns the mill above the village.",
    "The orchard is pruned in winter.",
]
QUESTION = "Who lends maps of the coast?"


def titled(titles: list[str]) -> list[Page]:
    return [
        Page(str(at), title, [[text]], [title] if title else [])
        for at, (title, text) in enumerate(zip(titles, SENTENCES, strict=True))
    ]


ODD = {
    "the same title everywhere": titled(["Notes"] * 6),
    "a title that is a word of the question everywhere": titled(["Coast"] * 6),
    "numbers for titles": titled([str(number) for number in range(6)]),
    "no titles": titled([""] * 6),
    "one document": titled(["Library"] * 6)[3:4],
    "each text in every document": [Page(str(at), f"Volume {at}", [[text] for text in SENTENCES]) for at in range(4)],
}  # fmt: skip


@pytest.mark.parametrize("pages", ODD.values(), ids=ODD)
async def test_what_the_vector_channel_finds_first_stands_first(executor: Executor, pages: list[Page]) -> None:
    made = world(pages)
    vector = await ask(made, executor, q=QUESTION, mode="vector")
    hybrid = await ask(made, executor, q=QUESTION)
    assert hybrid.hits[0].passage_id == vector.hits[0].passage_id
    assert hybrid.done.failed_channels == {}


@pytest.mark.parametrize(
    "words", [["quay", "mole", "pier", "dock"], ["港湾", "码头", "渔船", "灯塔"]], ids=["English", "Chinese"]
)
async def test_documents_of_one_word_are_found_by_it(executor: Executor, words: list[str]) -> None:
    made = world([Page(word, word, [[word]]) for word in words])
    for word in words:
        answer = await ask(made, executor, q=word)
        assert answer.hits[0].document_id == word


@pytest.mark.parametrize("question", ["who was the of and", "town", "?", "the"])
async def test_a_question_that_says_little_is_answered_as_by_the_vector_channel(
    executor: Executor, question: str
) -> None:
    made = world(titled([f"Page {at}" for at in range(6)]))
    vector = await ask(made, executor, q=question, mode="vector")
    hybrid = await ask(made, executor, q=question)
    assert [hit.document_id for hit in hybrid.hits][:1] == [hit.document_id for hit in vector.hits][:1]
    assert hybrid.done.failed_channels == {}
