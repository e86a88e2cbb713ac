"""Nodes and edges that people make: written as documents, checked before, shown with what documents say."""

import asyncio
from typing import Any

import msgspec
import pytest
from httpx import Response

from query_api.entities.hand_made import MadeId
from query_api.index.search_snapshot import Snapshot
from query_api.routes.edits import OWN_WRITE_SECONDS
from query_api.routes.nodes import _require_no_cycle
from query_api.service_context import Service
from schemas.graph_edits import EdgeEdit, NodeEdit
from schemas.ids import entity_id
from tests.support.fakes.curation import CurationLog
from tests.support.fakes.service import Running, problem

ADA = entity_id("a", "ada")
PETREL = {"collection": "a", "id": "petrel", "label": "Team Petrel", "type": "team", "text": "Petrel owns the boats."}


async def post(running: Running, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await running.http.post(path, json=body)
    assert answer.status_code == 202, answer.text
    accepted: dict[str, Any] = answer.json()
    return accepted


async def wait_for(running: Running, accepted: dict[str, Any]) -> None:
    answer = await running.get("/v1/nodes", after=accepted["token"])
    assert answer.status_code == 200, answer.text


async def test_a_node_is_made_read_changed_and_deleted(running: Running, log: CurationLog) -> None:
    made = await post(running, "/v1/nodes", PETREL | {"properties": {"size": 4}, "by": "ada"})
    assert (made["id"], made["position"], made["token"].split("@")[0]) == ("petrel", "0:8", "0:8")
    (document,) = log.documents
    assert document.key == b"a/node:petrel"
    envelope = msgspec.json.decode(document.value or b"")
    assert envelope["content_type"] == "application/vnd.thalweg.node+json"
    assert msgspec.json.decode(envelope["content"])["label"] == "Team Petrel"

    found = (await running.get("/v1/nodes/petrel", collection="a", after=made["token"])).json()
    assert (found["node"]["kind"], found["node"]["label"], found["node"]["type"]) == (
        "hand_made",
        "Team Petrel",
        "team",
    )
    assert found["hand_made"]["properties"] == {"size": 4}
    assert (found["hand_made"]["by"], found["hand_made"]["text"]) == ("ada", "Petrel owns the boats.")

    changed = NodeEdit(label="Petrels", type="team").model_dump(mode="json")
    answer = await running.http.put("/v1/nodes/petrel?collection=a", json=changed)
    assert answer.status_code == 202
    (listed,) = (await running.get("/v1/nodes", collection="a", after=answer.json()["token"])).json()["nodes"]
    assert (listed["label"], listed["properties"], listed["text"]) == ("Petrels", {}, "")

    deleted = await running.http.delete("/v1/nodes/petrel?collection=a")
    assert deleted.status_code == 202
    assert (log.documents[-1].key, log.documents[-1].value) == (b"a/node:petrel", None)
    await wait_for(running, deleted.json())
    assert problem(await running.get("/v1/nodes/petrel", collection="a"))["status"] == 404
    assert problem(await running.http.delete("/v1/nodes/petrel?collection=a"))["status"] == 404


async def test_an_edge_joins_what_people_made_to_what_documents_say(running: Running, log: CurationLog) -> None:
    await post(running, "/v1/nodes", PETREL)
    await post(
        running,
        "/v1/edges",
        {"collection": "a", "id": "e1", "source": "petrel", "target": "Ada", "predicate": "led_by", "weight": 0.5},
    )
    last = await post(
        running,
        "/v1/edges",
        {"collection": "a", "id": "e2", "source": "notes/river.md", "target": "petrel", "predicate": "names"},
    )
    await wait_for(running, last)
    petrel = (await running.get("/v1/nodes/petrel", collection="a")).json()
    around = {(each["node"]["kind"], each["edge"]["label"], each["edge"]["weight"]) for each in petrel["neighbours"]}
    assert around == {
        ("entity", "led_by", 0.5),
        ("document", "names", 1.0),
    }
    ada = (await running.get(f"/v1/nodes/{ADA}", kinds="hand_made")).json()
    assert [each["node"]["id"] for each in ada["neighbours"]] == ["petrel"]
    graph = (await running.get("/v1/graph", node="petrel", collection="a", depth=2)).json()
    assert {"petrel", ADA, "a/notes/river.md"} <= {each["id"] for each in graph["nodes"]}
    edges = (await running.get("/v1/edges", collection="a", node=ADA)).json()["edges"]
    assert [(each["id"], each["target"], each["missing"]) for each in edges] == [("e1", ADA, [])]

    await wait_for(running, (await running.http.delete("/v1/nodes/petrel?collection=a")).json())
    (edge,) = (await running.get("/v1/edges", collection="a", predicate="led_by")).json()["edges"]
    assert edge["missing"] == ["source"]
    assert (await running.get(f"/v1/nodes/{ADA}", kinds="hand_made")).json()["neighbours"] == []
    await wait_for(running, (await running.http.delete("/v1/edges/e1?collection=a")).json())
    assert problem(await running.get("/v1/edges/e1", collection="a"))["status"] == 404


async def test_property_of_a_megabyte_is_refused_by_name(running: Running, log: CurationLog) -> None:
    large = {"properties": {"plan": "x" * 1_000_000}}
    edge = {"collection": "a", "source": "Ada", "target": "notes/river.md", "predicate": "names"}
    for path, body in (("/v1/nodes", PETREL), ("/v1/edges", edge)):
        refused = problem(await running.http.post(path, json=body | large))
        assert (refused["status"], "plan" in refused["detail"], "10000" in refused["detail"]) == (422, True, True)
    assert log.documents == []


async def test_node_as_large_as_its_limits_is_taken(running: Running, log: CurationLog) -> None:
    large = {"text": "語" * 200_000, "properties": {f"p{at}": "x" * 1_000 for at in range(50)}}
    await post(running, "/v1/nodes", PETREL | large)


async def test_node_named_by_a_stop_word_is_taken_with_a_note(running: Running, log: CurationLog) -> None:
    node = {"collection": "a", "id": "it", "label": "It", "text": "A novel of 1986."}
    made = await post(running, "/v1/nodes", node)
    assert "'It' is a common word" in made["note"]
    assert (await post(running, "/v1/nodes", PETREL))["note"] is None
    changed = node | {"aliases": ["It, the novel"]}
    del changed["collection"], changed["id"]
    answer = await running.http.put("/v1/nodes/it?collection=a", json=changed)
    assert (answer.status_code, answer.json()["note"]) == (202, None)


async def test_lists_come_in_pages(running: Running, log: CurationLog) -> None:
    for name in "cabed":
        node = {"collection": "a", "id": name, "label": name, "type": "x" if name in "ab" else "y"}
        await wait_for(running, await post(running, "/v1/nodes", node))
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = (await running.get("/v1/nodes", limit=2, **cursor)).json()
        seen += [each["id"] for each in page["nodes"]]
        assert page["total"] == 5
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == list("abcde")
    assert [each["id"] for each in (await running.get("/v1/nodes", type="x")).json()["nodes"]] == ["a", "b"]
    assert problem(await running.get("/v1/nodes", cursor="é"))["title"] == "Malformed cursor"


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("/v1/nodes", {"label": "…"}, "a letter or a digit"),
        ("/v1/nodes", {"label": "x" * 10_000}, "300"),
        ("/v1/nodes", {"label": "x", "id": "f" * 32}, "not an id of a hand-made node"),
        ("/v1/nodes", {"label": "x", "id": "a/b"}, "not an id of a hand-made node"),
        ("/v1/nodes", {"label": "x", "text": "x" * 200_001}, "200000"),
        ("/v1/edges", {"source": "a/ada", "target": "nobody", "predicate": "owns"}, "There is nothing 'nobody'"),
        ("/v1/edges", {"source": "other/ada", "target": "ada", "predicate": "owns"}, "There is nothing 'other/ada'"),
        ("/v1/edges", {"source": "ada", "target": "a/ada", "predicate": "owns"}, "two different nodes"),
        ("/v1/edges", {"source": "ada", "target": "notes/river.md", "predicate": "!"}, "`predicate`"),
    ],
)
async def test_what_cannot_stand_is_refused(
    running: Running, log: CurationLog, path: str, body: dict[str, Any], says: str
) -> None:
    body = problem(await running.http.post(path, json={"collection": "a", **body}))
    assert body["status"] == 422
    assert says in body["detail"]
    assert log.records == log.documents == []


