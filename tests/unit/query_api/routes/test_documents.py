"""Reads of `/v1/documents`: what is indexed, and what became of the last write."""

import asyncio
from typing import Any

from query_api.index.follower import FollowedRecord
from query_api.index.manager import reached_token
from schemas.ids import DocumentKey
from schemas.receipts import Receipt, encode_receipt
from tests.support.fakes.service import Running, events, problem
from tests.support.fakes.text_stores import Page
from tests.support.waiting import eventually


async def test_a_document_is_shown_with_its_text(running: Running) -> None:
    document = (await running.get("/v1/documents/notes/river.md", collection="a")).json()
    assert document["title"] == "River"
    assert "The river is high." in document["text"]
    assert [passage["text"] for passage in document["passages"]] == ["The river is high. Ada measured it.", "It fell."]
    encoded = (await running.http.get("/v1/documents/notes%2Friver.md?collection=a")).json()
    assert encoded == document


async def test_a_document_and_its_place_in_a_list_tell_the_same_of_it(running: Running) -> None:
    said = {"by": "Bo Ek", "sent": True, "stated_fields": ["by"]}
    running.engine.reader.put(Page("h.md", "H", [["A weir."]], collection="a", metadata=said), p0=(8, -1))
    await eventually(lambda: reached_token(running.service.snapshots.current) == "0:8")
    listed = (await running.get("/v1/documents", collection="a")).json()["documents"]
    detail = (await running.get("/v1/documents/h.md", collection="a")).json()
    assert detail["stated_fields"] == ["by"]
    assert detail["metadata"] == {"by": "Bo Ek", "sent": True}
    assert {name: detail[name] for name in listed[0]} in listed


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


async def test_a_status_by_the_token_of_a_batch(running: Running) -> None:
    """Other partitions hold nothing of the document; its own may end with other documents of the batch."""
    path = "/v1/documents/ada/status"
    offset = int((await running.get(path)).json()["position"].partition(":")[2])
    running.engine.reader.put(p0=(offset + 1, 3), p1=(6, 3))
    await eventually(lambda: running.service.snapshot().info().positions == f"0:{offset + 1},1:6")
    shown = (await running.get(path, collection="a", position=f"0:{offset},1:6")).json()
    assert (shown["status"], shown["message"]) == ("indexed", None)
    asked = f"0:{offset + 1},1:6"
    assert (await running.get(path, collection="a", position=asked)).json()["status"] == "pending"
    told: Any = {"outcome": "indexed", "generation": "g0001"}
    running.service.snapshots.receipts.add(Receipt(key="a/eve", partition=0, offset=offset + 1, **told))
    assert (await running.get(path, collection="a", position=asked)).json()["status"] == "indexed"
    running.service.snapshots.receipts.add(Receipt(key="a/bob", partition=1, offset=6, **told))
    found = (await running.get(path, position=asked)).json()
    assert (found["collection"], found["status"]) == ("a", "indexed")


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


async def test_documents_that_were_dead_lettered_say_why(running: Running) -> None:
    running.service.snapshots.receipts.add(
        Receipt(
            key="a/broken", outcome="dead_lettered", partition=0, offset=6, generation="g0001", reason="undecodable",
            message="The content is not UTF-8.",
        )
    )  # fmt: skip
    status = (await running.get("/v1/documents/broken/status", collection="a")).json()
    assert (status["status"], status["message"]) == ("dead_lettered", "The content is not UTF-8.")
    assert (status["reason"], status["reason_title"]) == ("undecodable", "Text that cannot be decoded")
    assert status["advice"].startswith("Save it as UTF-8")
    assert status["position"] == "0:6"


async def test_a_record_that_another_one_superseded_is_told_by_its_position(running: Running) -> None:
    path = "/v1/documents/ada/status"
    shown = (await running.get(path, collection="a")).json()
    partition, offset = map(int, shown["position"].split(":"))
    stale = {"partition": partition, "offset": offset + 1, "version": 3, "superseded_by": shown["position"]}
    running.engine.reader.put(p0=(offset + 1, 3))
    await eventually(lambda: running.service.snapshot().info().positions == f"{partition}:{offset + 1}")
    asked = f"{partition}:{offset + 1}"
    assert (await running.get(path, collection="a", position=asked)).json()["status"] == "pending"
    running.service.snapshots.receipts.add(Receipt(key="a/ada", outcome="superseded", generation="g0001", **stale))

    told = (await running.get(path, collection="a", position=asked)).json()
    assert (told["status"], told["position"], told["version"], told["final"]) == ("superseded", asked, 3, True)
    assert f"The record at {shown['position']} won" in told["message"]
    assert told["searchable"], "what won is"
    response = await running.http.get(path, params={"collection": "a", "position": asked}, headers=EVENTS)
    assert [(name, body["status"]) for name, _, body in events(response)] == [("done", "superseded")]
    for parameters in ({}, {"position": shown["position"]}):
        assert (await running.get(path, collection="a", **parameters)).json()["status"] == "indexed"


