"""Requests that name no collection: lists are of all, a thing is looked for in all, what is made needs the only one."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from query_api.app import create_app
from query_api.index.store_opening import GraphFile
from query_api.settings import ServiceSettings
from schemas.graph_edits import decision_id
from schemas.ids import DEFAULT_COLLECTION, entity_id, normalise_name
from schemas.research import NOTE_URI
from schemas.settings import StorageSettings
from tests.support.fakes.curation import CurationLog, curation_log
from tests.support.fakes.engine import ScriptedEngine, make_generation
from tests.support.fakes.service import Running, problem, service_over
from tests.support.fakes.text_stores import Page

SEVERAL = "several_collections"


def page(identifier: str, title: str, text: str, names: list[str], collection: str) -> Page:
    return Page(identifier, title, [[text]], names, collection=collection, types=dict.fromkeys(names, "person"))


PAGES = [
    page("ada.md", "Ada", "Ada measured the river with Ben.", ["Ada", "Ben"], "rivers"),
    page("index.md", "Rivers", "Ada is mentioned.", ["Ada"], "rivers"),
    page("cleo.md", "Cleo", "Cleo met Ada in the harbour.", ["Cleo", "Ada"], "towns"),
    page("index.md", "Towns", "Maria Okafor and M. Okafor live in a town.", ["Maria Okafor", "M. Okafor"], "towns"),
]
MARIA, INITIAL = (entity_id("towns", normalise_name(name)) for name in ("Maria Okafor", "M. Okafor"))


@asynccontextmanager
async def service_with(data_dir: Path, pages: list[Page], monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    make_generation(data_dir)
    engine = ScriptedEngine(hits=[])
    engine.reader.put(*pages, p0=(7, 3))
    engine.graph_file = GraphFile("s1", 3)
    engine.graphs["s1"] = [each.contribution() for each in pages]
    async with service_over(data_dir, engine) as running:
        running.log = curation_log(running, monkeypatch)  # type: ignore[attr-defined]
        yield running


@pytest.fixture
async def several(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    async with service_with(tmp_path, PAGES, monkeypatch) as running:
        yield running


@pytest.fixture
async def one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    pages = [each for each in PAGES if each.collection == "towns"]
    async with service_with(tmp_path, pages, monkeypatch) as running:
        yield running


@pytest.fixture
async def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Running]:
    async with service_with(tmp_path, [], monkeypatch) as running:
        yield running


def log_of(running: Running) -> CurationLog:
    log: CurationLog = running.log  # type: ignore[attr-defined]
    return log


async def answer(running: Running, path: str, **params: Any) -> dict[str, Any]:
    response = await running.http.get(path, params=params or None)
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def send(running: Running, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    response = await running.http.request(method, path, json=body)
    assert response.status_code == 202, response.text
    accepted: dict[str, Any] = response.json()
    if accepted.get("token"):
        await answer(running, "/v1/nodes", after=accepted["token"])
    return accepted


async def refused(running: Running, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    found = problem(await running.http.request(method, path, json=body))
    assert (found["status"], found.get("reason")) == (422, SEVERAL), found
    return found


def optional_collections(document: dict[str, Any]) -> Iterator[tuple[str, str | None]]:
    """(method and path, what `collection` is where it is left out) of each operation that can do without it."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            for parameter in operation.get("parameters", ()):
                if parameter["name"] == "collection" and not parameter["required"]:
                    yield f"{method.upper()} {path}", parameter["schema"].get("default")
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
            body = document["components"]["schemas"].get(name, {})
            if "collection" in body.get("properties", {}) and "collection" not in body.get("required", ()):
                yield f"{method.upper()} {path}", body["properties"]["collection"].get("default")


def test_no_route_but_document_writes_has_a_default(tmp_path: Path) -> None:
    app = create_app(ServiceSettings(storage=StorageSettings(data_dir=tmp_path)))
    found = list(optional_collections(app.openapi()))
    assert len(found) > 25
    assert {route: value for route, value in found if value is not None} == dict.fromkeys(
        ("POST /v1/documents", "PUT /v1/documents/{document_id}"), DEFAULT_COLLECTION
    )