async def test_a_second_node_of_an_id_is_refused(running: Running, log: CurationLog) -> None:
    await post(running, "/v1/nodes", PETREL)
    assert problem(await running.http.post("/v1/nodes", json=PETREL))["status"] == 409
    await post(running, "/v1/nodes", PETREL | {"collection": "b"})
    first, second = [(await post(running, "/v1/nodes", {"label": "x", "collection": "b"}))["id"] for _ in range(2)]
    assert first != second


async def test_what_a_collection_does_not_allow_is_refused(running: Running, log: CurationLog) -> None:
    chosen = {
        "node_types": ["team", "boat"],
        "predicates": {"owns": {"source": ["team"], "target": ["boat"]}, "names": {}},
    }
    answer = await running.http.put("/v1/collections/a/graph", json=chosen)
    assert answer.status_code == 202
    refused = problem(await running.http.post("/v1/nodes", json=PETREL | {"type": "person"}))
    assert (refused["status"], "team, boat" in refused["detail"]) == (422, True)
    await post(running, "/v1/nodes", PETREL)
    await post(running, "/v1/nodes", {"collection": "a", "id": "beacon", "label": "Beacon", "type": "boat"})
    edge = {"collection": "a", "source": "petrel", "target": "beacon", "predicate": "owns"}
    await post(running, "/v1/edges", edge)
    for wrong in ({"predicate": "likes"}, {"source": "beacon", "target": "petrel"}, {"target": "a/ada"}):
        refused = problem(await running.http.post("/v1/edges", json=edge | wrong))
        assert (refused["status"], "not among those chosen" in refused["detail"]) == (422, True)
    assert (await running.http.delete("/v1/collections/a/graph")).status_code == 202
    await post(running, "/v1/edges", edge | {"predicate": "likes"})


