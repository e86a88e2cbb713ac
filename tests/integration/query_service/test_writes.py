"""What is written is found: by the next search that asks for it, under its key, until it is deleted."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from indexer.generation_folders import LogIdentity
from schemas.receipts import parse_token
from schemas.topics import topic_specs
from streams.kafka.topics import ensure_topics
from tests.integration.query_service.live_service import EVENTS, LiveService, frames_of, serving, settings_for
from tests.support.kafka import Sent, plaintext, send, topic_id


async def test_written_document_goes_from_pending_to_indexed(live: LiveService) -> None:
    text = "# River\n\nThe river is high.\n\n## Ferry\n\nIt does not go."
    token = await live.put("guides/river.md", text)
    status: dict[str, Any] = {}
    async with asyncio.timeout(20):
        while status.get("status") != "indexed" or not status["in_graph"]:
            status = (await live.http.get(f"/v1/documents/guides/river.md/status?position={token}")).json()
            assert status["status"] in {"pending", "indexed"}
    assert (status["position"], status["searchable"]) == (token.partition("@")[0], True)
    document = (await live.http.get("/v1/documents/guides%2Friver.md")).json()
    assert document["title"] == "River"
    assert "The river is high." in document["text"]
    assert "It does not go." in document["text"]
    found = (await live.search("is the ferry going"))["hits"]
    assert [passage["end"] - passage["start"] for passage in document["passages"]] == [
        len(passage["text"]) for passage in document["passages"]
    ]
    for hit in found:
        assert hit["parent_text"][hit["start"] - hit["parent_start"] : hit["end"] - hit["parent_start"]] == hit["text"]
        assert hit["parent_start"] in {passage["start"] for passage in document["passages"]}
    chunk = (await live.http.get(f"/v1/chunks/{found[0]['chunk_id']}")).json()
    assert {name: chunk[name] for name in ("start", "end", "parent_start")} == {
        name: found[0][name] for name in ("start", "end", "parent_start")
    }
    listed = (await live.http.get("/v1/documents?limit=1")).json()
    assert [each["id"] for each in listed["documents"]] == ["guides/river.md"]
    node = (await live.http.get("/v1/nodes/guides/river.md")).json()
    assert {each["edge"]["kind"] for each in node["neighbours"]} >= {"has_chunk", "about"}
    chunk_id = next(each["node"]["id"] for each in node["neighbours"] if each["node"]["kind"] == "chunk")
    assert (await live.http.get(f"/v1/chunks/{chunk_id}")).json()["document_id"] == "guides/river.md"


async def test_status_stream_ends_once_the_document_is_in_the_graph(live: LiveService) -> None:
    token = await live.put("guides/river.md", "# River\n\nThe river is high.")
    path = f"/v1/documents/guides/river.md/status?position={token}"
    async with asyncio.timeout(20), live.http.stream("GET", path, headers=EVENTS) as response:
        frames = [frame async for frame in frames_of(response)]
    name, frame_id, body = frames[-1]
    assert (name, body["status"], body["in_graph"], body["position"]) == (
        "done", "indexed", True, token.partition("@")[0]
    )  # fmt: skip
    assert frame_id.endswith(".2")
    assert [each[1] for each in frames] == sorted({each[1] for each in frames}), "none twice, in their order"
    gone = (await live.http.delete("/v1/documents/guides/river.md")).json()["token"]
    path = f"/v1/documents/guides/river.md/status?position={gone}"
    async with asyncio.timeout(20), live.http.stream("GET", path, headers=EVENTS) as response:
        frames = [frame async for frame in frames_of(response)]
    assert (frames[-1][0], frames[-1][2]["status"], frames[-1][2]["final"]) == ("done", "deleted", True)


async def test_batches_and_uploads_are_answered_by_member(live: LiveService) -> None:
    batch = [{"id": "a", "content": "one"}, {"id": "b"}, {"id": "c", "content": "three", "collection": "other"}]
    response = await live.http.post("/v1/documents", json={"documents": batch})
    assert response.status_code == 202
    answer = response.json()
    assert [(each["index"], each["id"], each["collection"]) for each in answer["accepted"]] == [
        (0, "a", "default"), (2, "c", "other")
    ]  # fmt: skip
    assert [(each["index"], each["id"], each["status"]) for each in answer["refused"]] == [(1, "b", 422)]
    files = [("file", ("x.md", b"# Upload\n\nsubmerged")), ("file", ("y.rst", b"Title\n=====\n\nsunken"))]
    response = await live.http.post("/v1/documents", files=files, data={"collection": "up"})
    token = response.json()["token"]
    found = await live.search("submerged", collection="up", after=token)
    assert found["hits"][0]["document_id"] == "x.md"
    assert (await live.http.get("/v1/documents/y.rst?collection=up")).json()["content_type"] == "text/x-rst"


async def test_a_record_the_topic_does_not_take_is_a_413(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    settings = settings_for(kafka, topic_prefix, tmp_path)
    small = settings.kafka.model_copy(update={"max_record_bytes": 100_000})
    await ensure_topics(plaintext(kafka), topic_specs(small))
    async with serving(settings) as (http, _):
        text = "a line of text that is stored\n" * 10_000
        response = await http.put("/v1/documents/a", content=text, headers={"Content-Type": "text/plain"})
        assert response.status_code == 413
        assert "max.message.bytes" in response.json()["detail"]
        batch = [{"id": "a", "content": text}, {"id": "b", "content": "short"}]
        response = await http.post("/v1/documents", json=batch)
        assert response.status_code == 202
        answer = response.json()
        assert [each["id"] for each in answer["accepted"]] == ["b"]
        assert [(each["id"], each["status"], each["reason"]) for each in answer["refused"]] == [("a", 413, "too_large")]


async def test_delete_reaches_each_partition_that_holds_the_document(live: LiveService) -> None:
    token = await live.put("a.md", "# Ferry\n\nThe ferry crosses.")
    ((own, _),) = parse_token(token).positions.items()
    other = 1 - own
    await live.search("ferry", after=token)
    ferry = Sent(b"default/a.md", b'{"id": "a.md", "content": "A ferry."}', partition=other)
    [(_, offset)] = send(live.kafka, live.names.documents, ferry)
    await live.search("ferry", after=f"{other}:{offset}")
    deleted = parse_token((await live.http.delete("/v1/documents/a.md")).json()["token"])
    assert deleted.positions.keys() == {own, other}


async def test_a_token_of_another_log_is_refused_in_a_sentence(live: LiveService) -> None:
    token = await live.put("a.md", "# Ferry\n\nThe ferry crosses.")
    positions, _, log = token.partition("@")
    assert log == topic_id(live.kafka, live.names.documents)[:8]
    for path in ("/v1/search?q=ferry&after=", "/v1/documents/a.md/status?position="):
        refused = await live.http.get(f"{path}{positions}@00000000")
        assert refused.status_code == 409, refused.text
        assert "of the log 00000000" in refused.json()["detail"]
    assert (await live.search("ferry", after=positions))["hits"], "positions alone are of the log that is there"


async def test_stores_of_another_log_take_no_writes_and_cover_no_token(live: LiveService) -> None:
    token = await live.put("a.md", "# Ferry\n\nThe ferry crosses.")
    await live.search("ferry", after=token)
    served = live.service.snapshots.served
    served.manifest = msgspec.structs.replace(served.manifest, log=LogIdentity("f" * 32, "e" * 32))
    for response in (
        await live.http.put("/v1/documents/b.md", content="text", headers={"Content-Type": "text/plain"}),
        await live.http.post("/v1/documents", json=[{"id": "b", "content": "text"}]),
        await live.http.post("/v1/collections/default/relink"),
        await live.http.delete("/v1/collections/default/chunking"),
    ):
        assert response.status_code == 503, response.text
        assert response.json()["reason"] == "another_log"
    for asked in (token, token.partition("@")[0]):
        assert (await live.http.get(f"/v1/search?q=ferry&after={asked}")).status_code == 409
    assert (await live.search("ferry"))["hits"]
    assert any("filled from another log" in note for note in (await live.http.get("/readyz")).json()["notes"])
