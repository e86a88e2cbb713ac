"""Answers that a language model writes, by each face of the service."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.support.fakes.curation import curation_log
from tests.support.fakes.engine import UncertainEngine, make_generation
from tests.support.fakes.model_endpoints import BROKEN, HANGING, ChatEndpoint, chat_endpoint
from tests.support.fakes.service import Running, events, problem, service_over
from tests.support.fakes.text_stores import Page
from tests.support.waiting import eventually

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
QUESTION = "Who measured the river?"
ASKED = {"q": QUESTION, "mode": "keyword", "answer_form": "model"}
PAGES = [
    Page("river", "River", [["The river is high.", "Ada Lovelace measured the river in 1840."]], collection="a"),
    Page("lake", "Lake", [["The lake is deep."]], collection="b"),
]
WRITTEN = "The river was measured by Ada Lovelace in 1840. [1]"


@pytest.fixture
def endpoint() -> Iterator[ChatEndpoint]:
    said = "The river was measured by Ada Lovelace in 1840 [1].\nIt was Bob [1]."
    with chat_endpoint(writes=lambda _: said) as running:
        yield running


@asynccontextmanager
async def service(data_dir: Path, endpoint: ChatEndpoint | None, **block: Any) -> AsyncIterator[Running]:
    make_generation(data_dir)
    engine = UncertainEngine()
    engine.reader.put(*PAGES, p0=(7, -1))
    model = None if endpoint is None else endpoint.settings()
    async with service_over(data_dir, engine, language_model=model, **block) as running:
        yield running


@pytest.fixture
async def running(tmp_path: Path, endpoint: ChatEndpoint) -> AsyncIterator[Running]:
    async with service(tmp_path, endpoint, api_key=KEY, read_api_key=READ_KEY) as made:
        yield made


def key(value: str, accept: str = "application/json") -> dict[str, str]:
    return {"Authorization": f"Bearer {value}", "Accept": accept}


async def answered(running: Running, sent: str = READ_KEY, **changed: Any) -> dict[str, Any]:
    response = await running.http.post("/v1/answers", json=ASKED | changed, headers=key(sent))
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_an_answer_is_written(running: Running) -> None:
    found = await answered(running)
    answer = found["answer"]
    assert (answer["form"], answer["text"], answer["dropped"]) == ("model", WRITTEN, 1)
    assert [each["text"] for each in answer["citations"]] == ["Ada Lovelace measured the river in 1840."]
    assert answer["usage"]["model"] == "reader"
    assert "write" in found["timings"]
    assert found["notes"] == []


async def test_a_search_with_an_answer_has_it_too_and_the_default_stays(running: Running) -> None:
    params = {**ASKED, "answer": True}
    response = await running.http.get("/v1/search", params=params, headers=key(KEY))
    assert response.json()["answer"]["text"] == WRITTEN
    del params["answer_form"]
    response = await running.http.get("/v1/search", params=params, headers=key(KEY))
    assert response.json()["answer"]["form"] == "extract"
    assert response.json()["answer"]["usage"] is None


async def test_its_frames_are_those_of_any_answer(running: Running) -> None:
    response = await running.http.post("/v1/answers", json=ASKED, headers=key(KEY, "text/event-stream"))
    frames = events(response)
    names = [name for name, *_ in frames]
    assert names[-3:] == ["answer.citation", "answer.delta", "done"]
    assert (frames[-2][2]["text"], frames[-1][2]["answer"]["text"]) == (WRITTEN, WRITTEN)


async def test_tokens_are_counted_by_what_the_caller_may_do(running: Running) -> None:
    usage = (await answered(running))["answer"]["usage"]
    await answered(running, KEY, cache=False)
    text = (await running.http.get("/metrics", headers=key(KEY))).text
    for caller in ("read", "full"):
        for kind in ("prompt", "completion"):
            line = f'thalweg_model_tokens_total{{caller="{caller}",kind="{kind}"}} {usage[f"{kind}_tokens"]}.0'
            assert line in text


async def test_a_written_answer_is_kept_and_one_that_failed_is_not(running: Running, endpoint: ChatEndpoint) -> None:
    endpoint.script = [BROKEN] * 3
    failed = await answered(running)
    assert failed["answer"]["form"] == "extract"
    assert "failed (500)" in failed["notes"][0]
    assert (await answered(running))["answer"]["text"] == WRITTEN
    kept = await answered(running)
    assert (kept["cached"], kept["answer"]["text"]) == (True, WRITTEN)
    assert len(endpoint.bodies) == 4


async def test_the_status_names_the_model(running: Running, endpoint: ChatEndpoint) -> None:
    status = await running.http.get("/v1/status", headers=key(READ_KEY))
    assert status.json()["language_model"] == endpoint.settings().model


async def test_without_a_model_it_says_which_settings_to_set(tmp_path: Path) -> None:
    async with service(tmp_path, None) as running:
        assert (await running.http.get("/v1/status")).json()["language_model"] is None
        for accept in ("application/json", "text/event-stream"):
            refused = await running.http.post("/v1/answers", json=ASKED, headers={"Accept": accept})
            assert refused.status_code == 422
            detail = problem(refused)["detail"]
            assert "THALWEG_LANGUAGE_MODEL__BASE_URL and THALWEG_LANGUAGE_MODEL__MODEL" in detail


@pytest.mark.parametrize("wrong", [{"answer_form": "poem"}, {"answer_form": None}, {"answer": False}])
async def test_what_makes_no_sense_is_refused(running: Running, wrong: dict[str, Any]) -> None:
    response = await running.http.post("/v1/search", json={**ASKED, "answer": True, **wrong}, headers=key(KEY))
    assert response.status_code == 422


async def test_a_model_that_is_slow_keeps_no_search_waiting(running: Running, endpoint: ChatEndpoint) -> None:
    endpoint.script = [HANGING]
    asking = asyncio.create_task(answered(running))
    await eventually(lambda: endpoint.bodies)
    assert running.service.admission.running == 0
    endpoint.closing.set()
    assert (await asking)["answer"]["text"] == WRITTEN


async def test_openai_clients_get_it_with_its_tokens(running: Running) -> None:
    client = openai.AsyncOpenAI(
        base_url="http://127.0.0.1:8420/v1", api_key=READ_KEY, http_client=running.http, max_retries=0
    )
    extra: Any = {"thalweg": {"mode": "keyword", "answer_form": "model"}}
    chat = await client.chat.completions.create(
        model="thalweg", messages=[{"role": "user", "content": QUESTION}], extra_body=extra
    )
    answer: Any = chat
    assert str(chat.choices[0].message.content).startswith(f"{WRITTEN}(http://127.0.0.1:8420/#/documents?id=river")
    assert (answer.thalweg["form"], answer.thalweg["dropped"]) == ("model", 1)
    assert chat.usage is not None
    assert chat.usage.total_tokens == chat.usage.prompt_tokens + chat.usage.completion_tokens > 100
    response = await client.responses.create(model="thalweg", input=QUESTION, extra_body=extra)
    assert response.usage is not None
    assert response.usage.total_tokens == chat.usage.total_tokens
    assert response.output_text == chat.choices[0].message.content
    stream = await client.chat.completions.create(
        model="thalweg", messages=[{"role": "user", "content": QUESTION}], stream=True, extra_body=extra
    )
    pieces = [chunk.choices[0].delta.content or "" async for chunk in stream]
    assert "".join(pieces) == chat.choices[0].message.content


NAMED = '{"question": "When was the river measured by Ada Lovelace?"}'
BEFORE = [{"role": "user", "content": QUESTION}, {"role": "assistant", "content": WRITTEN}]
FOLLOW_UP = "And when was it measured by her?"


async def test_a_follow_up_is_worded_by_the_smaller_model_in_a_chat_and_in_a_conversation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def writes(asked: str) -> str:
        return NAMED if "Before it, the user said" in asked else "The river was measured by Ada Lovelace in 1840 [1]."

    with chat_endpoint(model="large,small", writes=writes) as endpoint:
        async with service(tmp_path, endpoint) as running:
            curation_log(running, monkeypatch)
            body: dict[str, Any] = {"model": "thalweg", "messages": [*BEFORE, {"role": "user", "content": FOLLOW_UP}]}
            options = {"mode": "keyword", "answer_form": "model"}
            chat = await running.http.post("/v1/chat/completions", json=body | {"thalweg": options})
            assert chat.json()["thalweg"]["query"] == "When was the river measured by Ada Lovelace?"
            by_rule = await running.http.post("/v1/chat/completions", json=body | {"thalweg": {"mode": "keyword"}})
            assert by_rule.json()["thalweg"]["query"].startswith(FOLLOW_UP)
            assert [each["model"] for each in endpoint.bodies] == ["small", "large"]

            conversation = (await running.http.post("/v1/conversations", json={})).json()["id"]
            asked = options | {"conversation": conversation}
            await running.http.post("/v1/answers", json=asked | {"q": QUESTION})
            found = await running.http.post("/v1/answers", json=asked | {"q": FOLLOW_UP})
            assert found.json()["query"] == "When was the river measured by Ada Lovelace?"
            kept = (await running.get(f"/v1/conversations/{conversation}")).json()["messages"]
            assert [each["text"] for each in kept if each["role"] == "user"] == [QUESTION, FOLLOW_UP]
            assert [each["model"] for each in endpoint.bodies] == ["small", "large", "large"], "the rest is known"
