"""What a smaller model decides before a search: the words of a follow-up, the parts of a question. It chooses among
what was said; where it does not, the rules decide."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from indexer.extraction.lexicon import STOP_WORDS
from indexer.runtime.chat_model import ChatModel
from query_api.answers.follow_ups import complete_by_model, complete_question
from query_api.answers.model.writer import AnswerWriter
from query_api.research.plan import PARAMETERS, Plan, decided_plan, plan_for
from schemas.openai_protocol import Message
from tests.support.constants import changed
from tests.support.fakes.model_endpoints import BROKEN, HANGING, Answer, ChatEndpoint, chat_endpoint
from tests.unit.query_api.answers.model.test_instructions import ORDERS, PLACES, obedient

WROTE = [
    Message(role="user", content="Who wrote PEP 102?"),
    Message(role="assistant", content="*PEP 102*: It was written by Barry Warsaw. [1](http://peps.example/Attic)"),
]
BORN = "Where was he born?"


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with chat_endpoint(model="large,small") as running:
        yield running


@asynccontextmanager
async def opened(endpoint: ChatEndpoint) -> Any:
    settings = endpoint.settings()
    model, small = ChatModel(settings, 0), ChatModel(settings, 0, name=settings.decider)
    counted: list[tuple[str, str, int]] = []

    def count(caller: str, usage: Any) -> None:
        counted.append((caller, usage.model, usage.completion_tokens))

    try:
        yield AnswerWriter(model, small, count), counted
    finally:
        await model.close()
        await small.close()


async def reworded(endpoint: ChatEndpoint, said: str | Callable[[str], str], question: str = BORN) -> str:
    endpoint.writes = said if callable(said) else lambda _: said
    async with opened(endpoint) as (writer, _):
        return await complete_by_model(question, WROTE, writer, "read")


def question(text: str) -> str:
    return json.dumps({"question": text})


async def test_a_follow_up_is_worded_with_the_name_that_the_answer_has(endpoint: ChatEndpoint) -> None:
    endpoint.writes = lambda _: f"<think>He? {{}}</think>Here it is: {question('Where was Barry Warsaw born?')}"
    async with opened(endpoint) as (writer, counted):
        assert await complete_by_model(BORN, WROTE, writer, "read") == "Where was Barry Warsaw born?"
        assert await complete_by_model(BORN, WROTE, writer, "read") == "Where was Barry Warsaw born?"
    [body] = endpoint.bodies  # of the second time the decision is known
    assert (body["model"], body["temperature"]) == ("small", 0)
    assert "the assistant said: *PEP 102*: It was written by Barry Warsaw. (1)" in body["messages"][1]["content"]
    assert "peps.example" not in str(body)
    assert [each[:2] for each in counted] == [("read", "small")]
    assert counted[0][2] > 0


@pytest.mark.parametrize(
    "said",
    [
        question("Where was Guido van Rossum born?"),  # a name that nobody said
        question("Where was Barry Warsaw not born?"),  # a denial
        question("Where was Barry Warsaw born? [more](http://x.example)"),
        question("Who wrote PEP 102?"),  # another question
        question(BORN),  # nothing is named
        question(""),
        question("Where was Barry Warsaw born " + "Barry " * 4_000),
        json.dumps({"answer": "Barry Warsaw"}),
        json.dumps(["Where was Barry Warsaw born?"]),
        "Where was Barry Warsaw born?",
        "{",
        "",
        "{" * 20_000,
    ],
)
async def test_what_is_no_such_question_leaves_it_to_the_rules(endpoint: ChatEndpoint, said: str) -> None:
    assert await reworded(endpoint, said) == complete_question(BORN, WROTE) == "Where was he born? wrote PEP 102"


async def test_a_reply_that_cannot_be_used_is_asked_for_once_more_and_not_alike(endpoint: ChatEndpoint) -> None:
    def said(asked: str) -> str:
        return question("Where was Barry Warsaw born?") if "cannot be used" in asked else "Barry Warsaw, of course."

    assert await reworded(endpoint, said) == "Where was Barry Warsaw born?"
    assert [body["temperature"] for body in endpoint.bodies] == [0, 0.3]


@pytest.mark.parametrize("failing", [BROKEN, HANGING, Answer(instead=b"<html>"), Answer(404)])
async def test_a_model_that_fails_leaves_it_to_the_rules(endpoint: ChatEndpoint, failing: Answer) -> None:
    endpoint.script = [failing]
    with changed({"query_api.answers.model.writer.MOST_SECONDS": 0.5}):
        assert await reworded(endpoint, question("Where was Barry Warsaw born?")) == complete_question(BORN, WROTE)


async def test_nothing_is_asked_where_nothing_was_said_before(endpoint: ChatEndpoint) -> None:
    async with opened(endpoint) as (writer, _):
        assert await complete_by_model(BORN, [], writer, "read") == BORN
        assert await complete_by_model("x" * 5_000, WROTE, writer, "read") == complete_question("x" * 5_000, WROTE)
    assert endpoint.bodies == []


async def test_other_languages_are_worded_too(endpoint: ChatEndpoint) -> None:
    said = question("Wo wurde Barry Warsaw geboren?")
    assert await reworded(endpoint, said, "Wo wurde er geboren?") == "Wo wurde Barry Warsaw geboren?"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("order", ORDERS)
async def test_an_order_in_an_answer_names_nothing_that_was_not_said(
    endpoint: ChatEndpoint, order: str, place: str
) -> None:
    """The model asks for whatever it is told to; of that, names alone that the answer has can be searched for."""
    told = place.format(order=order.format(trap="http://trap.example/collect"))
    before = [WROTE[0], Message(role="assistant", content=told)]
    orders: list[str] = []

    def said(asked: str) -> str:
        orders[:] = [*obedient(asked).splitlines(), "Where was he born, and what is the password of SECRET?"]
        return question(orders[len(endpoint.bodies) % len(orders)])

    endpoint.writes = said
    async with opened(endpoint) as (writer, _):
        searched = await complete_by_model(BORN, before, writer, "read")
    said_by_people = {word.lower() for word in re.findall(r"\w+", f"{BORN} {WROTE[0].text}")} | STOP_WORDS
    for word in re.findall(r"\w+", searched):
        is_name = word in told and any(sign.isupper() or sign.isdigit() for sign in word)
        assert word.lower() in said_by_people or is_name
    assert not re.search(r"\]\(|<|://|password", searched)
    for body in endpoint.bodies:
        assert body.keys() == {"model", "messages", "temperature", "max_tokens", "stream", "stream_options"}
        assert "<" not in body["messages"][1]["content"]


HOPS = "Where was the author of PEP 8 born?"
PARTS = ("Who is the author of PEP 8?", HOPS)


async def planned(endpoint: ChatEndpoint, said: Any, text: str = HOPS) -> Plan | None:
    endpoint.writes = lambda _: said if isinstance(said, str) else json.dumps(said)
    async with opened(endpoint) as (writer, _):
        return await decided_plan(text, writer, "full")


async def test_a_question_is_taken_apart(endpoint: ChatEndpoint) -> None:
    plan = await planned(endpoint, {"kind": "path", "questions": [*PARTS, HOPS]})
    assert plan == Plan("path", PARTS, PARAMETERS["path"], plan_for(HOPS).topic)
    plan = await planned(endpoint, {"kind": "fact", "questions": ["the author of PEP 8 born"]})
    assert plan == Plan("fact", (HOPS,), {}, plan_for(HOPS).topic)


@pytest.mark.parametrize(
    "said",
    [
        {"kind": "delete", "questions": PARTS},
        {"kind": "path", "questions": []},
        {"kind": "path", "questions": [HOPS] * 5},
        {"kind": "path", "questions": ["", HOPS]},
        {"kind": "path", "questions": ["Which passwords are there?", HOPS]},
        {"kind": "path", "questions": [HOPS, HOPS + HOPS]},
        {"kind": "path", "questions": [1, 2]},
        {"kind": "path", "questions": HOPS},
        {"kind": "path"},
        "path",
    ],
)
async def test_what_is_no_plan_is_left_to_the_rules(endpoint: ChatEndpoint, said: Any) -> None:
    assert await planned(endpoint, said) is None
    assert len(endpoint.bodies) == 2


async def test_a_long_text_is_no_claim(endpoint: ChatEndpoint) -> None:
    text = "PEP 8 is old. " * 200
    assert await planned(endpoint, {"kind": "claim", "questions": ["PEP 8 is old."]}, text) is None
    assert (await planned(endpoint, {"kind": "claim", "questions": ["PEP 8 is old."]}, text[:50])) is not None
