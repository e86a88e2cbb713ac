"""Nodes and edges that people make are documents: by HTTP, by Kafka, from a file; late, twice, malformed, deleted."""

import json
from pathlib import Path
from typing import Any

import httpx

from schemas.topics import TopicNames
from tests.support.kafka import read_all
from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

NODE = "application/vnd.thalweg.node+json"
EDGE = "application/vnd.thalweg.edge+json"
NAMES = TopicNames("thalweg.")


def call(thalweg: Installation, method: str, path: str, status: int = 200, **options: Any) -> dict[str, Any]:
    answer = httpx.request(method, f"{thalweg.url}{path}", timeout=70, **options)
    assert answer.status_code == status, answer.text
    return dict(answer.json())


def document(kind: str, name: str, collection: str, version: int | None = None, **content: Any) -> dict[str, Any]:
    media_type = {"node": NODE, "edge": EDGE}[kind]
    envelope = {"id": f"{kind}:{name}", "collection": collection, "content_type": media_type, "version": version}
    return envelope | {"content": json.dumps(content)}


def receipts(thalweg: Installation, key: str) -> list[dict[str, Any]]:
    found = [json.loads(each.value) for each in read_all(thalweg.kafka, NAMES.indexed)]
    return [each for each in found if each["key"] == key]


def test_nodes_and_edges_made_over_http_are_indexed_and_deleted(hashing: Installation) -> None:
    team = {"id": "petrel", "collection": "made", "label": "Team Petrel", "type": "team", "by": "ada"}
    boat = {"id": "beacon", "collection": "made", "label": "Beacon", "text": "Beacon is\na boat.", "aliases": ["B-1"]}
    owns = {"id": "owns", "collection": "made", "source": "petrel", "target": "beacon", "predicate": "owns"}
    call(hashing, "POST", "/v1/nodes", 202, json=team)
    call(hashing, "POST", "/v1/nodes", 202, json=boat)
    made = call(hashing, "POST", "/v1/edges", 202, json=owns | {"weight": 0.5, "note": "Since May."})
    asked = {"collection": "made", "after": made["token"], "wait_seconds": 30}
    (edge,) = call(hashing, "GET", "/v1/edges", params=asked)["edges"]
    assert (edge["source"], edge["target"], edge["weight"], edge["note"]) == ("petrel", "beacon", 0.5, "Since May.")
    assert (edge["missing"], edge["position"]) == ([], made["position"])
    nodes = call(hashing, "GET", "/v1/nodes", params=asked)["nodes"]
    assert [(each["id"], each["type"], each["text"]) for each in nodes] == [
        ("beacon", "thing", "Beacon is\na boat."),
        ("petrel", "team", ""),
    ]
    assert nodes[0]["aliases"] == ["B-1"]
    assert [each["outcome"] for each in receipts(hashing, "made/edge:owns")] == ["indexed"]
    assert hashing.search(q="which boat is there", collection="made")["hits"][0]["document_id"] == "node:beacon"

    assert call(hashing, "GET", "/v1/documents", params={"collection": "made"})["documents"] == []
    of_type = {"collection": "made", "content_type": NODE}
    listed = call(hashing, "GET", "/v1/documents", params=of_type)["documents"]
    assert [each["id"] for each in listed] == ["node:beacon", "node:petrel"]
    fields = call(hashing, "GET", "/v1/collections/made/fields")["fields"]
    assert {each["documents"] for each in fields} == {1}, "fields of what searches find: of one node"
    refused = call(hashing, "POST", "/v1/nodes", 409, json=team)
    assert refused["reason"] == "duplicate_id"
    gone = call(hashing, "DELETE", "/v1/nodes/beacon", 202, params={"collection": "made"})
    (edge,) = call(hashing, "GET", "/v1/edges", params=asked | {"after": gone["token"]})["edges"]
    assert edge["missing"] == ["target"]
    assert hashing.search(q="which boat is there", collection="made")["hits"] == []


def test_second_of_two_edits_is_refused_and_leaves_the_first(hashing: Installation) -> None:
    path, of = "/v1/nodes/shared", {"collection": "edited"}
    made = call(hashing, "PUT", path, 202, params=of, json={"label": "Shared"})
    read = httpx.get(f"{hashing.url}{path}", params=of | {"after": made["token"], "wait_seconds": 30}, timeout=70)
    assert read.headers["etag"] == f'"{made["position"]}"'
    etag = {"If-Match": read.headers["etag"]}
    first = call(hashing, "PUT", path, 202, params=of, headers=etag, json={"label": "First"})
    late = call(hashing, "PUT", path, 412, params=of, headers=etag, json={"label": "Second"})
    assert "Read it again" in late["detail"]
    again = call(
        hashing, "PUT", path, 202, params=of, headers={"If-Match": f'"{first["position"]}"'}, json={"label": "First"}
    )
    asked = of | {"after": again["token"], "wait_seconds": 30}
    shown = call(hashing, "GET", path, params=asked)["hand_made"]
    assert (shown["label"], shown["position"]) == ("First", again["position"]), "also where nothing changed"
    call(hashing, "DELETE", path, 412, params=of, headers=etag)
    call(hashing, "DELETE", path, 202, params=of, headers={"If-Match": f'"{again["position"]}"'})


def test_deleted_collection_keeps_no_node_or_edge(hashing: Installation) -> None:
    for name in ("one", "two"):
        call(hashing, "POST", "/v1/nodes", 202, json={"id": name, "collection": "passing", "label": name})
    joined = {"collection": "passing", "source": "one", "target": "two", "predicate": "joins"}
    made = call(hashing, "POST", "/v1/edges", 202, json=joined)
    asked = {"collection": "passing", "after": made["token"], "wait_seconds": 30}
    assert call(hashing, "GET", "/v1/edges", params=asked)["total"] == 1

    hashing.run("collections", "delete", "passing", "--yes")

    left = {
        kind: call(hashing, "GET", f"/v1/{kind}", params={"collection": "passing"})["total"]
        for kind in ("nodes", "edges")
    }
    assert left == {"nodes": 0, "edges": 0}


def test_stores_verify_and_are_exported_as_they_were_made(hashing: Installation, tmp_path: Path) -> None:
    edge = {"source": "a", "target": "b", "predicate": "knows", "weight": 0.5, "note": "Why.", "properties": {"n": 1}}
    node = {"label": "A", "type": "letter", "text": "The first.", "aliases": ["Alpha, the"]}
    made = {f"{kind}:{kind}": document(kind, kind, "out", **said) for kind, said in (("edge", edge), ("node", node))}
    call(hashing, "POST", "/v1/documents", 202, json=list(made.values()))
    wait_until(lambda: receipts(hashing, "out/node:node"), "the receipt", 20)
    report = hashing.verify()
    assert (report["ok"], report["differences"]) == (True, [])
    assert report["graph"]["relations"] > 0
    file = tmp_path / "all.jsonl"
    hashing.run("export", str(file))
    lines = [line for line in file.read_text().splitlines() if json.loads(line)["collection"] == "out"]
    exported = {each["id"]: each for each in map(json.loads, lines)}
    assert exported.keys() == made.keys()
    for name, expected in (("edge:edge", edge), ("node:node", node)):
        assert exported[name]["content_type"] == made[name]["content_type"]
        assert expected.items() <= json.loads(exported[name]["content"]).items()
    again = hashing.run_json("load", "-", text_in="\n".join(lines))
    assert not again["refused"]
