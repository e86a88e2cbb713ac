"""`/v1/communities`: lists with pages, one community, what is gone since, and none yet."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from query_api.index.store_opening import GraphFile
from tests.support.fakes.curation import curation_log
from tests.support.fakes.engine import ScriptedEngine, make_generation
from tests.support.fakes.service import Running, problem, service_over
from tests.support.fixtures.communities import ENGINES, RIVERS, two_themes, view_of
from tests.support.waiting import eventually


@pytest.fixture
async def themes(tmp_path: Path) -> AsyncIterator[Running]:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    pages = [*two_themes("a"), *two_themes("b")]
    engine.reader.put(*pages, p0=(7, 3))
    engine.graph_file = GraphFile("s1", 3)
    engine.graphs["s1"] = [page.contribution() for page in pages]
    engine.communities = view_of(pages)
    async with service_over(tmp_path, engine) as service:
        await eventually(lambda: service.service.snapshot().communities is not None)
        yield service


async def test_communities_are_listed_by_collection_from_coarse_to_fine(themes: Running) -> None:
    page = (await themes.get("/v1/communities")).json()
    levels = ("coarse", "medium", "fine")
    order = [(each["collection"], levels.index(each["level"]), -each["size"]) for each in page["communities"]]
    assert order == sorted(order)
    assert {each["collection"] for each in page["communities"]} == {"a", "b"}
    assert (page["graph_position"], page["next_cursor"]) == (3, None)
    assert page["made_at"].startswith("2025-10-")


async def test_pages_hold_each_community_once(themes: Running) -> None:
    whole = (await themes.get("/v1/communities")).json()["communities"]
    found, cursor = [], None
    while True:
        page = (await themes.get("/v1/communities", limit=1, **({"cursor": cursor} if cursor else {}))).json()
        found += page["communities"]
        assert page["total"] == len(whole)
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert found == whole
    assert len(whole) > 2


async def test_they_are_filtered_by_collection_level_and_words(themes: Running) -> None:
    async def found(**params: str) -> list[tuple[str, str]]:
        page = (await themes.get("/v1/communities", **params)).json()
        return [(each["collection"], each["level"]) for each in page["communities"]]

    assert set(await found(collection="a", level="medium")) == {("a", "medium")}
    assert await found(q="elbe havel", level="medium") == [("a", "medium"), ("b", "medium")]
    assert await found(q="elbe otto", level="medium") == []
    assert await found(collection="nowhere") == []


async def test_a_community_shows_members_parent_and_summary_with_sources(themes: Running) -> None:
    page = (await themes.get("/v1/communities", level="medium", collection="a", q="elbe")).json()
    [listed] = page["communities"]
    one = (await themes.get(f"/v1/communities/{listed['id']}")).json()
    assert {member["label"] for member in one["members"]} == set(RIVERS)
    assert one["members"][0]["label"] == "Elbe"
    first = (await themes.get(f"/v1/communities/{listed['id']}", limit=2)).json()
    assert first["members"] == one["members"][:2]
    assert one["parent_community"]["id"] == one["parent"] == listed["parent"]
    parent = (await themes.get(f"/v1/communities/{one['parent']}")).json()
    assert listed["id"] in {child["id"] for child in parent["children"]}
    for sentence in one["summary"]:
        chunk = (await themes.get(f"/v1/chunks/{sentence['chunk_id']}")).json()
        assert sentence["text"] in chunk["text"]
        assert chunk["document_id"] == sentence["document_id"]
    node = (await themes.get(f"/v1/nodes/{one['members'][0]['id']}")).json()["node"]
    assert (node["kind"], node["collection"]) == ("entity", "a")
    assert len((await themes.get(f"/v1/communities/{listed['id']}", limit=2)).json()["members"]) == 2


async def test_members_are_shown_as_people_merged_and_called_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    pages = [replace(page, types=dict.fromkeys(RIVERS, "place")) for page in two_themes("a")]
    engine.reader.put(*pages, p0=(7, 3))
    engine.graph_file = GraphFile("s1", 3)
    engine.graphs["s1"] = [page.contribution() for page in pages]
    engine.communities = view_of(pages)
    async with service_over(tmp_path, engine) as service:
        await eventually(lambda: service.service.snapshot().communities is not None)
        log = curation_log(service, monkeypatch)
        listed = (await service.get("/v1/communities", q="elbe")).json()["communities"][0]
        merge = {"collection": "a", "entities": ["Elbe", "Oder"], "name": "Two Rivers"}
        answer = await service.http.post("/v1/entities/merge", json=merge)
        assert answer.status_code == 202, answer.text
        assert log.records
        await eventually(lambda: service.service.snapshot().curation.of("a").merges)
        await service.get("/v1/entities", after_edit=answer.json()["position"])
        members = (await service.get(f"/v1/communities/{listed['id']}")).json()["members"]
    assert {each["label"] for each in members} == {"Two Rivers", "Spree", "Havel"}
    assert {each["type"] for each in members} == {"place"}


async def test_what_was_deleted_since_is_not_shown(themes: Running) -> None:
    """The communities are a moment older than the stores: a deleted document's sentences and names go at once."""
    page = (await themes.get("/v1/communities", level="medium", collection="a", q="otto")).json()
    engine = themes.engine
    engine.reader.pages = {key: page for key, page in engine.reader.pages.items() if "engines" not in key.document_id}
    engine.reader.put(p0=(8, 4))
    engine.graph_file = GraphFile("s2", 4)
    engine.graphs["s2"] = [page.contribution() for page in engine.reader.pages.values()]
    await eventually(lambda: themes.service.snapshot().graph.position == 4)
    await eventually(lambda: not any("engines" in key.document_id for key in themes.service.snapshot().text.pages))
    listed = page["communities"][0]
    assert listed["summary"]
    one = (await themes.get(f"/v1/communities/{listed['id']}")).json()
    assert (one["summary"], one["members"]) == ([], [])
    assert not any(name in str(one["summary"]) for name in ENGINES)


async def test_none_yet_says_what_to_do(running: Running) -> None:
    for path in ("/v1/communities", "/v1/communities/x"):
        answer = await running.get(path)
        assert answer.status_code == 503
        assert "is one running?" in problem(answer)["detail"]
        assert int(answer.headers["retry-after"]) > 0


async def test_bad_requests_are_problems(themes: Running) -> None:
    assert problem(await themes.get("/v1/communities/none"))["status"] == 404
    assert problem(await themes.get("/v1/communities", level="huge"))["status"] == 422
    for cursor in ("x", "%%%", "bm90IGpzb24", "WzEsMl0"):
        assert problem(await themes.get("/v1/communities", cursor=cursor))["status"] == 400


async def test_newer_communities_take_the_place_of_those_before(themes: Running) -> None:
    themes.engine.communities = view_of(two_themes("b"), name="000000000004-2")
    await eventually(lambda: themes.service.snapshot().communities.name == "000000000004-2")
    assert (await themes.get("/v1/communities", collection="a")).json()["communities"] == []
