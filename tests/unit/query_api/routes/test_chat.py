"""OpenAI's protocol, asked by the official client of it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.support.fakes.engine import UncertainEngine, make_generation
from tests.support.fakes.service import Running, service_over
from tests.support.fakes.text_stores import Page
from tests.support.waiting import eventually

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
QUESTION = "Who measured the river?"
BY_WORDS = {"thalweg": {"mode": "keyword"}}
PAGES = [
    Page("river", "River", [["The river is high.", "Ada Lovelace measured the river in 1840."]], collection="a"),
    Page("lake", "Lake Ö", [["Der See ist tief – 46 m 🌊."]], collection="b"),
]


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    engine = UncertainEngine()
    engine.reader.put(*PAGES, p0=(7, -1))
    async with service_over(tmp_path, engine, api_key=KEY, read_api_key=READ_KEY) as running:
        yield running


def client_of(running: Running, key: str = READ_KEY) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url="http://127.0.0.1:8420/v1", api_key=key, http_client=running.http, max_retries=0)


@pytest.fixture
def client(guarded: Running) -> openai.AsyncOpenAI:
    return client_of(guarded)


def asked(question: str, *before: str) -> list[Any]:
    return [{"role": "user", "content": each} for each in (*before, question)]


async def completed(client: openai.AsyncOpenAI, *texts: str, **options: Any) -> Any:
    extra: Any = {"thalweg": {"mode": "keyword"} | options}
    return await client.chat.completions.create(model="thalweg", messages=asked(*texts), extra_body=extra)


async def test_a_chat_is_answered_with_links_and_annotations(client: openai.AsyncOpenAI) -> None:
    answer = await completed(client, QUESTION)
    [choice] = answer.choices
    assert (choice.finish_reason, choice.message.role, answer.usage) == ("stop", "assistant", None)
    text = choice.message.content
    assert "Ada Lovelace measured the river in 1840. [2](http://127.0.0.1:8420/#/documents?id=river&in=a" in text
    cited = choice.message.annotations[0].url_citation
    assert text[cited.start_index : cited.end_index] == f"[1]({cited.url})"
    assert cited.title == "River"
    assert (answer.thalweg["query"], answer.thalweg["refused"], answer.thalweg["form"]) == (QUESTION, False, "extract")


async def test_a_streamed_chat_is_the_whole_one_in_pieces(client: openai.AsyncOpenAI) -> None:
    whole = (await completed(client, QUESTION)).choices[0].message
    stream = await client.chat.completions.create(
        model="thalweg", messages=asked(QUESTION), stream=True, extra_body=BY_WORDS
    )
    chunks: list[Any] = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == whole.content
    annotations = [each for delta in deltas for each in getattr(delta, "annotations", [])]
    assert annotations == [each.model_dump() for each in whole.annotations]
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None] * (len(chunks) - 1) + ["stop"]
    assert len({chunk.id for chunk in chunks}) == 1
    assert chunks[-1].thalweg["query"] == QUESTION


async def test_a_stream_of_a_chat_ends_with_done(guarded: Running) -> None:
    body = {"model": "thalweg", "messages": asked(QUESTION), "stream": True} | BY_WORDS
    answer = await guarded.http.post(CHAT, json=body, headers={"Authorization": f"Bearer {READ_KEY}"})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.endswith("\n\ndata: [DONE]\n\n")


async def test_a_response_is_answered_as_the_chat_is(client: openai.AsyncOpenAI) -> None:
    message = (await completed(client, QUESTION)).choices[0].message
    answer = await client.responses.create(model="thalweg", input=QUESTION, extra_body=BY_WORDS)
    assert (answer.status, answer.output_text) == ("completed", message.content)
    content: Any = answer.output[0]
    [part] = content.content
    assert [each.url for each in part.annotations] == [each.url_citation.url for each in message.annotations]
    assert answer.store is False


async def test_a_streamed_response_has_the_events_of_the_protocol_in_their_order(client: openai.AsyncOpenAI) -> None:
    stream = await client.responses.create(model="thalweg", input=asked(QUESTION), stream=True, extra_body=BY_WORDS)
    events: list[Any] = [event async for event in stream]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    names = [event.type for event in events]
    assert names[:4] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"
    ]  # fmt: skip
    assert names[4:6] == ["response.output_text.delta", "response.output_text.annotation.added"]
    assert names[-4:] == [
        "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"
    ]  # fmt: skip
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert text == events[-1].response.output_text
    for event in events:
        if event.type == "response.output_text.annotation.added":
            marker = text[event.annotation.start_index : event.annotation.end_index]
            assert marker == f"[{event.annotation_index + 1}]({event.annotation.url})"


async def test_a_follow_up_is_searched_with_its_subject(client: openai.AsyncOpenAI) -> None:
    answer = await completed(client, "When was it measured?", "How high is the river?")
    assert answer.thalweg["query"] == "When was it measured? high river"
    assert "1840" in answer.choices[0].message.content


async def test_text_comes_as_string_or_parts(client: openai.AsyncOpenAI) -> None:
    by_parts: Any = [
        {"role": "user", "content": [{"type": "text", "text": "Wie tief"}, {"type": "text", "text": "See 🌊"}]}
    ]
    extra: Any = {"thalweg": {"mode": "keyword", "collection": "b"}}
    answer: Any = await client.chat.completions.create(model="thalweg", messages=by_parts, extra_body=extra)
    assert answer.thalweg["query"] == "Wie tief\nSee 🌊"
    text, cited = answer.choices[0].message.content, answer.choices[0].message.annotations[0].url_citation
    assert "Der See ist tief – 46 m 🌊." in text
    assert text[cited.start_index : cited.end_index] == f"[1]({cited.url})"
    assert cited.title == "Lake Ö"


async def test_what_nothing_answers_is_a_message_with_the_reason(client: openai.AsyncOpenAI) -> None:
    for texts, options in ((("Who?",), {"collection": "none"}), (("the of and",), {})):
        answer = await completed(client, *texts, **options)
        assert answer.choices[0].finish_reason == "stop"
        assert answer.choices[0].message.content.startswith("Nothing")
        assert answer.thalweg["refused"]
        assert answer.choices[0].message.annotations is None


async def test_fields_that_mean_nothing_here_are_accepted(client: openai.AsyncOpenAI) -> None:
    function: Any = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    answer = await client.chat.completions.create(
        model="thalweg",
        messages=[{"role": "system", "content": "Be brief."}, *asked(QUESTION)],
        temperature=0.3,
        tools=[function],
        max_tokens=50,
        user="someone",
        extra_body=BY_WORDS,
    )
    assert answer.choices[0].message.tool_calls is None


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"messages": asked("x" * 1_000_000)}, "over 262,144 bytes"),
        ({"messages": asked("x" * 20_000)}, "messages.0.content"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "Hello"}]}, "of the role user"),
        ({"messages": asked("  ")}, "of the role user"),
        ({"messages": "hello"}, "messages"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "role user"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "audio"}]}]}, "'audio'"),
        ({"messages": asked(QUESTION), "stream": "perhaps"}, "stream"),
        ({"messages": asked(QUESTION), "thalweg": {"k": 0}}, "thalweg.k"),
        ({"messages": asked(QUESTION), "thalweg": {"q": "other"}}, "thalweg.q"),
        ({"messages": asked(QUESTION), "thalweg": {"colour": 1}}, "no parameter 'thalweg.colour'"),
        ({"messages": asked(QUESTION), "thalweg": {"offset": 10}}, "first hits"),
        ({"messages": asked(QUESTION), "thalweg": {"filter": ["colour=red"]}}, "No document of any"),
        ({"messages": asked(QUESTION), "thalweg": []}, "thalweg"),
    ],
)
async def test_malformed_requests_are_bad_requests(client: openai.AsyncOpenAI, body: Any, says: str) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await client.post("/chat/completions", body={"model": "thalweg"} | body, cast_to=httpx.Response)
    error: Any = refused.value.body
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    assert says in error["message"]


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"model": "thalweg", "messages": [{"role": "user", "content": "\\ud800"}]}']
)
async def test_what_is_no_request_is_a_bad_request(guarded: Running, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    for path in (CHAT, RESPONSES):
        answer = await guarded.http.post(path, content=body, headers=headers)
        assert (answer.status_code, answer.headers["content-type"]) == (400, "application/json")
        assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_an_error_names_the_field(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await completed(client, QUESTION, k=0)
    assert refused.value.param == "thalweg.k"


async def test_a_response_that_was_not_kept_cannot_be_continued(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        await client.responses.create(model="thalweg", input="and why?", previous_response_id="resp_1")
    assert refused.value.param == "previous_response_id"


async def test_keys_are_checked_and_models_are_known(guarded: Running, client: openai.AsyncOpenAI) -> None:
    assert [model.id async for model in client.models.list()] == ["thalweg"]
    with pytest.raises(openai.NotFoundError) as unknown:
        await client.chat.completions.create(model="gpt-5", messages=asked(QUESTION))
    assert (unknown.value.code, unknown.value.param) == ("model_not_found", "model")
    with pytest.raises(openai.AuthenticationError) as wrong:
        await completed(client_of(guarded, "wrong"), QUESTION)
    assert wrong.value.code == "invalid_api_key"
    with pytest.raises(openai.APIStatusError) as other:
        await client.post("/models", body={}, cast_to=httpx.Response)
    assert other.value.status_code == 403  # of another method a reader is told that it may not


async def test_an_answer_is_a_search_in_the_records(guarded: Running, client: openai.AsyncOpenAI) -> None:
    recorded: list[Any] = []
    guarded.service.provenance.add = recorded.append  # type: ignore[method-assign]
    answer = await completed(client, QUESTION)
    stream = await client.chat.completions.create(
        model="thalweg", messages=asked(QUESTION), stream=True, extra_body=BY_WORDS
    )
    chunks: list[Any] = [chunk async for chunk in stream]
    ids = [answer.thalweg["retrieval_id"], chunks[-1].thalweg["retrieval_id"]]
    assert [each.retrieval_id for each in recorded] == ids
    for each in recorded:
        source, *_ = each.answer["citations"]
        assert (source["number"], source["hit"]) == (1, 1)
        assert "text" not in source  # no record holds what documents say
    assert guarded.service.admission.running == 0


async def test_a_search_that_fails_in_the_middle_is_an_error_event(running: Running) -> None:
    client = client_of(running)
    running.engine.fail_at = 1
    with pytest.raises(openai.APIError, match="log holds the trace"):
        async for _ in await client.chat.completions.create(model="thalweg", messages=asked(QUESTION), stream=True):
            pass
    events: list[Any] = [
        event async for event in await client.responses.create(model="thalweg", input=QUESTION, stream=True)
    ]
    assert (events[-1].type, events[-1].code) == ("error", "server_error")
    with pytest.raises(openai.InternalServerError) as whole:
        await client.chat.completions.create(model="thalweg", messages=asked(QUESTION))
    assert whole.value.type == "server_error"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(("path", "said"), [(CHAT, {"messages": asked(QUESTION)}), (RESPONSES, {"input": QUESTION})])
async def test_who_leaves_in_the_middle_ends_the_search(
    running: Running, path: str, said: dict[str, Any], *, stream: bool
) -> None:
    running.engine.hold_at = 1
    app: Any = running.http._transport.app  # type: ignore[attr-defined]
    body = json.dumps({"model": "thalweg", "stream": stream} | said).encode()
    scope = {
        "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8420"), (b"content-type", b"application/json")], "scheme": "http",
        "server": ("127.0.0.1", 8420), "client": ("127.0.0.1", 1), "asgi": {"spec_version": "2.4"},
    }  # fmt: skip
    left = asyncio.Event()
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        if messages:
            return messages.pop()
        await left.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        del message

    request = asyncio.create_task(app(scope, receive, send))
    await eventually(lambda: running.engine.started == 1 and running.service.admission.running == 1)
    left.set()
    await asyncio.wait_for(request, 10)
    await eventually(lambda: running.engine.cancelled == 1)
    assert running.service.admission.running == 0


async def test_who_comes_too_much_is_told_when_to_come_again(
    guarded: Running, client: openai.AsyncOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guarded.service.admission, "longest_wait_seconds", -1)
    for asking in (completed(client, QUESTION), client.responses.create(model="thalweg", input=QUESTION)):
        with pytest.raises(openai.InternalServerError) as refused:
            await asking
        assert (refused.value.status_code, refused.value.code) == (503, "overloaded")
        assert refused.value.response.headers["retry-after"] == "1"
