"""A written answer: supported sentences with their sources as they come, and the extract where there are none."""

import asyncio
from collections.abc import Iterator

import pytest

from query_api.answers.answer import frames_of
from schemas.answers import AnswerCitation, AnswerDelta
from tests.support.fakes.model_endpoints import BREAKING_OFF, BROKEN, HANGING, Answer, ChatEndpoint, busy, chat_endpoint
from tests.support.fakes.model_endpoints import streamed as events
from tests.unit.query_api.answers.found import HITS, hit
from tests.unit.query_api.answers.model.writing import written

FILM = "Alpha Film was directed by Jane Doe [1]."
BORN = "Jane Doe was born in Lisbon, Portugal [2]."
SPANS = ["It was directed by Jane Doe, who also wrote it.", "She was born in Lisbon, Portugal."]


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    with chat_endpoint(writes=lambda _: f"{FILM}\n{BORN}\n") as running:
        yield running


async def test_sentences_come_with_the_spans_that_support_them(endpoint: ChatEndpoint) -> None:
    made = await written(endpoint)
    answer = made.answer
    assert answer.text == "Alpha Film was directed by Jane Doe. [1]\nJane Doe was born in Lisbon, Portugal. [2]"
    assert (answer.form, answer.dropped, answer.refused, made.done.notes) == ("model", 0, False, [])
    assert [(each.number, each.text, each.document_id) for each in answer.citations] == [
        (1, SPANS[0], "d1"),
        (2, SPANS[1], "d2"),
    ]
    for source in answer.citations:
        assert HITS[source.hit - 1].parent_text[source.start : source.end] == source.text
    assert [type(frame) for frame in made.frames] == [AnswerCitation, AnswerDelta] * 2
    assert made.streamed == answer.text
    assert list(frames_of(answer)) == made.frames
    assert "write" in made.done.timings


async def test_tokens_are_counted_for_the_caller(endpoint: ChatEndpoint) -> None:
    made = await written(endpoint)
    usage = made.answer.usage
    assert usage is not None
    assert (usage.model, usage.completion_tokens) == ("reader", len(f"{FILM} {BORN}".split()))
    assert usage.prompt_tokens > 100
    assert made.counted == [("read", usage.prompt_tokens, usage.completion_tokens)]


async def test_a_sentence_is_streamed_before_the_next_one_is_written(endpoint: ChatEndpoint) -> None:
    endpoint.script = [Answer(instead=b"".join(events(f"{FILM}\n{BORN}"))[:-250], breaks_off=True)]
    made = await written(endpoint)
    assert made.streamed == made.answer.text == "Alpha Film was directed by Jane Doe. [1]"
    assert made.answer.form == "model"
    [note] = made.done.notes
    assert note.startswith("The answer may lack something: The language model at http://127.0.0.1:")


async def test_what_nothing_supports_is_dropped_and_counted(endpoint: ChatEndpoint) -> None:
    lies = "Jane Doe was born in Porto [2].\nAlpha Film won a prize [1].\nShe was born in Lisbon [99].\nBy the way.\n"
    endpoint.writes = lambda _: f"{lies}{BORN}"
    made = await written(endpoint)
    assert made.answer.text == "Jane Doe was born in Lisbon, Portugal. [1]"
    assert made.answer.dropped == 4


