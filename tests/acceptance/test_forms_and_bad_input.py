"""Every form a document may come in, and every kind of bad input with its one outcome, on the whole installation."""

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from kafka.errors import KafkaError

from schemas.receipts import Receipt, decode_receipt
from tests.support.fixtures.office_files import pdf
from tests.support.kafka import Sent, read_all, send
from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER_TRACE = "00-11111111111111111111111111111111-2222222222222222-00"


def record(
    key: str | bytes | None,
    value: bytes | None,
    headers: Sequence[tuple[str, str]] = (),
    timestamp_ms: int | None = None,
) -> Sent:
    encoded = [(name, text.encode()) for name, text in headers]
    return Sent(key.encode() if isinstance(key, str) else key, value, encoded, timestamp_ms=timestamp_ms)


def published(thalweg: Installation, *records: Sent) -> list[Receipt]:
    """Publish as any Kafka client would; the receipt of each record."""
    positions = send(thalweg.kafka, "thalweg.documents.v1", *records)
    found: dict[tuple[int, int], Receipt] = {}

    def are_all_there() -> bool:
        for message in read_all(thalweg.kafka, "thalweg.indexed.v1"):
            receipt = decode_receipt(message.value)
            found[receipt.partition, receipt.offset] = receipt
        return found.keys() >= set(positions)

    wait_until(are_all_there, "a receipt of each record")
    return [found[position] for position in positions]


def envelope(document_id: str, collection: str, **fields: Any) -> bytes:
    return msgspec.json.encode({"id": document_id, "collection": collection, "content": "Plain words."} | fields)


def document(thalweg: Installation, collection: str, document_id: str) -> dict[str, Any]:
    """Once the service shows it: it hears of a receipt as we do, and looks then."""
    answers: list[httpx.Response] = []

    def shown() -> bool:
        path = f"{thalweg.url}/v1/documents/{document_id}"
        answers.append(httpx.get(path, params={"collection": collection}, timeout=30))
        return answers[-1].status_code == 200

    wait_until(shown, lambda: answers[-1].text)
    return dict(answers[-1].json())


def test_document_in_each_form_is_indexed_with_its_trace(thalweg: Installation) -> None:
    structured = {
        "specversion": "1.0", "type": "page.published", "source": "/cms", "id": "1", "subject": "structured",
        "sequence": "4", "traceparent": OTHER_TRACE, "data": {"title": "Structured", "content": "A mill wheel turns."},
    }  # fmt: skip
    binary = [
        ("ce_specversion", "1.0"), ("ce_type", "page.published"), ("ce_subject", "binary"), ("ce_sequence", "3"),
        ("ce_traceparent", TRACE), ("content-type", "text/html"),
    ]  # fmt: skip
    receipts = published(
        thalweg,
        record("forms/envelope", envelope("envelope", "forms", title="Envelope"), [("traceparent", TRACE)]),
        record("forms/raw", b"# Raw\n\nA raw record.", [("content-type", "text/markdown"), ("thalweg-author", "Ada")]),
        record(
            "forms/json",
            b'{"id": "x", "title": "Raw JSON", "content": "Of JSON."}',
            [("content-type", "application/json")],
        ),
        record("forms/binary", b"<title>Binary</title><p>An event.</p>", binary),
        record("forms/structured", json.dumps(structured).encode(), [("content-type", "application/cloudevents+json")]),
    )
    assert [receipt.outcome for receipt in receipts] == ["indexed"] * 5, receipts
    assert [receipt.traceparent for receipt in receipts] == [TRACE, None, None, TRACE, OTHER_TRACE]
    assert [receipt.version for receipt in receipts] == [None, None, None, 3, 4]
    shown = {name: document(thalweg, "forms", name) for name in ("envelope", "raw", "json", "binary", "structured")}
    assert {name: (each["title"], each["content_type"]) for name, each in shown.items()} == {
        "envelope": ("Envelope", "text/markdown"),
        "raw": ("Raw", "text/markdown"),
        "json": ("Raw JSON", "application/json"),
        "binary": ("Binary", "text/html"),
        "structured": ("Structured", "application/json"),
    }
    assert shown["raw"]["metadata"] == {"author": "Ada"}

    gone = {"specversion": "1.0", "type": "page.deleted", "source": "/cms", "id": "2", "sequence": 5}
    late = structured | {"sequence": "5"}
    cloud = [("content-type", "application/cloudevents+json")]
    receipts = published(
        thalweg,
        record("forms/structured", json.dumps(gone).encode(), cloud),
        record("forms/structured", json.dumps(late).encode(), cloud),
        record("forms/binary", None, [("ce_specversion", "1.0"), ("ce_type", "page.deleted"), ("ce_sequence", "9")]),
        *(record(f"forms/{name}", None) for name in ("envelope", "raw", "json")),
    )
    assert [receipt.outcome for receipt in receipts] == ["deleted", "superseded", *["deleted"] * 4]
    assert receipts[2].version == 9


def nested(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"n": value}
    return value


