"""People's edits on a real log: searched, drawn, decided, and there again for a service that starts later."""

from typing import Any

from tests.integration.query_service.live_service import LiveService, serving, settings_for
from tests.support.waiting import eventually

RIVER = "# River\n\nIn Lisbon the gauge was read by Maria Okafor. The levels were checked by Maria Okafro."


async def accepted(live: LiveService, method: str, path: str, body: Any = None) -> dict[str, Any]:
    answer = await live.http.request(method, path, json=body)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def listed(live: LiveService, path: str, of: str, **params: Any) -> list[dict[str, Any]]:
    answer = await live.http.get(path, params=params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()[of]
    return found


async def test_a_node_is_searched_until_it_is_deleted(live: LiveService) -> None:
    node = {"id": "petrel", "label": "Team Petrel", "type": "team", "text": "Petrel looks after the drawbridge."}
    made = await accepted(live, "POST", "/v1/nodes", node)
    (hit,) = (await live.search("who looks after the drawbridge", after=made["token"], wait_seconds=10))["hits"]
    assert (hit["document_id"], hit["title"], hit["metadata"]["node"]) == ("node:petrel", "Team Petrel", "petrel")
    assert "{partition}:{offset}".format(**hit["source"]) == made["position"]

    changed = await accepted(live, "PUT", "/v1/nodes/petrel", {"label": "Petrels", "text": "They mend the sluice."})
    hits = (await live.search("who mends the sluice", after=changed["token"], wait_seconds=10))["hits"]
    assert [each["title"] for each in hits] == ["Petrels"]

    gone = await accepted(live, "DELETE", "/v1/nodes/petrel")
    assert (await live.search("sluice", after=gone["token"], wait_seconds=10))["hits"] == []
    assert await listed(live, "/v1/nodes", "nodes", after=gone["token"]) == []


async def test_edits_are_there_for_a_service_that_starts_later(live: LiveService) -> None:
    token = await live.put("river.md", RIVER)
    await live.search("river", after=token, wait_seconds=10)
    await accepted(live, "POST", "/v1/nodes", {"id": "petrel", "label": "Team Petrel"})
    edge = {"id": "e1", "source": "petrel", "target": "river.md", "predicate": "measures"}
    last = await accepted(live, "POST", "/v1/edges", edge)
    settings = settings_for(live.kafka, live.service.settings.kafka.topic_prefix, live.data_dir)
    async with serving(settings) as (http, app):
        await eventually(lambda: app.state.service.snapshots.current is not None)
        later = LiveService(http, app, live.names, live.kafka, live.data_dir)
        await later.search("river", after=token, wait_seconds=10)
        (found,) = await listed(later, "/v1/edges", "edges", after=last["token"])
        assert (found["target"], found["missing"]) == ("default/river.md", [])
        graph = (await http.get("/v1/graph", params={"node": "petrel"})).json()
        assert [each["label"] for each in graph["edges"] if each["kind"] == "hand_made"] == ["measures"]


async def test_two_names_become_one_entity_and_two_again(live: LiveService) -> None:
    token = await live.put("river.md", RIVER)
    await live.search("river", after=token, wait_seconds=10)
    names = {each["label"] for each in await listed(live, "/v1/entities", "entities", after=token)}
    assert {"Maria Okafor", "Maria Okafro"} <= names
    (review,) = await listed(live, "/v1/reviews", "reviews")
    assert {each["name"] for each in review["entities"]} == {"Maria Okafor", "Maria Okafro"}
    decided = await accepted(live, "POST", f"/v1/reviews/{review['id']}", {"decision": "accept", "by": "ada"})
    entities = await listed(live, "/v1/entities", "entities", after_edit=decided["position"])
    assert [each["names"] for each in entities if "Maria" in each["label"]] == [2]
    assert await listed(live, "/v1/reviews", "reviews") == []
    undone = await accepted(live, "POST", f"/v1/reviews/{review['id']}", {"decision": "undo"})
    assert [each["id"] for each in await listed(live, "/v1/reviews", "reviews", after=undone["position"])] == [
        review["id"]
    ]