async def test_lists_without_a_collection_name_those_of_all(several: Running) -> None:
    await send(several, "POST", "/v1/nodes", {"id": "ferry", "label": "Ferry", "collection": "rivers"})
    await send(several, "POST", "/v1/nodes", {"id": "ferry", "label": "Ferry", "collection": "towns"})
    edge = {"source": "ferry", "target": "Ada", "predicate": "carries"}
    for collection in ("rivers", "towns"):
        await send(several, "POST", "/v1/edges", edge | {"id": "e1", "collection": collection})
    pair = {"decision": "reject", "collection": "towns"}
    for path, members in (
        ("/v1/documents", "documents"),
        ("/v1/entities", "entities"),
        ("/v1/nodes", "nodes"),
        ("/v1/nodes?prefix=", "nodes"),
        ("/v1/edges", "edges"),
    ):
        found = (await several.http.get(path)).json()[members]
        assert {each["collection"] for each in found} == {"rivers", "towns"}, path
    (review,) = (await answer(several, "/v1/reviews"))["reviews"]
    assert (review["id"], review["collection"]) == (decision_id([MARIA, INITIAL]), "towns")
    await send(several, "POST", f"/v1/reviews/{review['id']}", pair)
    (decided,) = (await answer(several, "/v1/reviews", state="decided"))["reviews"]
    assert (decided["state"], decided["collection"]) == ("rejected", "towns")


@pytest.mark.parametrize("path", ["/v1/documents", "/v1/entities", "/v1/nodes", "/v1/nodes?prefix=&kind=document"])
async def test_pages_of_all_collections_hold_each_once(several: Running, path: str) -> None:
    for collection in ("rivers", "towns"):
        await send(several, "POST", "/v1/nodes", {"id": "ferry", "label": "Ferry", "collection": collection})

    async def listed(**params: Any) -> tuple[list[tuple[str, str]], str | None]:
        page = (
            await several.http.get(path, params=several.http.build_request("GET", path).url.params.merge(params))
        ).json()
        (members,) = (page[each] for each in ("documents", "entities", "nodes") if each in page)
        return [(each["id"], each["collection"]) for each in members], page["next_cursor"]

    everything, _ = await listed()
    found: list[tuple[str, str]] = []
    cursor: str | None = ""
    while cursor is not None:
        some, cursor = await listed(limit=1, **({"cursor": cursor} if cursor else {}))
        found += some
    assert found == everything
    assert len(found) == len(set(found)) > 1


@pytest.mark.parametrize(
    ("path", "collection"),
    [
        ("/v1/entities/Cleo", "towns"),
        ("/v1/entities/Ben", "rivers"),
        ("/v1/documents/cleo.md", "towns"),
        ("/v1/documents/cleo.md/status", "towns"),
        ("/v1/paths?from=Ada&to=Cleo", "towns"),
        ("/v1/paths?from=Ada&to=ada.md", "rivers"),
    ],
)
async def test_thing_in_one_collection_is_shown(several: Running, path: str, collection: str) -> None:
    assert (await answer(several, path))["collection"] == collection


@pytest.mark.parametrize(
    ("path", "collection"),
    [("/v1/nodes/Cleo", "towns"), ("/v1/nodes/ada.md", "rivers"), (f"/v1/nodes/{entity_id('towns', 'ada')}", "towns")],
)
async def test_node_in_one_collection_is_shown(several: Running, path: str, collection: str) -> None:
    assert (await answer(several, path))["node"]["collection"] == collection
    drawn = await answer(several, "/v1/graph", node=path.removeprefix("/v1/nodes/"))
    assert drawn["nodes"][0]["collection"] == collection


@pytest.mark.parametrize(
    "path",
    [
        "/v1/entities/Ada",
        "/v1/documents/index.md",
        "/v1/documents/index.md/status",
        "/v1/nodes/Ada",
        "/v1/graph?node=index.md",
        "/v1/graph/export",
        "/v1/paths?from=Ada&to=index.md",
    ],
)
async def test_thing_in_several_lists_those_to_choose_from(several: Running, path: str) -> None:
    found = await refused(several, "GET", path)
    assert found["collections"] == ["rivers", "towns"]
    assert "name one of them as `collection`: rivers, towns" in found["detail"]
    chosen = {**several.http.build_request("GET", path).url.params, "collection": "towns"}
    assert (await several.http.get(path.partition("?")[0], params=chosen)).status_code == 200