async def chosen_without_cycles(running: Running, *predicates: str) -> None:
    chosen = {"predicates": {each: {"acyclic": True} for each in predicates} | {"likes": {}}}
    assert (await running.http.put("/v1/collections/a/graph", json=chosen)).status_code == 202


def edge_between(source: str, target: str, predicate: str = "precedes") -> dict[str, Any]:
    return {
        "collection": "a",
        "id": f"{source}-{target}",
        "source": source,
        "target": target,
        "predicate": predicate,
    }


async def test_edge_that_closes_a_forbidden_cycle_is_refused(running: Running, log: CurationLog) -> None:
    await chosen_without_cycles(running, "precedes")
    for name in ("plan", "build", "ship"):
        await post(running, "/v1/nodes", {"collection": "a", "id": name, "label": name.title()})
    await post(running, "/v1/edges", edge_between("plan", "build"))
    await post(running, "/v1/edges", edge_between("build", "ship"))
    sent = len(log.documents)
    refused = problem(await running.http.post("/v1/edges", json=edge_between("ship", "plan")))
    assert (refused["status"], refused["reason"]) == (422, "cycle")
    assert "Ship → Plan → Build → Ship" in refused["detail"]
    assert len(log.documents) == sent
    await post(running, "/v1/edges", edge_between("ship", "plan", "likes"))

    turned = edge_between("ship", "build")
    body = {name: turned[name] for name in ("source", "target", "predicate")}
    answer = await running.http.put("/v1/edges/build-ship?collection=a", json=body)
    assert answer.status_code == 202, "it replaces the edge that it would close a cycle with"
    assert (await running.http.delete("/v1/edges/plan-build?collection=a")).status_code == 202
    await post(running, "/v1/edges", edge_between("build", "plan"))


async def test_cycle_of_documents_is_refused_by_their_titles(running: Running, log: CurationLog) -> None:
    await chosen_without_cycles(running, "precedes")
    edge = {"collection": "a", "source": "notes/river.md", "target": "reports/status", "predicate": "precedes"}
    await post(running, "/v1/edges", edge)
    opposite = {"source": "reports/status", "target": "notes/river.md"}
    refused = problem(await running.http.post("/v1/edges", json=edge | opposite))
    assert (refused["reason"], "Report → River → Report" in refused["detail"]) == ("cycle", True)


async def test_opposite_edges_at_the_same_time_are_not_both_taken(running: Running, log: CurationLog) -> None:
    await chosen_without_cycles(running, "precedes")
    for name in ("plan", "build"):
        await post(running, "/v1/nodes", {"collection": "a", "id": name, "label": name.title()})
    edges = [edge_between("plan", "build"), edge_between("build", "plan")]
    answers = await asyncio.gather(*(running.http.post("/v1/edges", json=each) for each in edges))
    assert sorted(each.status_code for each in answers) == [202, 422]
    assert len([each for each in log.documents if b"edge:" in (each.key or b"")]) == 1


async def put(running: Running, path: str, body: dict[str, Any], etag: str) -> Response:
    return await running.http.put(f"{path}?collection=a", json=body, headers={"If-Match": etag})


