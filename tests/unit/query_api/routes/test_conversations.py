"""Conversations: what a caller asks is kept, comes back, and is its own."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from query_api.index.store_opening import GraphFile
from query_api.ingest.producer import BrokerUnavailable, OutgoingRecord
from schemas import conversations
from tests.support.fakes.curation import CurationLog, curation_log
from tests.support.fakes.engine import UncertainEngine, make_generation
from tests.support.fakes.service import Running, events, problem, service_over
from tests.support.fakes.text_stores import Page

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
PATH = "/v1/conversations"
PAGES = [
    Page("river", "River", [["The river is high.", "Ada Lovelace measured the river in 1840."]], collection="a"),
    Page("lake", "Lake", [["Ada Lovelace drained the lake in 1850."]], collection="a"),
    Page("sea", "Sea", [["Nobody measured the sea in 1860."]], collection="b"),
]


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    engine = UncertainEngine()
    engine.reader.put(*PAGES, p0=(7, 3))
    engine.graph_file = GraphFile("s1", 3)
    engine.graphs["s1"] = [page.contribution() for page in PAGES]
    async with service_over(tmp_path, engine, api_key=KEY, read_api_key=READ_KEY) as running:
        yield running


@pytest.fixture
def log(guarded: Running, monkeypatch: pytest.MonkeyPatch) -> CurationLog:
    return curation_log(guarded, monkeypatch)


class Caller:
    def __init__(self, running: Running, key: str) -> None:
        self._running, self._headers = running, {"Authorization": f"Bearer {key}"}

    async def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = self._headers | more.pop("headers", {})
        return await self._running.http.request(method, path, headers=headers, **more)

    async def begin(self, **scope: Any) -> str:
        answer = await self.send("POST", PATH, json=scope)
        assert answer.status_code == 201, answer.text
        identifier: str = answer.json()["id"]
        return identifier

    async def ask(self, question: str, conversation: str, **more: Any) -> httpx.Response:
        body = {"q": question, "mode": "keyword", "conversation": conversation} | more
        return await self.send("POST", "/v1/answers", json=body)

    async def read(self, conversation: str, **params: Any) -> dict[str, Any]:
        answer = await self.send("GET", f"{PATH}/{conversation}", params=params)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
def ada(guarded: Running, log: CurationLog) -> Caller:
    del log  # the topic is followed
    return Caller(guarded, KEY)


@pytest.fixture
def bob(guarded: Running) -> Caller:
    return Caller(guarded, READ_KEY)


async def test_what_is_asked_is_kept_with_its_answer(ada: Caller) -> None:
    identifier = await ada.begin()
    answer = (await ada.ask("Who measured the river?", identifier)).json()
    assert (answer["notes"], answer["answer"]["query"]) == ([], "Who measured the river?")
    found = await ada.read(identifier)
    question, answered = found["messages"]
    assert (found["title"], found["message_count"]) == ("Who measured the river?", 2)
    assert (question["role"], question["text"], question["answer"]) == ("user", "Who measured the river?", None)
    assert (answered["role"], answered["answer"]) == ("assistant", answer["answer"])
    assert question["retrieval_id"] == answered["retrieval_id"] == answer["retrieval_id"]
    assert answered["answer"]["citations"][0].keys() >= {"start", "end", "document_id", "text"}


async def test_a_follow_up_is_completed_by_what_was_asked_before(ada: Caller) -> None:
    identifier = await ada.begin()
    await ada.ask("Who measured the river?", identifier)
    follow_up = (await ada.ask("and when?", identifier)).json()
    assert follow_up["query"] == follow_up["answer"]["query"] == "and when? measured river"
    assert [each["text"] for each in (await ada.read(identifier))["messages"]][2] == "and when?"


async def test_a_stream_is_kept_once_however_often_it_is_resumed(ada: Caller) -> None:
    identifier = await ada.begin()
    await ada.ask("Who measured the river?", identifier)
    streaming = {"Accept": "text/event-stream"}
    body = {"q": "and when?", "mode": "keyword", "conversation": identifier}
    first = await ada.send("POST", "/v1/answers", json=body, headers=streaming)
    frames = events(first)
    assert (frames[0][0], frames[-1][0]) == ("meta", "done")
    again = await ada.send("POST", "/v1/answers", json=body, headers=streaming | {"Last-Event-ID": frames[2][1]})
    assert events(again) == frames[3:]
    found = await ada.read(identifier)
    assert found["message_count"] == 4
    assert found["messages"][3]["answer"] == frames[-1][2]["answer"]


async def test_a_search_in_a_scope_finds_nothing_beside_it(ada: Caller) -> None:
    identifier = await ada.begin(title="Lakes", collection="a", documents=["lake"])
    answer = (await ada.ask("Who measured the river and drained the lake?", identifier)).json()
    assert {hit["document_id"] for hit in answer["hits"]} <= {"lake"}
    assert answer["answer"]["citations"][0]["document_id"] == "lake"
    other = problem(await ada.ask("Who measured it?", identifier, collection="b"))
    assert (other["status"], "is about the collection 'a'" in other["detail"]) == (422, True)
    found = await ada.read(identifier)
    assert (found["title"], found["collection"], found["documents"]) == ("Lakes", "a", ["lake"])


async def test_a_scope_whose_document_is_gone_says_so(ada: Caller) -> None:
    identifier = await ada.begin(collection="a", documents=["lake", "gone"])
    answer = (await ada.ask("Who drained the lake?", identifier)).json()
    [note] = answer["notes"]
    assert "Of the 2 documents that this conversation is about, 1 are not there: 'gone'" in note


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"documents": ["a"]}, "`documents` are ids within a collection"),
        ({"collection": "a", "documents": ["x" * 1500, "y" * 1500]}, "choose fewer"),
        ({"collection": "a", "documents": ["x"] * 51}, "at most 50"),
        ({"collection": "a", "documents": ["x\\", "y"]}, "ends with a backslash"),
        ({"title": "  "}, "`title`"),
        ({"title": 7}, "`title`"),
        ({"titel": "x"}, "titel"),
        ([], "body"),
    ],
)
async def test_what_cannot_be_a_conversation_is_refused(ada: Caller, body: Any, sentence: str) -> None:
    refused = problem(await ada.send("POST", PATH, json=body))
    assert (refused["status"], sentence in refused["detail"]) == (422, True), refused


@pytest.mark.parametrize("body", [{}, {"title": " "}, {"title": "x" * 201}, {"title": None}, []])
async def test_a_name_that_is_none_is_refused(ada: Caller, body: Any) -> None:
    identifier = await ada.begin(title="kept")
    refused = problem(await ada.send("PATCH", f"{PATH}/{identifier}", json=body))
    assert refused["status"] == 422
    assert (await ada.read(identifier))["title"] == "kept"


async def test_a_conversation_is_called_by_its_first_question(ada: Caller) -> None:
    identifier = await ada.begin()
    assert (await ada.read(identifier))["title"] is None
    await ada.ask("Who measured the river " + "and who the lake " * 20, identifier)
    await ada.ask("and when?", identifier)
    title = (await ada.read(identifier))["title"]
    assert title.startswith("Who measured the river and who")
    assert (title.endswith(" …"), len(title) <= 80) == (True, True)


async def test_conversations_are_listed_renamed_and_deleted(ada: Caller, log: CurationLog) -> None:
    first, second, third = [await ada.begin(title=name) for name in ("one", "two", "three")]
    await ada.ask("Who measured the river?", first)
    page = (await ada.send("GET", PATH, params={"limit": 2})).json()
    assert [each["title"] for each in page["conversations"]] == ["one", "three"]
    rest = (await ada.send("GET", PATH, params={"cursor": page["next_cursor"]})).json()
    assert ([each["id"] for each in rest["conversations"]], rest["next_cursor"]) == ([second], None)
    renamed = await ada.send("PATCH", f"{PATH}/{third}", json={"title": "drei"})
    assert (renamed.status_code, renamed.json()["title"], renamed.json()["message_count"]) == (200, "drei", 0)
    assert (await ada.send("DELETE", f"{PATH}/{first}")).status_code == 204
    for method, more in (("GET", {}), ("DELETE", {}), ("PATCH", {"json": {"title": "x"}})):
        gone = problem(await ada.send(method, f"{PATH}/{first}", **more))
        assert (gone["status"], "was deleted" in gone["detail"]) == (404, True)
    newest = {record.key: record.value for record in log.saved}
    assert [value for key, value in newest.items() if key is not None and first.encode() in key] == [None] * 3
    bad = problem(await ada.send("GET", PATH, params={"cursor": "bm9uZQ"}))
    assert (bad["status"], "not a cursor" in bad["detail"]) == (400, True)


async def test_what_one_caller_saves_another_does_not_see(ada: Caller, bob: Caller) -> None:
    identifier = await ada.begin(title="mine")
    own = await bob.begin(title="his")  # with a key that only reads, too
    assert [each["id"] for each in (await bob.send("GET", PATH)).json()["conversations"]] == [own]
    for answer in (
        await bob.send("GET", f"{PATH}/{identifier}"),
        await bob.send("DELETE", f"{PATH}/{identifier}"),
        await bob.send("PATCH", f"{PATH}/{identifier}", json={"title": "his"}),
        await bob.ask("Who measured the river?", identifier),
    ):
        assert answer.status_code == 404
    assert (await ada.read(identifier))["title"] == "mine"


async def test_a_session_token_has_no_conversations(ada: Caller, guarded: Running) -> None:
    token = (await ada.send("POST", "/v1/session-tokens")).json()["access_token"]
    visitor, identifier = Caller(guarded, token), await ada.begin()
    assert problem(await visitor.send("POST", PATH, json={}))["reason"] == "read_only"
    for answer in (
        await visitor.send("GET", PATH),
        await visitor.send("GET", f"{PATH}/{identifier}"),
        await visitor.ask("Who measured the river?", identifier),
    ):
        assert problem(answer)["reason"] == "session_token"


async def test_two_clients_ask_at_once_and_both_are_kept(ada: Caller) -> None:
    identifier = await ada.begin()
    questions = [f"Who measured the river, part {number}?" for number in range(8)]
    answers = await asyncio.gather(*(ada.ask(each, identifier) for each in questions))
    assert {answer.status_code for answer in answers} == {200}
    messages = (await ada.read(identifier))["messages"]
    assert sorted(each["text"] for each in messages if each["role"] == "user") == questions
    pairs = list(zip(messages[::2], messages[1::2], strict=True))
    assert all(asked["retrieval_id"] == answered["retrieval_id"] for asked, answered in pairs)


@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_a_conversation_that_is_deleted_meanwhile_leaves_nothing(
    ada: Caller, guarded: Running, log: CurationLog, monkeypatch: pytest.MonkeyPatch, accept: str
) -> None:
    identifier = await ada.begin()
    publish = log.publish
    deleted: list[httpx.Response] = []

    async def delete_first(topic: str, records: Any) -> Any:
        monkeypatch.setattr(guarded.service.writer, "publish", publish)
        deleted.append(await ada.send("DELETE", f"{PATH}/{identifier}"))
        return await publish(topic, records)

    monkeypatch.setattr(guarded.service.writer, "publish", delete_first)
    body = {"q": "Who measured the river?", "mode": "keyword", "conversation": identifier}
    answer = await ada.send("POST", "/v1/answers", json=body, headers={"Accept": accept})
    assert deleted[0].status_code == 204
    if accept == "application/json":
        assert "was deleted" in problem(answer)["detail"]
    else:
        assert [name for name, _, _ in events(answer)][-1] == "error"
        assert "was deleted" in events(answer)[-1][2]["detail"]
    assert {record.value for record in {record.key: record for record in log.saved}.values()} == {None}


async def test_without_kafka_an_answer_is_given_and_a_note_says_that_it_is_not_kept(
    ada: Caller, guarded: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    identifier = await ada.begin(title="kept")

    async def fail(*_: Any) -> Any:
        raise BrokerUnavailable("Kafka did not confirm the write")

    monkeypatch.setattr(guarded.service.writer, "publish", fail)
    answer = (await ada.ask("Who measured the river?", identifier)).json()
    assert answer["answer"]["citations"]
    assert ["not kept in the conversation. Kafka did not confirm" in note for note in answer["notes"]] == [True]
    assert (await ada.read(identifier))["message_count"] == 0
    for method, path, body in (("POST", PATH, {}), ("PATCH", f"{PATH}/{identifier}", {"title": "x"})):
        refused = await ada.send(method, path, json=body)
        assert (problem(refused)["status"], "Retry-After" in refused.headers) == (503, True)


async def test_a_conversation_is_full_at_last(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    assert conversations.MOST_MESSAGES == 10_000
    monkeypatch.setattr("query_api.saved.conversations.MOST_MESSAGES", 4)
    identifier = await ada.begin()
    for _ in range(2):
        assert (await ada.ask("Who measured the river?", identifier)).status_code == 200
    refused = problem(await ada.ask("Who measured the river?", identifier))
    assert (refused["status"], "takes no more" in refused["detail"]) == (409, True)


async def test_messages_are_read_in_pages_from_the_last(ada: Caller) -> None:
    identifier = await ada.begin()
    for number in range(3):
        await ada.ask(f"Who measured the river, part {number}?", identifier)
    last = await ada.read(identifier, limit=4)
    first = await ada.read(identifier, limit=4, cursor=last["next_cursor"])
    whole = [each["text"] for each in (await ada.read(identifier))["messages"]]
    assert [each["text"] for each in (*first["messages"], *last["messages"])] == whole
    assert (len(first["messages"]), first["next_cursor"]) == (2, None)


async def test_a_chat_may_be_asked_in_a_conversation(ada: Caller) -> None:
    identifier = await ada.begin()
    await ada.ask("Who measured the river?", identifier)
    options = {"mode": "keyword", "conversation": identifier}
    chat = {"model": "thalweg", "messages": [{"role": "user", "content": "and when?"}], "thalweg": options}
    answer = (await ada.send("POST", "/v1/chat/completions", json=chat)).json()
    assert answer["thalweg"]["query"] == "and when? measured river"
    streamed = await ada.send("POST", "/v1/responses", json={
        "model": "thalweg", "input": "Who drained the lake?", "stream": True, "thalweg": options,
    })  # fmt: skip
    assert "response.completed" in streamed.text
    asked = [each["text"] for each in (await ada.read(identifier))["messages"][::2]]
    assert asked == ["Who measured the river?", "and when?", "Who drained the lake?"]
    for conversation, status in (("none", 404), (7, 400)):
        wrong = chat | {"thalweg": options | {"conversation": conversation}}
        assert (await ada.send("POST", "/v1/chat/completions", json=wrong)).status_code == status


async def test_what_another_program_wrote_does_not_break_a_conversation(ada: Caller, log: CurationLog) -> None:
    identifier = await ada.begin()
    await ada.ask("Who measured the river?", identifier)
    head = f"full/conversation/{identifier}"
    for key, value in ((head, b'{"title": 7}'), (f"{head}/x.q", b"{}"), (f"{head}/x.a", b'{"answer": 1}')):
        await log.publish("thalweg.saved.v1", [OutgoingRecord(key.encode(), value)])
    found = await ada.read(identifier)
    assert (found["title"], len(found["messages"])) == ("Who measured the river?", 2)