@pytest.mark.parametrize(
    "path", ["/v1/entities/Zoe", "/v1/documents/zoe.md", "/v1/nodes/Zoe", "/v1/paths?from=Zoe&to=Ada", "/v1/edges/e7"]
)
async def test_missing_thing_says_where_was_looked(several: Running, path: str) -> None:
    everywhere = problem(await several.http.get(path))
    assert everywhere["status"] == 404
    if path != "/v1/edges/e7":
        assert "in any of the 2 collections (rivers, towns)" in everywhere["detail"]
    parameters = {**several.http.build_request("GET", path).url.params, "collection": "towns"}
    named = problem(await several.http.get(path.partition("?")[0], params=parameters))
    assert (named["status"], "in the collection 'towns'" in named["detail"]) == (404, True)


async def test_ends_in_different_collections_have_no_path(several: Running) -> None:
    found = problem(await several.http.get("/v1/paths?from=Ben&to=Cleo"))
    assert (found["status"], found["detail"].startswith("No collection holds both ends")) == (404, True)


async def test_edits_of_what_is_there_go_to_its_collection(several: Running) -> None:
    review = decision_id([MARIA, INITIAL])
    made = [
        await send(several, "PUT", "/v1/entities/Cleo", {"type": "place"}),
        await send(several, "POST", "/v1/entities/merge", {"entities": ["Ada", "Ben"]}),
        await send(several, "POST", f"/v1/reviews/{review}", {"decision": "accept"}),
        await send(several, "POST", f"/v1/reviews/{review}", {"decision": "undo"}),
        await send(several, "POST", "/v1/nodes", {"id": "n1", "label": "N", "collection": "towns"}),
        await send(several, "PUT", "/v1/nodes/n1", {"label": "M"}),
        await send(
            several,
            "POST",
            "/v1/edges",
            {"id": "e1", "source": "n1", "target": "Cleo", "predicate": "knows", "collection": "towns"},
        ),
        await send(several, "PUT", "/v1/edges/e1", {"source": "n1", "target": "Cleo", "predicate": "meets"}),
        await send(several, "DELETE", "/v1/edges/e1"),
        await send(several, "DELETE", "/v1/nodes/n1"),
    ]
    assert [each["collection"] for each in made] == ["towns", "rivers", *["towns"] * 8]
    log = log_of(several)
    keys = [(each.key or b"").decode().partition("/")[0] for each in (*log.records, *log.documents)]
    assert keys == [each["collection"] for each in made]


async def test_edits_without_their_collection_change_nothing(several: Running) -> None:
    for collection in ("rivers", "towns"):
        await send(several, "POST", "/v1/nodes", {"id": "n1", "label": "N", "collection": collection})
    log = log_of(several)
    written = len(log.records), len(log.documents)
    for method, path, body in (
        ("POST", "/v1/nodes", {"label": "New"}),
        ("POST", "/v1/edges", {"source": "n1", "target": "Ada", "predicate": "knows"}),
        ("PUT", "/v1/nodes/n2", {"label": "New"}),
        ("PUT", "/v1/nodes/n1", {"label": "M"}),
        ("PUT", "/v1/edges/e2", {"source": "n1", "target": "Ada", "predicate": "knows"}),
        ("DELETE", "/v1/nodes/n1", None),
        ("PUT", "/v1/entities/Ada", {"type": "place"}),
    ):
        assert (await refused(several, method, path, body))["collections"] == ["rivers", "towns"], path
    apart = problem(await several.http.post("/v1/entities/merge", json={"entities": ["Ben", "Cleo"]}))
    assert (apart["status"], apart["reason"]) == (422, "missing_entity")
    assert "No collection holds all of these entities" in apart["detail"]
    assert (len(log.records), len(log.documents)) == written