async def test_a_record_that_was_passed_over_for_none_is_told_without_a_winner(running: Running) -> None:
    """As when the log is read again: the first reading, whose receipt nobody remembers, made a dead letter of it."""
    again = Receipt(key="a/lost", outcome="superseded", partition=0, offset=5, generation="g0001", produced_at_ms=1_000)
    running.service.snapshots.receipts.add(again)
    told = (await running.get("/v1/documents/lost/status", collection="a", position="0:5")).json()
    assert (told["status"], told["final"], "None" in told["message"]) == ("superseded", True, False)
    assert "became a dead letter, or another record won" in told["message"]


async def test_a_dead_letter_is_that_of_the_record_asked_about(running: Running) -> None:
    path = "/v1/documents/ada/status"
    shown = (await running.get(path, collection="a")).json()["position"]
    partition, offset = map(int, shown.split(":"))
    for at, outcome in ((offset - 1, "dead_lettered"), (offset + 1, "dead_lettered"), (offset + 1, "superseded")):
        running.service.snapshots.receipts.add(
            Receipt(
                key="a/ada", outcome=outcome, partition=partition, offset=at, generation="g0001", reason="malformed"
            )
        )
    before = (await running.get(path, collection="a", position=f"{partition}:{offset - 1}")).json()
    assert (before["status"], before["message"]) == ("dead_lettered", "malformed")
    assert (await running.get(path, collection="a", position=shown)).json()["status"] == "indexed"
    assert (await running.get(path, collection="a")).json()["status"] == "dead_lettered", "read again, it stays one"


async def test_what_could_not_be_read_as_it_was_meant_is_told_of_the_record_that_is_shown(running: Running) -> None:
    path = "/v1/documents/ada/status"
    told: Any = {"outcome": "indexed", "generation": "g0001"}
    shown = (await running.get(path, collection="a")).json()
    assert (shown["status"], shown["notes"]) == ("indexed", [])
    partition, offset = map(int, shown["position"].split(":"))
    for at, notes in ((offset, ["The front matter is no YAML."]), (offset + 1, [])):
        running.service.snapshots.receipts.add(
            Receipt(key="a/ada", partition=partition, offset=at, notes=("The front matter is no YAML.",), **told)
        )
        assert (await running.get(path, collection="a")).json()["notes"] == notes


EVENTS = {"Accept": "text/event-stream"}


async def test_a_document_is_followed_until_it_is_in_the_graph_or_a_dead_letter(running: Running) -> None:
    path = "/v1/documents/ada/status"
    response = await running.http.get(path, params={"collection": "a", "position": "0:5"}, headers=EVENTS)
    assert response.headers["content-type"].startswith("text/event-stream")
    [(name, frame_id, body)] = events(response)
    assert (name, body["status"], body["final"]) == ("done", "indexed", True)
    again = {**EVENTS, "Last-Event-ID": frame_id}
    response = await running.http.get(path, params={"collection": "a", "position": "0:5"}, headers=again)
    assert response.status_code == 204

    following = asyncio.create_task(
        running.http.get("/v1/documents/broken/status?collection=a&position=0:8", headers=EVENTS)
    )
    await eventually(lambda: running.service.streams.reading == 1)
    running.engine.reader.put(p0=(8, 3))
    await eventually(lambda: running.service.snapshot().info().positions == "0:8")
    assert not following.done(), "the tables have reached it, and its receipt has not come"
    told = (await running.get("/v1/documents/broken/status", collection="a", position="0:8")).json()
    assert (told["status"], "receipt" in told["message"]) == ("pending", True)
    letter = Receipt(
        key="a/broken", outcome="dead_lettered", partition=0, offset=8, generation="g0001", reason="undecodable"
    )
    await running.service.snapshots._take_receipts([FollowedRecord(0, 1, b"a/broken", encode_receipt(letter))])
    frames = events(await following)
    assert [(name, body["status"]) for name, _, body in frames] == [("status", "pending"), ("done", "dead_lettered")]
    assert [frame_id.rpartition(".")[2] for _, frame_id, _ in frames] == ["0", "2"]
    await eventually(lambda: running.service.streams.reading == 0)


async def test_a_deleted_document_is_not_shown(running: Running) -> None:
    del running.engine.reader.pages[DocumentKey("a", "ada")]
    running.engine.reader.put(p0=(9, 3))
    await eventually(lambda: running.service.snapshot().info().positions == "0:9")
    assert (await running.get("/v1/documents/ada", collection="a")).status_code == 404


async def test_formats_are_listed_with_what_they_take_and_their_limits(running: Running) -> None:
    listed = {each["name"]: each for each in (await running.get("/v1/formats")).json()}
    assert listed["Markdown"]["media_types"][0] == "text/markdown"
    assert (listed["PDF"]["takes"], listed["PDF"]["extensions"]) == ("bytes", [".pdf"])
    assert listed["PDF"]["limits"]["pages"] == 2_000
    assert listed["Python"]["limits"] == {
        "bytes": 10 * 1024 * 1024,
        "metadata_bytes": 64 * 1024,
        "title_characters": 2_000,
        "uri_characters": 4_000,
        "links": 2_000,
        "link_characters": 2_177,
    }
