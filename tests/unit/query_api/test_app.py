"""The service over HTTP, with stores in memory and without Kafka: what is asked, what is answered, what is refused."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from indexer.errors import TransientStoreError
from query_api.app import create_app
from query_api.searching.engine import GraphFile, SearchUnanswered
from query_api.service import Service
from query_api.settings import ServiceBlock, ServiceSettings
from schemas.ids import DocumentKey, entity_id
from schemas.settings import StorageSettings
from tests.unit.query_api.in_memory_text import Page
from tests.unit.query_api.scripted_engine import ScriptedEngine, make_generation, make_hit, wait_until

PAGES = [
    Page(
        "notes/river.md", "River", [["The river is high.", "Ada measured it."], ["It fell."]], ["Ada"], collection="a"
    ),
    Page("ada", "Ada", [["Ada lives by the river."]], ["Ada"], links=["a/notes/river.md"], collection="a"),
    Page("reports/status", "Report", [["All is well."]], collection="a"),
]


class Running:
    """A running service and a client of it."""

    def __init__(self, http: httpx.AsyncClient, service: Service, engine: ScriptedEngine) -> None:
        self.http = http
        self.service = service
        self.engine = engine

    async def get(self, path: str, **params: Any) -> httpx.Response:
        return await self.http.get(path, params=params)


@asynccontextmanager
async def service_over(
    data_dir: Path, engine: ScriptedEngine, *, until_ready: bool = True, **block: Any
) -> AsyncIterator[Running]:
    settings = ServiceSettings(
        storage=StorageSettings(data_dir=data_dir),
        service=ServiceBlock(refresh_seconds=0.01, provenance_flush_seconds=0, **block),
    )
    app = create_app(settings, load=lambda: engine)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420") as http,
    ):
        running = Running(http, app.state.service, engine)
        if until_ready:
            await wait_until(lambda: running.service.readiness().ready)
        yield running


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    engine = ScriptedEngine(hits=[make_hit(1), make_hit(2)])
    engine.reader.put(*PAGES, p0=(7, 3))
    engine.graph_file = GraphFile("s1", 3)
    engine.graphs["s1"] = [page.contribution() for page in PAGES]
    async with service_over(tmp_path, engine) as service:
        yield service


def problem(response: httpx.Response) -> dict[str, Any]:
    assert response.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = response.json()
    assert body["status"] == response.status_code
    assert body["title"]
    assert body["detail"]
    return body


def events(response: httpx.Response) -> list[tuple[str, str, Any]]:
    frames = []
    for block in response.text.strip().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n"))
        frames.append((fields["event"], fields["id"], json.loads(fields["data"])))
    return frames


async def test_a_search_is_answered_as_json_with_its_snapshot_and_its_paths(running: Running) -> None:
    response = await running.get("/v1/search", q="the river", k=1)
    assert response.status_code == 200
    answer = response.json()
    assert answer["snapshot"]["positions"] == "0:7"
    assert answer["snapshot"]["graph_position"] == 3
    assert [hit["rank"] for hit in answer["hits"]] == [1]
    assert answer["hits"][0]["path"][0]["from"] == "river"
    assert answer["retrieval_id"].startswith("r_")


async def test_a_question_in_the_body_is_the_same_question(running: Running) -> None:
    response = await running.http.post("/v1/search", json={"q": "the river", "k": 2})
    assert len(response.json()["hits"]) == 2


async def test_a_client_that_accepts_events_gets_frames(running: Running) -> None:
    response = await running.http.get("/v1/search", params={"q": "river"}, headers={"Accept": "text/event-stream"})
    assert response.headers["content-type"].startswith("text/event-stream")
    frames = events(response)
    assert [name for name, _, _ in frames] == ["meta", "stage", "hit", "hit", "done"]
    resumed = await running.http.get(
        "/v1/search", params={"q": "river"}, headers={"Accept": "text/event-stream", "Last-Event-ID": frames[2][1]}
    )
    assert events(resumed) == frames[3:]


async def test_frames_that_are_gone_are_replaced_by_a_new_retrieval(running: Running) -> None:
    headers = {"Accept": "text/event-stream", "Last-Event-ID": "r_gone.4"}
    frames = events(await running.http.get("/v1/search", params={"q": "river"}, headers=headers))
    assert [name for name, _, _ in frames] == ["reset", "meta", "stage", "hit", "hit", "done"]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"q": "x", "k": 0}, "`k`"),
        ({"q": "x", "k": "many"}, "'many'"),
        ({"q": "  "}, "`q`"),
        ({}, "`q` is missing"),
        ({"q": "x", "mode": "magic"}, "'magic'"),
        ({"q": "x", "kk": 3}, "'kk'"),
        ({"q": "x", "wait_seconds": 3600}, "`wait_seconds`"),
    ],
)
async def test_a_search_that_does_not_fit_is_refused_with_a_sentence(
    running: Running, params: dict[str, Any], says: str
) -> None:
    response = await running.get("/v1/search", **params)
    assert response.status_code == 422
    assert says in problem(response)["detail"]


@pytest.mark.parametrize(("content", "status"), [(b"{nonsense", 400), (b"[]", 422), (b"x" * 300_000, 413)])
async def test_a_body_that_is_no_search_is_refused(running: Running, content: bytes, status: int) -> None:
    headers = {"Content-Type": "application/json"}
    assert problem(await running.http.post("/v1/search", content=content, headers=headers))["status"] == status


async def test_a_body_without_length_is_cut_off_at_the_limit(running: Running) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(1_000):
            yield b" " * 1_024

    response = await running.http.post("/v1/search", content=endless(), headers={"Content-Type": "application/json"})
    assert problem(response)["status"] == 413


async def test_what_is_not_there_and_what_is_not_taken_are_problems_too(running: Running) -> None:
    assert "/v1/nothing" in problem(await running.get("/v1/nothing"))["detail"]
    response = await running.http.patch("/v1/search")
    assert response.status_code == 405
    assert response.headers["allow"] == "GET, POST"
    assert "GET, POST" in problem(response)["detail"]


async def test_a_search_no_channel_could_answer_is_a_503(running: Running) -> None:
    running.engine.fail_at, running.engine.failure = 0, SearchUnanswered("Both indexes are unreadable.")
    response = await running.get("/v1/search", q="river")
    assert problem(response)["detail"] == "Both indexes are unreadable."
    assert response.headers["retry-after"]
    running.engine.failure = TransientStoreError("Could not read the texts: the disk is gone")
    assert problem(await running.get("/v1/search", q="river"))["status"] == 503


async def test_the_unforeseen_is_a_500_that_tells_no_secrets(running: Running) -> None:
    running.engine.fail_at, running.engine.failure = 0, RuntimeError("password=hunter2")
    body = problem(await running.get("/v1/search", q="river"))
    assert body["status"] == 500
    assert "hunter2" not in json.dumps(body)


async def test_a_search_after_a_token_waits_until_it_is_reached(running: Running) -> None:
    running.engine.reader.put(p0=(8, 3))
    answer = (await running.get("/v1/search", q="river", after="0:8", wait_seconds=5)).json()
    assert answer["snapshot"]["positions"] == "0:8"


async def test_a_token_that_is_not_reached_in_time_is_an_honest_503(running: Running) -> None:
    response = await running.get("/v1/search", q="river", after="0:99", wait_seconds=0.05)
    body = problem(response)
    assert (body["status"], body["title"], body["reached"]) == (503, "Not there yet", "0:7")
    assert response.headers["retry-after"]
    headers = {"Accept": "text/event-stream"}
    params: dict[str, Any] = {"q": "river", "after": "0:99", "wait_seconds": 0.01}
    assert problem(await running.http.get("/v1/search", params=params, headers=headers))["status"] == 503


async def test_the_graph_must_have_the_write_too_where_the_mode_uses_it(running: Running) -> None:
    running.engine.reader.put(p0=(8, 4))
    params: dict[str, Any] = {"q": "river", "after": "0:8", "wait_seconds": 0.2}
    assert (await running.get("/v1/search", mode="keyword", **params)).status_code == 200
    body = problem(await running.get("/v1/search", mode="graph", **params))
    assert "graph" in body["detail"]


async def test_a_malformed_token_is_a_400(running: Running) -> None:
    assert "0:17,3:1042" in problem(await running.get("/v1/search", q="x", after="yesterday"))["detail"]


async def test_a_retrieval_can_be_looked_up_at_once(running: Running) -> None:
    answer = (await running.get("/v1/search", q="river")).json()
    record = (await running.get(f"/v1/retrievals/{answer['retrieval_id']}")).json()
    assert record["query"] == "river"
    assert [hit["chunk_id"] for hit in record["hits"]] == [hit["chunk_id"] for hit in answer["hits"]]
    assert record["snapshot"]["positions"] == "0:7"
    assert record["hits"][0]["source"] == {"topic": "thalweg.documents.v1", "partition": 0, "offset": 1}
    assert problem(await running.get("/v1/retrievals/r_unknown"))["status"] == 404


async def test_a_document_is_shown_with_its_text(running: Running) -> None:
    document = (await running.get("/v1/documents/notes/river.md", collection="a")).json()
    assert document["title"] == "River"
    assert "The river is high." in document["text"]
    assert [passage["text"] for passage in document["passages"]] == ["The river is high. Ada measured it.", "It fell."]
    encoded = (await running.http.get("/v1/documents/notes%2Friver.md?collection=a")).json()
    assert encoded == document


async def test_a_status_is_told_from_a_document_whose_id_ends_so(running: Running) -> None:
    assert (await running.get("/v1/documents/ada/status", collection="a")).json()["status"] == "indexed"
    document = (await running.http.get("/v1/documents/reports%2Fstatus?collection=a")).json()
    assert document["title"] == "Report"
    status = (await running.http.get("/v1/documents/reports%2Fstatus/status?collection=a")).json()
    assert (status["id"], status["status"]) == ("reports/status", "indexed")


async def test_a_status_tells_pending_unknown_and_indexed(running: Running) -> None:
    indexed = (await running.get("/v1/documents/ada/status", collection="a", position="0:5")).json()
    assert (indexed["status"], indexed["searchable"], indexed["in_graph"]) == ("indexed", True, True)
    pending = (await running.get("/v1/documents/ada/status", collection="a", position="0:12")).json()
    assert (pending["status"], pending["searchable"]) == ("pending", True)
    assert (await running.get("/v1/documents/nobody/status", collection="a")).json()["status"] == "unknown"


async def test_documents_are_listed_page_by_page(running: Running) -> None:
    first = (await running.get("/v1/documents", collection="a", limit=2)).json()
    assert [each["id"] for each in first["documents"]] == ["ada", "notes/river.md"]
    second = (await running.get("/v1/documents", collection="a", limit=2, cursor=first["next_cursor"])).json()
    assert [each["id"] for each in second["documents"]] == ["reports/status"]
    assert second["next_cursor"] is None


async def test_what_is_not_indexed_is_not_found(running: Running) -> None:
    assert "/status" in problem(await running.get("/v1/documents/nobody"))["detail"]
    assert problem(await running.get("/v1/chunks/none"))["status"] == 404
    assert problem(await running.get("/v1/nodes/none"))["status"] == 404


async def test_a_chunk_is_shown_with_its_passage_and_without_its_vector(running: Running) -> None:
    chunk_id = PAGES[0].chunks()[0][0]
    chunk = (await running.get(f"/v1/chunks/{chunk_id}")).json()
    assert chunk["text"] == "The river is high."
    assert chunk["parent_text"] == "The river is high. Ada measured it."
    assert "vector" not in chunk


async def test_an_entity_is_found_by_its_name_and_by_its_id(running: Running) -> None:
    node = (await running.get("/v1/nodes/ÁDA", collection="a")).json()["node"]
    assert (node["kind"], node["label"]) == ("entity", "Ada")
    entity = (await running.get(f"/v1/nodes/{entity_id('a', 'ada')}")).json()
    kinds = {(each["edge"]["kind"], each["node"]["kind"]) for each in entity["neighbours"]}
    assert kinds == {("about", "document"), ("mentions", "chunk")}


async def test_a_subgraph_holds_both_ends_of_every_edge(running: Running) -> None:
    graph = (await running.get("/v1/graph", node="a/ada", depth=3)).json()
    nodes = {node["id"] for node in graph["nodes"]}
    assert {"a/ada", "a/notes/river.md"} <= nodes
    assert all(edge["from"] in nodes and edge["to"] in nodes for edge in graph["edges"])
    small = (await running.get("/v1/graph", node="a/ada", depth=3, limit=2)).json()
    assert len(small["nodes"]) == 2
    assert small["truncated"]
    links = (await running.get("/v1/graph", node=PAGES[1].chunks()[0][0], kinds="links_to")).json()
    assert [edge["kind"] for edge in links["edges"]] == ["links_to"]


async def test_writes_are_refused_while_kafka_is_away_and_searches_go_on(running: Running) -> None:
    response = await running.http.post("/v1/documents", json={"id": "a", "content": "text"})
    assert problem(response)["status"] == 503
    assert response.headers["retry-after"]
    batch = await running.http.post("/v1/documents", json=[{"id": "a", "content": "text"}])
    assert problem(batch)["status"] == 503
    assert (await running.http.delete("/v1/documents/a")).status_code == 503
    assert (await running.get("/v1/search", q="river")).status_code == 200
    ready = await running.get("/readyz")
    assert (ready.status_code, ready.json()["kafka"]) == (200, "unreachable")


@pytest.mark.parametrize(
    ("request_", "status", "says"),
    [
        ({"json": {"content": "text"}}, 422, "id"),
        ({"json": {"id": "a"}}, 422, "content"),
        ({"json": {"id": "a", "content": " "}}, 422, "empty"),
        ({"json": {"id": "a", "content": 7}}, 422, "content"),
        ({"json": {"id": "a", "content": "x", "content_type": "video/mp4"}}, 415, "text/markdown"),
        ({"json": {"id": "a", "content": "x" * 2_000}}, 413, "limit"),
        ({"json": {"documents": "all"}}, 422, "documents"),
        ({"json": []}, 422, "1 to"),
        ({"content": b'{"id": "a"', "headers": {"Content-Type": "application/json"}}, 400, "JSON"),
        ({"content": b"text", "headers": {"Content-Type": "text/plain"}}, 422, "?id="),
        ({"content": b"text", "params": {"id": "a"}}, 415, "Content-Type"),
        ({"data": {"id": "a"}}, 415, "application/json"),
        ({"content": b"text", "params": {"id": "a"}, "headers": {"Content-Type": "image/png"}}, 415, "image/png"),
        (
            {"content": b"t", "params": {"id": "a", "collection": "x/y"}, "headers": {"Content-Type": "text/plain"}},
            422,
            "slash",
        ),
        ({"files": {"file": ("a.mp4", b"film", "video/mp4")}}, 415, "video/mp4"),
        ({"files": {"file": ("a.md", b"x")}, "data": {"colour": "red"}}, 422, "colour"),
        ({"data": {"collection": "a"}, "files": {"file": ("", b"")}}, 422, ""),
    ],
)
async def test_a_document_the_worker_would_not_take_is_refused_before_it_is_published(
    tmp_path: Path, request_: dict[str, Any], status: int, says: str
) -> None:
    settings = ServiceSettings.model_validate(
        {
            "storage": {"data_dir": tmp_path},
            "limits": {"max_document_bytes": 1_000},
            "service": {"provenance_flush_seconds": 0},
        }
    )
    app = create_app(settings, load=ScriptedEngine)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as http,
    ):
        body = problem(await http.post("/v1/documents", **request_))
    assert body["status"] == status
    assert says in body["detail"]


async def test_the_service_is_alive_before_it_is_ready_and_says_what_is_missing(tmp_path: Path) -> None:
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False) as running:
        assert (await running.get("/livez")).text == "alive\n"
        await wait_until(lambda: running.service.retriever.encoder is not None)
        await wait_until(lambda: "start the worker" in (running.service.keeper.problem or ""))
        response = await running.get("/readyz")
        assert response.status_code == 503
        assert "start the worker" in response.json()["reasons"][0]
        search = await running.get("/v1/search", q="river")
        assert problem(search)["title"] == "Not ready"
        assert search.headers["retry-after"]
        assert (await running.get("/v1/status")).json()["generation"] is None
        make_generation(tmp_path)
        await wait_until(lambda: running.service.readiness().ready)
        assert (await running.get("/v1/search", q="river")).status_code == 200


async def test_a_model_that_is_not_the_indexes_own_is_told_and_not_searched_with(tmp_path: Path) -> None:
    make_generation(tmp_path, digest="another-model")
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False) as running:
        await wait_until(lambda: running.service.keeper.current and running.service.retriever.encoder)
        assert "THALWEG_EMBEDDING__MODEL" in (await running.get("/readyz")).json()["reasons"][0]
        assert (await running.get("/v1/search", q="river")).status_code == 503
        assert (await running.get("/v1/search", q="river", mode="keyword")).status_code == 200


async def test_a_model_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine(encoder_failure=OSError("no such model"))
    async with service_over(tmp_path, engine, until_ready=False) as running:
        await wait_until(lambda: "no such model" in str(running.service.readiness().reasons))


async def test_with_a_key_everything_but_the_probes_needs_it(tmp_path: Path) -> None:
    make_generation(tmp_path)
    key = "a-key-of-sixteen-or-more"
    async with service_over(tmp_path, ScriptedEngine(), api_key=key) as running:
        assert (await running.get("/readyz")).status_code == 200
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": key}):
            response = await running.http.get("/v1/search", params={"q": "x"}, headers=headers)
            assert problem(response)["status"] == 401
            assert response.headers["www-authenticate"] == "Bearer"
        assert (await running.http.get("/metrics")).status_code == 401
        headers = {"Authorization": f"Bearer {key}", "Host": "search.example.org"}
        assert (await running.http.get("/v1/search", params={"q": "x"}, headers=headers)).status_code == 200


async def test_without_a_key_web_pages_cannot_reach_in(running: Running) -> None:
    rebound = await running.http.get("/v1/status", headers={"Host": "evil.example:8420"})
    assert problem(rebound)["status"] == 421
    foreign = await running.http.post(
        "/v1/documents", json={"id": "a", "content": "x"}, headers={"Origin": "https://evil.example"}
    )
    assert problem(foreign)["status"] == 403
    own = await running.http.post(
        "/v1/documents", json={"id": "a", "content": "x"}, headers={"Origin": "http://localhost:8420"}
    )
    assert own.status_code == 503


async def test_metrics_tell_positions_age_and_searches(running: Running) -> None:
    await running.get("/v1/search", q="river")
    text = (await running.get("/metrics")).text
    for line in (
        'thalweg_store_position{partition="0",store="lance",topic="thalweg.documents.v1"} 7.0',
        'thalweg_store_position{partition="0",store="graph_view",topic="thalweg.graph.g0001.v1"} 3.0',
        'thalweg_search_seconds_count{mode="hybrid",stage="total"} 1.0',
        'thalweg_search_seconds_count{mode="hybrid",stage="vector"} 1.0',
        "thalweg_sse_clients 0.0",
        "thalweg_snapshot_age_seconds ",
        "thalweg_provenance_dropped_total 0.0",
        "thalweg_provenance_buffered 1.0",
        "thalweg_ready 1.0",
    ):
        assert line in text


async def test_the_status_is_complete(running: Running) -> None:
    status = (await running.get("/v1/status")).json()
    assert status["generation"] == "g0001"
    assert status["positions"] == "0:7"
    assert status["graph_position"] == status["graph_base_position"] == 3
    assert status["counts"]["documents"] == 3
    assert status["counts"]["graph_documents"] == 3
    assert status["memory_bytes"] > 0
    assert status["lag_records"] is None


async def test_formats_are_listed(running: Running) -> None:
    formats = (await running.get("/v1/formats")).json()
    assert "text/markdown" in [each["media_types"][0] for each in formats]


async def test_the_description_of_the_interface_is_complete(running: Running) -> None:
    described = (await running.get("/openapi.json")).json()
    assert set(described["paths"]) == {
        "/v1/search", "/v1/documents", "/v1/documents/{document_id}", "/v1/formats", "/v1/chunks/{chunk_id}",
        "/v1/nodes/{node_id}", "/v1/graph", "/v1/retrievals/{retrieval_id}", "/livez", "/readyz", "/metrics",
        "/v1/status",
    }  # fmt: skip
    answer = described["paths"]["/v1/search"]["get"]["responses"]["200"]["content"]
    assert set(answer) >= {"application/json", "text/event-stream"}
    assert "event: hit" in answer["text/event-stream"]["example"]


async def test_documents_that_were_dead_lettered_say_why(running: Running) -> None:
    from schemas.receipts import Receipt

    running.service.keeper.receipts.add(
        Receipt(
            key="a/broken", outcome="dead_lettered", partition=0, offset=6, generation="g0001", reason="undecodable",
            message="The content is not UTF-8.",
        )
    )  # fmt: skip
    status = (await running.get("/v1/documents/broken/status", collection="a")).json()
    assert (status["status"], status["message"]) == ("dead_lettered", "The content is not UTF-8.")
    assert status["position"] == "0:6"


async def test_a_deleted_document_is_not_shown(running: Running) -> None:
    del running.engine.reader.pages[DocumentKey("a", "ada")]
    running.engine.reader.put(p0=(9, 3))
    await wait_until(lambda: running.service.snapshot().info().positions == "0:9")
    assert (await running.get("/v1/documents/ada", collection="a")).status_code == 404