async def test_of_two_edits_of_one_node_the_second_is_refused(running: Running, log: CurationLog) -> None:
    await wait_for(running, await post(running, "/v1/nodes", PETREL))
    etag = (await running.get("/v1/nodes/petrel", collection="a")).headers["etag"]
    log.follows = False  # neither edit is indexed
    edits = [put(running, "/v1/nodes/petrel", {"label": label}, etag) for label in ("Petrels", "Storm petrels")]
    answers = await asyncio.gather(*edits)
    assert sorted(each.status_code for each in answers) == [202, 412]
    refused = problem(next(each for each in answers if each.status_code == 412))
    assert "'node:petrel' has another ETag" in refused["detail"]
    assert len(log.documents) == 2
    (made,) = (each.json() for each in answers if each.status_code == 202)
    assert (await put(running, "/v1/nodes/petrel", {"label": "x"}, f'"{made["position"]}"')).status_code == 202


async def test_edit_by_somebody_else_is_seen_once_it_is_indexed(running: Running, log: CurationLog) -> None:
    await wait_for(running, await post(running, "/v1/nodes", PETREL))
    etag = (await running.get("/v1/nodes/petrel", collection="a")).headers["etag"]
    await log.publish(running.service.topics.documents, log.documents[:1])
    await running.service.reach({0: 9}, 10)
    assert problem(await put(running, "/v1/nodes/petrel", {"label": "x"}, etag))["status"] == 412
    newest = (await running.get("/v1/nodes/petrel", collection="a")).headers["etag"]
    assert newest != etag
    assert (await put(running, "/v1/nodes/petrel", {"label": "x"}, newest)).status_code == 202


async def test_opposite_edits_of_an_edge_leave_one(running: Running, log: CurationLog) -> None:
    for name in ("plan", "build"):
        await post(running, "/v1/nodes", {"collection": "a", "id": name, "label": name.title()})
    await wait_for(running, await post(running, "/v1/edges", edge_between("plan", "build") | {"id": "e"}))
    etag = (await running.get("/v1/edges/e", collection="a")).headers["etag"]
    body = {"source": "build", "target": "plan", "predicate": "precedes"}
    answers = await asyncio.gather(
        put(running, "/v1/edges/e", body, etag),
        running.http.delete("/v1/edges/e?collection=a", headers={"If-Match": etag}),
    )
    assert sorted(each.status_code for each in answers) == [202, 412]
    assert len([each for each in log.documents if each.key == b"a/edge:e"]) == 2


@pytest.mark.parametrize(
    ("etag", "status"), [("*", 202), ('"0:1", "0:8"', 202), ('W/"0:8"', 412), ("0:8", 412), ("é", 412)]
)
async def test_condition_names_one_of_several_etags_or_any(
    running: Running, log: CurationLog, etag: str, status: int
) -> None:
    assert (await put(running, "/v1/nodes/petrel", {"label": "x"}, "*")).status_code == 412, "there is none yet"
    await wait_for(running, await post(running, "/v1/nodes", PETREL))
    headers = {"If-Match": etag.encode()}
    answer = await running.http.put("/v1/nodes/petrel?collection=a", json={"label": "x"}, headers=headers)
    assert answer.status_code == status


