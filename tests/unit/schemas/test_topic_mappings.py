"""Rows of tables as documents: how connectors wrap them, what deletes, and what is refused."""

import json
from typing import Any

import pytest

from schemas.errors import MalformedEvent
from schemas.ids import DocumentKey
from schemas.topic_mappings import TopicMapping

MAPPING = TopicMapping(
    collection="shop", content="body", title="title", metadata={"by": "author.name", "tag": "tags.0"}
)
ROW = {"id": 7, "title": "Rope", "body": "A rope.", "author": {"name": "Ann"}, "tags": ["sea"]}


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def debezium(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, "source": {"table": "ropes"}, "ts_ms": 1}


@pytest.mark.parametrize(
    "value",
    [
        ROW,
        {"schema": {"type": "struct"}, "payload": ROW},
        debezium("c", after=ROW),
        debezium("r", after=ROW),
        debezium("u", before={"id": 7}, after=ROW),
        {"schema": {}, "payload": debezium("u", after=ROW)},
        debezium("c", after=json.dumps(ROW)),
        ROW | {"__deleted": "false"},
    ],
)
@pytest.mark.parametrize("frame", [b"", b"\0\0\0\0\x05"])
def test_row_is_a_document_however_it_is_wrapped(value: Any, frame: bytes) -> None:
    found = MAPPING.document(b"any key", frame + encoded(value))
    assert found is not None
    key, envelope = found
    assert key == DocumentKey("shop", "7")
    assert envelope is not None
    sent = {name: value for name, value in json.loads(envelope).items() if value}
    assert sent == {
        "id": "7",
        "collection": "shop",
        "title": "Rope",
        "content": "A rope.",
        "content_type": "text/markdown",
        "metadata": {"by": "Ann", "tag": "sea"},
    }


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"id": 7}', encoded(debezium("d", before={"id": 7}))),
        (b'{"id": 7}', encoded(debezium("d"))),
        (b'{"schema": {}, "payload": {"id": 7}}', None),
        (b'\0\0\0\0\x05{"id": 7}', None),
        (b"7", None),
        (b'"7"', None),
        (b"", encoded(ROW | {"__deleted": "true"})),
    ],
)
def test_deleted_row_deletes_its_document(key: bytes, value: bytes | None) -> None:
    assert MAPPING.document(key, value) == (DocumentKey("shop", "7"), None)


def test_row_without_a_path_of_content_is_json_and_its_id_may_have_parts() -> None:
    found = TopicMapping(id=("author.name", "id")).document(None, encoded(ROW))
    assert found is not None
    assert found[1] is not None
    envelope = json.loads(found[1])
    assert (str(found[0]), envelope["content_type"]) == ("default/Ann/7", "application/json")
    assert json.loads(envelope["content"]) == ROW


def test_message_beside_the_rows_is_none() -> None:
    assert MAPPING.document(None, encoded(debezium("m"))) is None


@pytest.mark.parametrize(
    ("key", "value", "reason", "words"),
    [
        (None, b"no JSON", "not_json", "not JSON"),
        (None, b"\0\0\0\0\x05\x02\x0a", "not_json", "schema registry"),
        (None, b"[1]", "wrong_type", "not a JSON object"),
        (None, encoded({"title": "Rope"}), "missing_id", "it has 'title'"),
        (None, encoded(ROW | {"id": None}), "missing_id", "no id at 'id'"),
        (None, encoded(ROW | {"id": {}}), "missing_id", "no id at 'id'"),
        (None, None, "missing_id", "it has nothing"),
        (None, encoded(debezium("t")), "wrong_type", "truncated"),
        (None, encoded(ROW | {"body": "__debezium_unavailable_value"}), "wrong_type", "REPLICA IDENTITY FULL"),
        (None, encoded(ROW | {"id": "a\0b"}), "bad_key", "control character"),
    ],
)
def test_what_is_no_row_is_refused(key: bytes | None, value: bytes | None, reason: str, words: str) -> None:
    with pytest.raises(MalformedEvent, match=words) as refused:
        MAPPING.document(key, value)
    assert refused.value.reason == reason