async def test_several_spans_of_one_sentence_are_numbered_each_once(endpoint: ChatEndpoint) -> None:
    endpoint.writes = lambda _: f"Jane Doe, who directed Alpha Film, was born in Lisbon [1][2].\n{BORN}"
    made = await written(endpoint)
    assert [line.split(". ")[1] for line in made.answer.text.splitlines()] == ["[1] [2]", "[2]"]
    assert [type(frame) for frame in made.frames] == [AnswerCitation, AnswerCitation, AnswerDelta, AnswerDelta]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (BROKEN, "failed (500)"),
        (busy(), "takes no more just now (429)"),
        (HANGING, "did not answer within 0.5 s"),
        (BREAKING_OFF, "broke off"),
        (Answer(instead=b"<html>It works!</html>"), "empty answer, or something other"),
        (Answer(instead=b"x" * 10_000_000), "more than 4,194,304 bytes"),
        (Answer(instead=b"data: {\n\n"), "something other than an answer"),
        (Answer(instead="data: –".encode()[:-1]), "something other|empty answer"),
    ],
)
async def test_where_the_model_fails_the_extract_is_the_answer_and_a_note_says_why(
    endpoint: ChatEndpoint, answer: Answer, why: str
) -> None:
    endpoint.writes = lambda _: "x" * 50
    endpoint.script = [answer] * 2
    made = await written(endpoint, seconds=0.5 if answer.hangs else 30.0)
    assert (made.answer.form, made.answer.refused) == ("extract", False)
    assert made.streamed == made.answer.text
    assert SPANS[1] in made.answer.text
    [note] = made.done.notes
    assert any(part in note for part in why.split("|"))
    assert note.endswith("The answer is sentences of the documents instead, word for word.")


@pytest.mark.parametrize("text", ["It was Porto [2].", "It is so [99].", "[1]", "word " * 5_000 + "[1]", "]" * 20_000])
async def test_where_nothing_is_supported_the_extract_is_the_answer(endpoint: ChatEndpoint, text: str) -> None:
    endpoint.writes = lambda _: text
    made = await written(endpoint)
    assert made.answer.form == "extract"
    assert made.done.notes[0].startswith("Nothing that the language model wrote is supported")


async def test_a_reply_that_names_no_passage_is_asked_for_once_more(endpoint: ChatEndpoint) -> None:
    endpoint.writes = lambda asked: BORN if "Write the answer again" in asked else "She is from Lisbon."
    made = await written(endpoint)
    assert (made.answer.form, made.answer.dropped) == ("model", 0)
    assert [len(body["messages"]) for body in endpoint.bodies] == [2, 4]
    assert made.answer.usage is not None
    assert made.answer.usage.completion_tokens == len(f"She is from Lisbon. {BORN}".split())
    endpoint.writes = lambda _: "She is from Lisbon."
    assert (await written(endpoint)).answer.form == "extract"
    assert len(endpoint.bodies) == 4


async def test_a_model_that_finds_no_answer_refuses(endpoint: ChatEndpoint) -> None:
    endpoint.writes = lambda _: "NOTHING"
    made = await written(endpoint)
    assert (made.answer.form, made.answer.refused, made.answer.text, made.frames) == ("model", True, "", [])
    assert made.answer.reason is not None
    assert "without `answer_form`" in made.answer.reason
    assert len(endpoint.bodies) == 1


async def test_a_refused_extract_needs_no_model(endpoint: ChatEndpoint) -> None:
    made = await written(endpoint, hits=[])
    assert made.answer.refused
    assert (endpoint.bodies, made.counted) == ([], [])


async def test_there_is_room_for_as_much_as_is_asked_for(endpoint: ChatEndpoint) -> None:
    assert (await written(endpoint, answer_sentences=1)).answer.text.count("\n") == 0
    assert (await written(endpoint, answer_words=10)).answer.text.count("\n") == 0
    [*_, body] = endpoint.bodies
    assert "at most 3 sentences and 10 words" in body["messages"][0]["content"]
    assert body["max_tokens"] == 4 * 10 + 1_024


async def test_only_the_first_hits_are_shown(endpoint: ChatEndpoint) -> None:
    many = [hit(rank, f"Page {rank}", f"Needle {rank} is here.") for rank in range(1, 9)]
    await written(endpoint, many, "Where is the needle?")
    [body] = endpoint.bodies
    shown = body["messages"][1]["content"]
    assert ("Needle 5" in shown, "Needle 6" in shown) == (True, False)


async def test_many_at_once_are_all_answered(endpoint: ChatEndpoint) -> None:
    made = await asyncio.gather(*(written(endpoint, seconds=30.0) for _ in range(12)))
    assert {each.answer.form for each in made} == {"model"}
