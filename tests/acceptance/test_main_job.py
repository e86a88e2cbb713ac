"""The main job: a record goes in, a stream shows it, its provenance comes back on the topic, a delete takes it away."""

import json
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas.receipts import format_token
from tests.support.kafka import Sent, open_producer, read_all, send, send_with
from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

DOCUMENTS = "thalweg.documents.v1"


def frames_of(lines: list[str]) -> list[tuple[str, str, dict[str, Any]]]:
    """(event, id, body) of each frame of a stream."""
    frames, fields = [], {}
    for line in lines:
        if line == "" and "data" in fields:
            frames.append((fields["event"], fields["id"], json.loads(fields["data"])))
            fields = {}
        elif line and not line.startswith(":"):
            name, _, text = line.partition(": ")
            fields[name] = text
    return frames


def stream(thalweg: Installation, headers: dict[str, str] | None = None, **parameters: Any) -> list[Any]:
    accept = {"Accept": "text/event-stream"} | (headers or {})
    with httpx.stream("GET", f"{thalweg.url}/v1/search", params=parameters, headers=accept, timeout=70) as answer:
        assert answer.status_code == 200, answer.read()
        return frames_of(list(answer.iter_lines()))


def produce(thalweg: Installation, *records: Sent) -> str:
    """Publish as any Kafka client would; the token of what was sent."""
    return format_token(dict(send(thalweg.kafka, DOCUMENTS, *records)))


def test_a_record_becomes_a_hit_and_its_retrieval_a_record(thalweg: Installation) -> None:
    text = b"# The heron pump\n\nA heron pump lifts water by the weight of falling water. It needs no fuel."
    token = produce(thalweg, Sent(b"story/heron.md", text, [("content-type", b"text/markdown")]))

    asked = {"q": "how does a heron pump lift water", "collection": "story", "after": token, "k": 3}
    frames = stream(thalweg, **asked)
    names = [name for name, _, _ in frames]
    assert names[0] == "meta"
    assert names[-1] == "done"
    retrieval_id = frames[0][2]["retrieval_id"]
    assert [frame_id for _, frame_id, _ in frames] == [f"{retrieval_id}.{seq}" for seq in range(len(frames))]
    stages = {body["name"] for name, _, body in frames if name == "stage"}
    assert {"vector", "keyword", "graph"} <= stages
    hit = next(body for name, _, body in frames if name == "hit")
    assert (hit["rank"], hit["document_id"], hit["title"]) == (1, "heron.md", "The heron pump")
    assert "falling water" in hit["parent_text"]
    partition, _, offset = token.partition(":")
    assert (hit["source"]["partition"], hit["source"]["offset"]) == (int(partition), int(offset))
    assert {"vector", "keyword"} <= set(hit["channels"])

    def its_provenance() -> list[Any]:
        records = read_all(thalweg.kafka, "thalweg.provenance.v1")
        return [record for record in records if record.key == retrieval_id.encode()]

    wait_until(its_provenance, "the provenance on its topic", 20)
    retrieval = json.loads(its_provenance()[0].value)
    assert retrieval["query"] == "how does a heron pump lift water"
    assert retrieval["hits"][0]["chunk_id"] == hit["chunk_id"]
    details = f"{thalweg.url}/v1/retrievals/{retrieval_id}"
    wait_until(lambda: httpx.get(details).status_code == 200, "the retrieval in its table", 20)

    rest = stream(thalweg, {"Last-Event-ID": f"{retrieval_id}.1"}, **asked)
    assert [frame_id for _, frame_id, _ in rest] == [f"{retrieval_id}.{seq}" for seq in range(2, len(frames))]

    gone = produce(thalweg, Sent(b"story/heron.md", None))
    assert thalweg.search(q="heron pump", collection="story", after=gone)["hits"] == []
    assert httpx.get(f"{thalweg.url}/v1/documents/heron.md", params={"collection": "story"}).status_code == 404


def test_graph_finds_an_answer_that_shares_no_word(thalweg: Installation) -> None:
    envelopes = [
        {"id": "a", "title": "Quillon Bridge", "content": "Quillon Bridge was designed by Tessaly Wrenfield in 1931."},
        {
            "id": "b",
            "title": "Tessaly Wrenfield",
            "content": "Tessaly Wrenfield was born in the harbour town of Osmere.",
        },
        {"id": "c", "title": "Marrow Lane", "content": "Marrow Lane is a street with many shops and a cinema."},
    ]
    lines = "\n".join(json.dumps(envelope | {"collection": "hops"}) for envelope in envelopes)
    token = thalweg.run_json("load", "-", text_in=lines)["token"]
    answer = thalweg.search(
        q="Where did the career behind Quillon Bridge begin?", mode="graph", collection="hops", after=token
    )
    found = {hit["document_id"]: hit for hit in answer["hits"]}
    assert "c" not in found or found["b"]["rank"] < found["c"]["rank"]
    path = found["b"]["path"]
    assert path
    assert any("Tessaly Wrenfield" in (step["evidence"] or "") for step in path)
    thalweg.run("delete", "a", "b", "c", "--collection", "hops")