async def test_what_is_made_goes_into_the_only_collection(one: Running) -> None:
    assert (await send(one, "POST", "/v1/nodes", {"id": "n1", "label": "N"}))["collection"] == "towns"
    edge = {"id": "e1", "source": "n1", "target": "Cleo", "predicate": "knows"}
    assert (await send(one, "POST", "/v1/edges", edge))["collection"] == "towns"
    assert (await answer(one, "/v1/edges/e1"))["collection"] == "towns"
    assert (await one.get("/v1/graph/export")).status_code == 200


async def test_empty_installation_answers_with_empty_lists(empty: Running) -> None:
    for path in ("/v1/documents", "/v1/entities", "/v1/reviews", "/v1/reviews?state=all", "/v1/nodes", "/v1/edges"):
        page = await answer(empty, path)
        assert [value for value in page.values() if value] == [], path
    assert (await empty.get("/v1/graph/export")).status_code == 200
    assert problem(await empty.get("/v1/entities/Ada"))["status"] == 404
    assert problem(await empty.get("/v1/documents/ada.md"))["status"] == 404
    made = await send(empty, "POST", "/v1/nodes", {"id": "n1", "label": "N"})
    assert made["collection"] == DEFAULT_COLLECTION


async def test_delete_of_what_only_others_hold_deletes_nothing(several: Running) -> None:
    found = await refused(several, "DELETE", "/v1/documents/cleo.md")
    assert found["collections"] == ["towns", DEFAULT_COLLECTION]
    assert "'default' holds no document 'cleo.md', but towns does" in found["detail"]
    assert log_of(several).documents == []
    await send(several, "DELETE", "/v1/documents/cleo.md?collection=default")
    await send(several, "DELETE", "/v1/documents/cleo.md?collection=towns")
    await send(several, "DELETE", "/v1/documents/unknown.md")
    keys = [each.key for each in log_of(several).documents]
    assert keys == [b"default/cleo.md", b"towns/cleo.md", b"default/unknown.md"]


async def test_documents_of_an_id_are_listed_with_their_collections(several: Running) -> None:
    found = (await answer(several, "/v1/documents", id="index.md"))["documents"]
    assert [(each["collection"], each["title"]) for each in found] == [("rivers", "Rivers"), ("towns", "Towns")]
    named = (await answer(several, "/v1/documents", id="index.md", collection="towns"))["documents"]
    assert [each["title"] for each in named] == ["Towns"]
    assert await answer(several, "/v1/documents", id="zoe.md") == {"documents": [], "next_cursor": None}


async def test_status_of_a_write_is_that_of_its_position(several: Running) -> None:
    later = await answer(several, "/v1/documents/cleo.md/status", position="0:99")
    assert (later["collection"], later["status"]) == (DEFAULT_COLLECTION, "pending")
    unknown = await answer(several, "/v1/documents/zoe.md/status")
    assert (unknown["collection"], unknown["status"]) == (DEFAULT_COLLECTION, "unknown")


NOTE = replace(page("note-1", "Ada", "Ada measured the river with Ben.", ["Ada", "Ben"], "research"), uri=NOTE_URI)


async def test_saved_notes_are_no_choice_beside_the_only_other_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rivers = [each for each in PAGES if each.collection == "rivers"]
    async with service_with(tmp_path, [*rivers, NOTE], monkeypatch) as running:
        assert (await send(running, "POST", "/v1/nodes", {"label": "Dee"}))["collection"] == "rivers"
        assert (await answer(running, "/v1/entities/Ada"))["collection"] == "rivers"
        assert (await answer(running, "/v1/paths", **{"from": "Ada", "to": "Ben"}))["collection"] == "rivers"
        assert (await answer(running, "/v1/entities/Ada", collection="research"))["collection"] == "research"
        assert (await answer(running, "/v1/documents/note-1"))["collection"] == "research"


async def test_a_collection_of_notes_alone_and_one_with_other_documents_are_chosen_as_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with service_with(tmp_path / "alone", [NOTE], monkeypatch) as running:
        assert (await answer(running, "/v1/entities/Ada"))["collection"] == "research"
    more = page("own.md", "Own", "Ada is here too.", ["Ada"], "research")
    async with service_with(tmp_path / "mixed", [PAGES[0], NOTE, more], monkeypatch) as running:
        refused = problem(await running.get("/v1/entities/Ada"))
        assert (refused["reason"], refused["collections"]) == (SEVERAL, ["research", "rivers"])
