"""The tools of `/mcp`, asked by the official SDK's client in either era of the protocol."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS

from query_api.index.store_opening import GraphFile
from schemas.choices import Mode
from schemas.cursors import write_cursor
from schemas.ids import Position
from tests.support.fakes.engine import SearchingEngine, WordEngine, make_generation
from tests.support.fakes.keeping_writer import KeepingWriter
from tests.support.fakes.service import PAGES, Running, problem, service_over
from tests.support.fakes.text_stores import Page
from tests.support.waiting import eventually
from tests.unit.query_api.mcp.assistant import ERAS, assistant

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"
LONG = Page("long", "Long", [[f"Part {number} of a text. " * 150] for number in range(9)], collection="a")


def with_a_graph() -> SearchingEngine:
    engine = SearchingEngine()
    engine.reader.put(*PAGES, LONG, p0=(7, 3))
    engine.graph_file = GraphFile("s1", 3)
    engine.graphs["s1"] = [page.contribution() for page in (*PAGES, LONG)]
    return engine


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    async with service_over(tmp_path, with_a_graph()) as service:
        yield service


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    async with service_over(tmp_path, with_a_graph(), api_key=KEY, read_api_key=READ_KEY) as service:
        yield service


@pytest.mark.parametrize("era", ERAS)
async def test_each_tool_says_what_it_takes_and_answers(running: Running, era: str) -> None:
    async with assistant(running, era) as asking:
        listed = (await asking.client.list_tools()).tools
    assert {tool.name for tool in listed} == {"search", "research", "get", "neighbours", "paths", "status", "add"}
    for tool in listed:
        assert 20 < len(tool.description or "") < 250
        assert tool.output_schema is not None
        assert (tool.input_schema["type"], tool.output_schema["type"]) == ("object", "object")
        assert tool.input_schema["additionalProperties"] is False
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is (tool.name != "add")
    search = next(tool for tool in listed if tool.name == "search")
    assert search.input_schema["properties"]["mode"]["enum"] == list(get_args(Mode))
    assert (
        sum(len(tool.model_dump_json(by_alias=True, exclude_none=True)) for tool in listed) < 40_000
    )  # a model reads it


@pytest.mark.parametrize("era", ERAS)
async def test_a_search_finds_what_the_route_finds_page_by_page(running: Running, era: str) -> None:
    by_route = (await running.get("/v1/search", q="Ada river", mode="keyword", k=2)).json()["hits"]
    async with assistant(running, era) as asking:
        first = await asking.call("search", q="Ada river", mode="keyword", k=1)
        second = await asking.call("search", q="Ada river", mode="keyword", k=1, cursor=first["next_cursor"])
    found = [*first["hits"], *second["hits"]]
    assert [hit["chunk_id"] for hit in found] == [hit["chunk_id"] for hit in by_route]
    assert all(
        hit[name] == value
        for hit, known in zip(found, by_route, strict=True)
        for name, value in known.items()
        if name in hit
    )
    assert "parent_text" not in found[0]


async def test_get_shows_a_document_a_chunk_and_an_entity(running: Running) -> None:
    async with assistant(running) as asking:
        document = (await asking.call("get", kind="document", id="ada"))["document"]
        assert (document["title"], document["text"], document["next_cursor"]) == (
            "Ada",
            "Ada lives by the river.",
            None,
        )
        (hit,) = (await asking.call("search", q="lives", mode="keyword"))["hits"]
        chunk = (await asking.call("get", kind="chunk", id=hit["chunk_id"]))["chunk"]
        assert (chunk["document_id"], chunk["text"]) == ("ada", "Ada lives by the river.")
        found = await asking.call("get", kind="entity", id="Ada", limit=1)
        assert (found["document"], found["chunk"], found["entity"]["label"]) == (None, None, "Ada")
        assert len(found["entity"]["documents"]) == 1
        assert found["entity"]["truncated"]


async def test_a_long_document_comes_by_pages_and_one_that_changes_meanwhile_from_the_beginning(
    running: Running,
) -> None:
    text = (await running.get("/v1/documents/long")).json()["text"]
    pages, cursor = [], {}
    async with assistant(running) as asking:
        while True:
            page = (await asking.call("get", kind="document", id="long", **cursor))["document"]
            pages.append(page["text"])
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        assert (len(pages), "".join(pages)) == (4, text)
        earlier = write_cursor([8_000, "0:4"])
        assert page["position"] == "0:5"
        assert await asking.refusal("get", kind="document", id="long", cursor=earlier) == (
            "Document changed: The document has changed since that page: begin without `cursor`."
        )


async def test_neighbours_and_paths_are_those_of_the_routes(running: Running) -> None:
    async with assistant(running) as asking:
        around = await asking.call("neighbours", node_id="Ada", limit=2)
        assert around == (await running.get("/v1/nodes/Ada", limit=2)).json()
        assert (len(around["neighbours"]), around["truncated"]) == (2, True)
        joined = await asking.call("paths", **{"from": "Ada", "to": "notes/river.md"})
        assert joined == (await running.http.get("/v1/paths?from=Ada&to=notes/river.md")).json()
        assert joined["paths"]


async def test_the_status_names_the_collections(running: Running) -> None:
    async with assistant(running) as asking:
        status = await asking.call("status")
    assert status["collections"] == {"a": 4}
    assert status["readiness"]["ready"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_document_is_added_by_who_may_write_alone(
    guarded: Running, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    writer = KeepingWriter(Position(1, 1))
    monkeypatch.setattr(guarded.service, "writer", writer)
    given: dict[str, Any] = {"id": "a", "content": "The weir is low.", "metadata": {"by": ["Bo", {"x": 1}]}}
    async with assistant(guarded, era, READ_KEY) as reader:
        assert "add" not in {tool.name for tool in (await reader.client.list_tools()).tools}
        refusal = await reader.refusal("add", **given)
        assert refusal.startswith("Read only: This key only reads: it allows GET, HEAD, POST /v1/answers, ")
        assert "and the tools of /mcp that read." in refusal
        assert (await reader.call("search", q="river", mode="keyword"))["hits"]
    assert writer.values == []
    async with assistant(guarded, era, KEY) as asking:
        assert (await asking.call("add", **given))["token"].startswith("1:1")
    by_tool = writer.values.pop()
    headers = {"Authorization": f"Bearer {KEY}"}
    assert (await guarded.http.post("/v1/documents", json=given, headers=headers)).status_code == 202
    assert writer.values == [by_tool]


@pytest.mark.parametrize("era", ERAS)
async def test_what_is_wrong_is_said_in_the_sentence_of_the_route(running: Running, era: str) -> None:
    async with assistant(running, era) as asking:
        for said, path in (
            (await asking.refusal("get", kind="document", id="nobody"), "/v1/documents/nobody"),
            (await asking.refusal("get", kind="chunk", id="nothing"), "/v1/chunks/nothing"),
            (await asking.refusal("get", kind="entity", id="nobody"), "/v1/entities/nobody"),
            (await asking.refusal("neighbours", node_id="nothing"), "/v1/nodes/nothing"),
            (await asking.refusal("paths", **{"from": "nobody"}), "/v1/paths?from=nobody"),
            (await asking.refusal("search", q="x", after="never"), "/v1/search?q=x&after=never"),
        ):
            body = problem(await running.http.get(path))
            assert said == f"{body['title']}: {body['detail']}"
        written = await asking.refusal("add", id="a", content="text")
        assert written.startswith("Kafka unavailable: no Kafka is known")
        with pytest.raises(MCPError, match=r"^There is no tool 'sing'; there are search, research, get, ") as missing:
            await asking.client.call_tool("sing", {})
        assert missing.value.code == INVALID_PARAMS


WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("search", {}, "`q` is missing."),
    ("search", {"q": 7}, "`q`: Input should be a valid string"),
    ("search", {"q": "x", "k": True}, "`k`: give a number; true is none"),
    ("search", {"q": "x", "k": 51}, "`k`: Input should be less than or equal to 50 (it is '51')."),
    ("search", {"q": "x", "k": 10**400}, "`k`: Input should be less than or equal to 50"),
    ("search", {"q": "x", "mode": "loud"}, "`mode`: Input should be 'hybrid', 'vector'"),
    ("search", {"q": "x", "filter": "a"}, "`filter`: Input should be a valid tuple"),
    ("search", {"q": "x", "filter": ["a"]}, "`filter.0`: "),
    ("search", {"q": "x", "fusion": "rrf"}, "There is no parameter 'fusion'; `tools/list` has those of each tool."),
    ("search", {"q": "x", "mode": "global", "min_confidence": 0.5}, "mode=global has no confidence"),
    ("search", {"q": "x", "cursor": "loose"}, "Malformed cursor"),
    ("get", {"kind": "song", "id": "a"}, "`kind`: Input should be 'document', 'chunk' or 'entity'"),
    ("get", {"kind": "document", "id": {}}, "`id`: Input should be a valid string."),
    ("get", {"kind": "chunk", "id": "a", "cursor": "b"}, "`cursor` is for the text of a document"),
    ("get", {"kind": "document", "id": "ada", "cursor": "b"}, "'b' is not a cursor of a document's text"),
    ("neighbours", {"node_id": "Ada", "kinds": ["a"] * 40}, "And 30 more."),
    ("paths", {"source": "Ada"}, "`from` is missing."),
    ("status", {"loud": 1}, "There is no parameter 'loud'"),
    ("add", {"id": "a", "content": "x", "metadata": []}, "`metadata`: Input should be a valid dictionary"),
    ("add", {"id": "a", "content": "x", "metadata": {"n": 10**400}}, "Document refused: A whole number"),
    ("add", {"id": "a\x00", "content": "x"}, "holds a control character"),
    ("add", {"id": "a", "content": "x", "content_type": "video/mp4"}, "Document refused"),
]


async def test_arguments_that_do_not_fit_are_named(running: Running) -> None:
    async with assistant(running) as asking:
        for tool, arguments, says in WRONG:
            assert says in await asking.refusal(tool, **arguments)


async def test_an_answer_is_bounded(running: Running) -> None:
    words = "word " * 4_000
    running.engine.reader.put(*(Page(f"w{n}", "W", [[words]], collection="a") for n in range(20)), p0=(9, -1))
    await eventually(lambda: running.service.snapshots.current.text.positions[0].offset == 9)  # type: ignore[union-attr]
    async with assistant(running) as asking:
        few = await asking.call("search", q="word", mode="keyword", k=2)
        assert [len(hit["text"]) for hit in few["hits"]] == [8_000, 8_000]
        assert few["hits"][0]["text"].endswith("…")
        many = await asking.refusal("search", q="word", mode="keyword", k=20)
    assert many.startswith("Answer too long: The answer has 1")
    assert many.endswith("and at most 100,000 are sent: ask for fewer with `k` or `limit`.")


async def test_a_search_that_there_is_no_room_for_says_when_to_ask_again(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    admission = running.service.admission
    monkeypatch.setattr(admission, "running", admission.at_once)
    monkeypatch.setattr(admission, "mean_seconds", 100.0)
    async with assistant(running) as asking:
        assert "Ask again in" in await asking.refusal("search", q="river", mode="keyword")


async def test_research_answers_with_sources_and_what_is_open(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = WordEngine()
    engine.reader.put(*PAGES, p0=(7, -1))
    async with service_over(tmp_path, engine) as running, assistant(running) as asking:
        note = await asking.call("research", q="Who measured the river?", collection="a", rounds=1)
        assert (note["kind"], note["check"]) == ("fact", None)
        assert all(one["text"] in note["text"] for one in note["citations"])
        assert "Ada measured it." in note["text"]
        assert "`rounds`" in await asking.refusal("research", q="river", rounds=5)