def test_poison_becomes_dead_letters_beside_indexed_records(thalweg: Installation) -> None:
    plain = [("content-type", b"text/plain")]
    good = [Sent(f"mixed/good-{n}".encode(), f"Plain words about badger number {n}.".encode(), plain) for n in range(4)]
    poison = [
        Sent(b"mixed/bytes", b"\xff\xfe\x00\xd8"),
        Sent(b"mixed/cut", b'{"id": "cut", "collection": "mixed", "content": "abc'),
        Sent(b"mixed/types", b'{"id": "types", "collection": "mixed", "content": 5}'),
        Sent(b"mixed/no-id", b'{"collection": "mixed", "content": "x"}'),
        Sent(b"mixed/empty", b'{"id": "empty", "collection": "mixed", "content": "  "}'),
        Sent(b"mixed/media", b"abc", [("content-type", b"application/x-unheard-of")]),
        Sent(b"mixed/large", b"x" * (10 * 1024 * 1024 + 1), plain),
    ]
    token = produce(thalweg, good[0], *poison[:4], good[1], *poison[4:], *good[2:])
    answer = thalweg.search(q="badger", collection="mixed", after=token, wait_seconds=60, mode="keyword")
    assert {hit["document_id"] for hit in answer["hits"]} == {f"good-{n}" for n in range(4)}
    letters = {record.key: record for record in read_all(thalweg.kafka, "thalweg.dead-letters.v1")}
    assert {key for key in letters if key and key.startswith(b"mixed/")} == {record.key for record in poison}
    for record in poison:
        headers = dict(letters[record.key].headers)
        assert headers["__connect.errors.topic"] == b"thalweg.documents.v1"
        assert headers["__connect.errors.exception.message"].decode().strip()
        assert letters[record.key].value == record.value, "the original bytes, untouched"
    thalweg.run("delete", *(f"good-{n}" for n in range(4)), "--collection", "mixed")


@pytest.mark.parametrize("writes", [12, pytest.param(50, marks=pytest.mark.nightly)])
def test_the_writes_of_four_clients_are_each_read_back(thalweg: Installation, writes: int) -> None:
    def write_and_read(writer: int) -> None:
        with open_producer(thalweg.kafka) as producer, httpx.Client(base_url=thalweg.url, timeout=70) as http:
            for number in range(writes):
                word = f"marker{uuid.uuid4().hex[:12]}"
                note = f"A note that says {word}.".encode()
                key = f"own/{writer}-{number % 6}".encode()
                [(partition, offset)] = send_with(
                    producer, DOCUMENTS, [Sent(key, note, [("content-type", b"text/plain")])]
                )
                parameters = {"q": word, "collection": "own", "after": f"{partition}:{offset}", "k": 10}
                answer = http.get("/v1/search", params=parameters)
                if answer.status_code == 503:
                    continue  # an honest time-out
                found = any(word in hit["text"] for hit in answer.json()["hits"])  # the encoder knows no such words
                assert found, f"write {number} was called fresh and is not there"

    with ThreadPoolExecutor(4) as writers:
        for done in [writers.submit(write_and_read, writer) for writer in range(4)]:
            done.result()
    names = [f"{writer}-{number}" for writer in range(4) for number in range(6)]
    thalweg.run("delete", *names, "--collection", "own")


def test_the_commands_answer_a_program(thalweg: Installation, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Alder\n\nAlder wood resists water.")
    (tmp_path / "b.txt").write_text("Birch wood burns well.")
    (tmp_path / "c.bin").write_bytes(b"\x00")
    loaded = thalweg.run("load", str(tmp_path), "--collection", "trees", "--json", check=False)
    summary = json.loads(loaded.stdout)
    assert summary["outcomes"] == {"indexed": 2}
    assert [item["reason"] for item in summary["refused"]] == ["unknown_media_type"]
    assert loaded.returncode == 1

    found = thalweg.run_json("search", "wood that resists water", "--collection", "trees", "--after", summary["token"])
    assert found["hits"][0]["document_id"] == "a.md"
    status = thalweg.run_json("status")
    assert status["generation"].startswith("g0001-")
    report = thalweg.verify()
    assert report["ok"]
    thalweg.run("delete", "a.md", "b.txt", "--collection", "trees")


def test_feedback_through_the_log_is_counted(thalweg: Installation) -> None:
    note = b"# Mill 20\n\nThe mill by the weir has number 20."
    thalweg.search(q="mill", after=produce(thalweg, Sent(b"mills/20.md", note, [("content-type", b"text/markdown")])))
    asked: dict[str, Any] = {"q": "the mill by the weir", "collection": "mills", "k": 2}
    first, second = (thalweg.search(**asked) for _ in range(2))
    assert (first["cached"], second["cached"]) == (False, True)
    path = f"{thalweg.url}/v1/retrievals/{second['retrieval_id']}"
    for rating in ("unhelpful", "helpful"):
        given = httpx.post(f"{path}/feedback", json={"rank": 1, "rating": rating, "caller": "ada"}, timeout=30)
        assert given.status_code == 202
    wait_until(
        lambda: [said["rating"] for said in httpx.get(path).json()["feedback"]] == [1], "the later word counts", 30
    )
    chunk = second["hits"][0]["chunk_id"]
    used = f"{thalweg.url}/v1/analytics/chunks/{chunk}"
    wait_until(lambda: httpx.get(used).json()["count"] == 3, "all three retrievals are counted", 30)
    assert httpx.get(used).json()["feedback"] == {"helpful": 1, "unhelpful": 0, "mean_rating": 1.0}
    popular = thalweg.run_json("api", "GET", "/v1/analytics/popular-chunks", "--query", "collection=mills")
    assert chunk in [each["chunk_id"] for each in popular["chunks"]]
    listed = thalweg.run_json("api", "GET", "/v1/retrievals", "--query", "collection=mills")
    assert second["retrieval_id"] in [each["retrieval_id"] for each in listed["retrievals"]]
    thalweg.run("delete", "20.md", "--collection", "mills")
