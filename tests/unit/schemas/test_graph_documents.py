"""A node or an edge that people make is a document: its key, media type and content have to agree."""

import json

import pytest

from schemas.curation import encode_choice
from schemas.errors import MalformedEvent
from schemas.events import DocumentUpsert, decode_document_event
from schemas.graph_documents import EDGE_TYPE, NODE_TYPE, made_id, made_key, read_made
from schemas.graph_edits import EDGE, NODE, EdgeEdit, NodeEdit
from schemas.ids import DocumentKey
from schemas.settings import LimitSettings

PETREL: dict[str, object] = {"label": "Team Petrel", "text": "It owns heron."}
OWNS: dict[str, object] = {"source": "petrel", "target": "heron", "predicate": "owns"}


def decode(document_id: str, content_type: str, value: object) -> DocumentUpsert:
    content = value if isinstance(value, bytes) else json.dumps(value).encode()
    key, headers = f"birds/{document_id}".encode(), [("content-type", content_type.encode())]
    event = decode_document_event(key, content, headers, LimitSettings())
    assert isinstance(event, DocumentUpsert)
    return event


def test_node_is_read_from_its_document() -> None:
    event = decode("node:petrel", f"{NODE_TYPE}; charset=utf-8", PETREL)
    made = read_made(event.key, event.content_type, event.content)
    assert made == ("petrel", NodeEdit(label="Team Petrel", text="It owns heron."))


def test_edge_in_an_envelope_is_read() -> None:
    envelope = {"id": "edge:e1", "collection": "birds", "content_type": EDGE_TYPE, "content": json.dumps(OWNS)}
    event = decode_document_event(b"birds/edge:e1", json.dumps(envelope).encode(), [], LimitSettings())
    assert isinstance(event, DocumentUpsert)
    made = read_made(event.key, event.content_type, event.content)
    assert made == ("e1", EdgeEdit(source="petrel", target="heron", predicate="owns"))


def test_key_of_a_node_names_the_id_that_people_gave() -> None:
    assert str(made_key("birds", NODE, "petrel")) == "birds/node:petrel"
    assert made_id(NODE, "node:a:b") == "a:b"
    assert made_id(EDGE, "node:petrel") is None
    assert made_id(NODE, "node:" + "0" * 32) is None


@pytest.mark.parametrize(
    ("document_id", "content_type", "value", "reason", "sentence"),
    [
        ("petrel", NODE_TYPE, PETREL, "key_mismatch", "'node:<id of the node>'"),
        ("edge:petrel", NODE_TYPE, PETREL, "key_mismatch", "'node:<id of the node>'"),
        ("node:e1", EDGE_TYPE, OWNS, "key_mismatch", "'edge:<id of the edge>'"),
        ("node:" + "0" * 32, NODE_TYPE, PETREL, "key_mismatch", "not 32 hex digits"),
        ("node:petrel", NODE_TYPE, b"It owns heron.", "not_json", "not JSON"),
        ("node:petrel", NODE_TYPE, {"text": "x"}, "wrong_type", "label: Field required"),
        ("node:petrel", NODE_TYPE, PETREL | {"colour": "grey"}, "wrong_type", "colour: Extra inputs"),
        ("edge:e1", EDGE_TYPE, OWNS | {"weight": 2}, "wrong_type", "weight: Input should be less than or equal to 1"),
        ("edge:e1", EDGE_TYPE, OWNS | {"target": "petrel"}, "wrong_type", "two different ends"),
    ],
)
def test_malformed_one_is_refused_with_a_reason(
    document_id: str, content_type: str, value: object, reason: str, sentence: str
) -> None:
    with pytest.raises(MalformedEvent) as caught:
        decode(document_id, content_type, value)
    assert caught.value.reason == reason
    assert sentence in str(caught.value)


def test_other_documents_may_have_such_an_id() -> None:
    assert decode("node:petrel", "text/plain", b"It owns heron.").content == b"It owns heron."


@pytest.mark.parametrize(
    ("identifier", "change", "reason"),
    [
        ("node:a", [], "wrong_type"),
        ("node:a", {"label": ""}, "wrong_type"),
        ("node:a", {"label": "…!"}, "wrong_type"),
        ("node:a", {"label": "a\u0000b"}, "wrong_type"),
        ("node:a", {"label": "x" * 10_000}, "wrong_type"),
        ("node:a", {"type": "a/b"}, "wrong_type"),
        ("node:a", {"properties": {"list": [1]}}, "wrong_type"),
        ("node:a", {"colour": "red"}, "wrong_type"),
        (f"node:{'a' * 32}", {}, "key_mismatch"),
        ("node:a b", {}, "key_mismatch"),
        ("node:", {}, "key_mismatch"),
        ("edge:e", {"weight": 0}, "wrong_type"),
        ("edge:e", {"predicate": ""}, "wrong_type"),
        ("edge:e", {"target": ""}, "wrong_type"),
    ],
)
def test_malformed_nodes_and_edges_are_refused(identifier: str, change: object, reason: str) -> None:
    content_type, whole = (NODE_TYPE, PETREL) if identifier.startswith("node") else (EDGE_TYPE, OWNS)
    value = whole | change if isinstance(change, dict) else change
    with pytest.raises(MalformedEvent) as refused:
        read_made(DocumentKey("birds", identifier), content_type, json.dumps(value).encode())
    assert refused.value.reason == reason


@pytest.mark.parametrize("label", ["x", "Ж", "日本", "Аcme", "C++", "x" * 300, "naïve (draft)", "مرحبا"])
def test_names_in_any_script_are_taken(label: str) -> None:
    made = read_made(DocumentKey("birds", "node:a"), NODE_TYPE, encode_choice(NodeEdit(label=label)))
    assert made == ("a", NodeEdit(label=label))