async def test_acyclic_edge_is_checked_again_where_another_came_between(
    running: Running, log: CurationLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    await chosen_without_cycles(running, "precedes")
    for name in ("plan", "build", "ship"):
        await wait_for(
            running, await post(running, "/v1/nodes", {"collection": "a", "id": name, "label": name.title()})
        )
    checks: list[str] = []

    def counted(service: Service, snapshot: Snapshot, made: MadeId, edge: EdgeEdit) -> None:
        checks.append(made.id)
        _require_no_cycle(service, snapshot, made, edge)

    monkeypatch.setattr("query_api.routes.nodes._require_no_cycle", counted)
    pairs = [("plan", "build"), ("build", "ship"), ("ship", "plan")]
    answers = await asyncio.gather(*(running.http.post("/v1/edges", json=edge_between(*each)) for each in pairs))
    assert sorted(each.status_code for each in answers) == [202, 202, 422]
    assert len(checks) > len(pairs)


async def test_a_read_waits_for_what_was_written(running: Running, log: CurationLog) -> None:
    log.follows = False
    made = await post(running, "/v1/nodes", PETREL)
    late = problem(await running.get("/v1/nodes", collection="a", after=made["token"], wait_seconds=0))
    assert (late["status"], late["title"]) == (503, "Not yet indexed")
    log.index()
    assert (await running.get("/v1/nodes", collection="a", after=made["position"])).json()["nodes"]
    for path in ("/v1/graph?node=petrel", "/v1/nodes/petrel?limit=1", "/v1/nodes?limit=1"):
        late = problem(await running.http.get(f"{path}&collection=a&after=0:9&wait_seconds=0"))
        assert late["title"] == "Not yet indexed"
    assert problem(await running.get("/v1/nodes", after="soon"))["title"] == "Malformed token"


async def test_without_a_log_nodes_are_still_shown(running: Running) -> None:
    assert (await running.get(f"/v1/nodes/{ADA}")).status_code == 200
    assert (await running.get("/v1/nodes")).json()["nodes"] == []
    away = problem(await running.http.post("/v1/nodes", json=PETREL))
    assert (away["status"], away["title"]) == (503, "Kafka unavailable")


async def listed(running: Running, **params: Any) -> list[tuple[str, str]]:
    answer = await running.get("/v1/nodes", collection="a", **params)
    assert answer.status_code == 200, answer.text
    return [(each["kind"], each["label"]) for each in answer.json()["nodes"]]


async def test_nodes_are_listed_by_prefix_and_kind(running: Running, log: CurationLog) -> None:
    await wait_for(running, await post(running, "/v1/nodes", PETREL))
    everything = [
        ("hand_made", "Team Petrel"),
        ("entity", "Ada"),
        ("document", "Ada"),
        ("document", "Report"),
        ("document", "River"),
    ]
    assert await listed(running, prefix="") == everything
    assert await listed(running, prefix="AD") == [("entity", "Ada"), ("document", "Ada")]
    assert await listed(running, prefix="pet") == [("hand_made", "Team Petrel")]
    assert await listed(running, prefix="notes/r") == [("document", "River")]
    assert await listed(running, prefix="iver") == []
    assert await listed(running, kind="document,hand_made") == [everything[0], *everything[2:]]
    assert await listed(running, kind=["entity", "document"], prefix="r") == everything[3:]
    assert await listed(running, prefix="", type="person") == [("entity", "Ada")]
    assert await listed(running, prefix="", type="team") == [("hand_made", "Team Petrel")]
    of_elsewhere = (await running.get("/v1/nodes", prefix="", collection="b")).json()
    assert of_elsewhere == {"nodes": [], "next_cursor": None}


async def test_a_listed_node_is_found_by_its_id(running: Running, log: CurationLog) -> None:
    made = await post(running, "/v1/nodes", PETREL)
    for each in (await running.get("/v1/nodes", collection="a", prefix="")).json()["nodes"]:
        found = (await running.get(f"/v1/nodes/{each['id']}", collection="a", after=made["position"])).json()["node"]
        assert (found["kind"], found["label"]) == (each["kind"], each["label"])


async def test_pages_of_named_nodes_hold_each_once(running: Running, log: CurationLog) -> None:
    await wait_for(running, await post(running, "/v1/nodes", PETREL))
    found, cursor = [], None
    for _ in range(5):
        params = {"collection": "a", "prefix": "", "limit": 1} | ({} if cursor is None else {"cursor": cursor})
        page = (await running.get("/v1/nodes", **params)).json()
        found += [(each["kind"], each["label"]) for each in page["nodes"]]
        cursor = page["next_cursor"]
    assert cursor is None
    assert found == await listed(running, prefix="")


async def test_what_names_no_kind_or_page_is_refused(running: Running, log: CurationLog) -> None:
    kind = problem(await running.get("/v1/nodes", kind="section"))
    assert (kind["status"], "'hand_made', 'entity' or 'document'" in kind["detail"]) == (422, True)
    cursor = problem(await running.get("/v1/nodes", prefix="", cursor="abc"))
    assert (cursor["status"], cursor["title"]) == (400, "Malformed cursor")


async def test_writes_do_not_wait_for_a_worker_that_is_away(
    running: Running, log: CurationLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    reach = running.service.reach

    async def noted(positions: dict[int, int], wait_seconds: float) -> Snapshot:
        waits.append(wait_seconds)
        return await reach(positions, 0)

    monkeypatch.setattr(running.service, "reach", noted)
    log.follows = False
    await post(running, "/v1/nodes", PETREL)
    edge = {"collection": "a", "source": "nobody", "target": "ada", "predicate": "owns"}
    assert problem(await running.http.post("/v1/edges", json=edge))["reason"] == "missing_end"
    assert waits == []
    for _ in range(2):
        assert problem(await running.http.post("/v1/nodes", json=PETREL))["title"] == "Not yet indexed"
    assert waits == [OWN_WRITE_SECONDS, 0]