TEXT = [("content-type", "text/plain")]
BAD = {
    "empty key": (record("", b"x", TEXT), "missing_id"),
    "empty id": (record("bad/", b"x", TEXT), "bad_key"),
    "no slash": (record("bad", b"x", TEXT), "bad_key"),
    "NUL": (record("bad/a\0b", b"x", TEXT), "bad_key"),
    "10 kB": (record("bad/" + "k" * 10_000, b"x", TEXT), "bad_key"),
    "not UTF-8": (record(b"bad/\xff", b"x", TEXT), "bad_key"),
    "another's name": (record("bad/one", envelope("two", "bad")), "key_mismatch"),
    "a PDF that says text": (record("bad/lie", pdf([[("p", "Words.")]]), TEXT), "media_type_mismatch"),
    "text that says PDF": (record("bad/lie2", b"Words.", [("content-type", "application/pdf")]), "media_type_mismatch"),
    "an unheard-of type": (record("bad/type", b"x", [("content-type", "image/unheard-of")]), "unknown_media_type"),
    "an unknown charset": (
        record("bad/charset", b"Fl\xfcsse", [("content-type", "text/plain; charset=klingon")]), "undecodable"
    ),
    "nothing to read": (
        record("bad/nothing", b"<style>p {}</style>", [("content-type", "text/html")]), "empty_content"
    ),
    "metadata of 1 MB": (
        record("bad/m1", envelope("m1", "bad", metadata={"a": "x" * 1_000_000})), "metadata_too_large"
    ),
    "metadata 100 deep": (record("bad/m2", envelope("m2", "bad", metadata=nested(100))), "metadata_too_deep"),
    "metadata 10,000 deep": (
        record("bad/m3", b'{"id":"m3","collection":"bad","content":"x","metadata":{"n":' + b"[" * 10_000), "not_json"
    ),
    "a reserved name": (record("bad/m4", envelope("m4", "bad", metadata={"page_starts": [0]})), "reserved_metadata"),
    "65 bits": (
        record("bad/m5", b'{"id":"m5","collection":"bad","content":"x","metadata":{"n":18446744073709551616}}'),
        "number_too_large",
    ),
}  # fmt: skip


def test_each_kind_of_bad_record_has_one_outcome(thalweg: Installation, tmp_path: Path) -> None:
    receipts = published(thalweg, *(bad for bad, _ in BAD.values()))
    reasons = {what: receipt.reason for what, receipt in zip(BAD, receipts, strict=True)}
    assert reasons == {what: reason for what, (_, reason) in BAD.items()}
    assert {receipt.outcome for receipt in receipts} == {"dead_lettered"}

    listed = thalweg.run_json("dead-letters", "list", "--since", "10m", "--limit", "100")["dead_letters"]
    told = {(letter["source"]["partition"], letter["source"]["offset"]): letter for letter in listed}
    assert {(receipt.partition, receipt.offset) for receipt in receipts} <= told.keys()
    times = [letter["at"] for letter in listed]
    assert times == sorted(times, reverse=True)
    only = thalweg.run_json("dead-letters", "list", "--reason", "media_type_mismatch", "--since", "10m")
    assert {letter["key"] for letter in only["dead_letters"]} >= {"bad/lie", "bad/lie2"}
    assert {letter["reason"] for letter in only["dead_letters"]} == {"media_type_mismatch"}

    position = next(letter["position"] for letter in listed if letter["key"] == "bad/lie")
    shown = thalweg.run("dead-letters", "show", position).stdout
    assert all(word in shown for word in ("bad/lie", "media_type_mismatch", "Send it as application/pdf", "%PDF-"))
    raw = subprocess.run(
        ["curl", "-s", f"{thalweg.url}/v1/dead-letters/{position}?raw=true"], capture_output=True, check=True
    )
    assert raw.stdout == BAD["a PDF that says text"][0].value


def test_kafka_refuses_a_record_without_key_or_from_the_future(thalweg: Installation) -> None:
    ahead_ms = round(time.time() * 1000) + 20 * 365 * 24 * 60 * 60 * 1000
    for refused in (record(None, b"x", TEXT), record("bad/ahead", b"x", TEXT, ahead_ms)):
        with pytest.raises(KafkaError):
            send(thalweg.kafka, "thalweg.documents.v1", refused)


def test_unusual_but_valid_input_is_indexed_unchanged(thalweg: Installation) -> None:
    ids = ["a//b/", 'it\'s "quoted"', "Guide.md", "guide.md", "caf\u00e9", "cafe\u0301"]
    day_ms = 24 * 60 * 60 * 1000
    receipts = published(
        thalweg,
        *(record(f"odd/{name}", f"The words of number{at}.".encode(), TEXT) for at, name in enumerate(ids)),
        record("odd/charset", "Die Flüsse.".encode(), [("content-type", "text/plain; charset=klingon")]),
        record("odd/deep", envelope("deep", "odd", metadata=nested(32))),
        record("odd/long", envelope("long", "odd", metadata={"n": 2**64 - 1})),
        record("odd/1970", b"A clock that was never set.", TEXT, 0),
        record("odd/behind", b"A clock that is behind.", TEXT, round(time.time() * 1000) - 9_000 * day_ms),
        record("odd/twice", envelope("twice", "odd", content="From one producer.")),
        record("odd/twice", envelope("twice", "odd", content="From the other.")),
    )
    assert [receipt.outcome for receipt in receipts[:-2]] == ["indexed"] * 11
    assert receipts[-2].outcome in ("indexed", "superseded")
    assert receipts[-1].outcome == "indexed"
    for at, name in enumerate(ids):
        hits = thalweg.search(q=f"number{at}", collection="odd", mode="keyword", k=1)["hits"]
        assert hits[0]["document_id"] == name
    assert document(thalweg, "odd", "1970")["updated_at"].startswith("1970-01-01")
    assert document(thalweg, "odd", "deep")["metadata"] == nested(32)
    assert document(thalweg, "odd", "long")["metadata"] == {"n": 2**64 - 1}
    assert "From the other." in document(thalweg, "odd", "twice")["text"]
    listed = httpx.get(f"{thalweg.url}/v1/documents", params={"collection": "odd"}, timeout=30).json()["documents"]
    assert {each["id"] for each in listed} == {*ids, "charset", "deep", "long", "1970", "behind", "twice"}
    thalweg.run("delete", *(each["id"] for each in listed), "--collection", "odd")
