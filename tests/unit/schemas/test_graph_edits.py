"""Edits of the graph on the curation topic: what may be said, and what becomes a dead letter."""

import json
from typing import Any

import pytest

from schemas.curation import decode_curation, encode_choice, graph_settings_key
from schemas.errors import MalformedEvent
from schemas.graph_edits import (
    DecisionEdit,
    EditKind,
    EntityEdit,
    GraphChoice,
    GraphEdit,
    GraphSettingsEvent,
    MergeEdit,
    PredicateEnds,
    decision_id,
    edit_key,
    merge_id,
)

A, B = "a" * 32, "b" * 32


@pytest.mark.parametrize(
    ("kind", "identifier", "edit"),
    [
        ("merge", merge_id([A, B]), MergeEdit(entities=[B, A], name="Acme", by="ada")),
        ("decision", decision_id([B, A]), DecisionEdit(decision="reject", entities=[A, B])),
        ("decision", decision_id([A]), DecisionEdit(decision="split", entities=[A])),
        ("entity", A, EntityEdit(name="Acme", type="organisation")),
    ],
)
def test_an_edit_comes_back_as_it_was_sent_and_null_undoes_it(kind: EditKind, identifier: str, edit: Any) -> None:
    key = edit_key("notes", kind, identifier)
    assert decode_curation(key, encode_choice(edit)) == GraphEdit("notes", kind, identifier, edit)
    assert decode_curation(key, None) == GraphEdit("notes", kind, identifier, None)


def test_what_a_graph_may_hold_comes_back_as_it_was_sent() -> None:
    choice = GraphChoice(node_types=["team"], predicates={"owns": PredicateEnds(source=["team"])})
    assert decode_curation(graph_settings_key("notes"), encode_choice(choice)) == GraphSettingsEvent("notes", choice)
    assert decode_curation(graph_settings_key("notes"), None) == GraphSettingsEvent("notes", None)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("n/merge/m", [], "wrong_type"),
        ("n/merge/m", {"entities": [A]}, "wrong_type"),
        ("n/merge/m", {"entities": [A, A]}, "wrong_type"),
        ("n/merge/m", {"entities": [A, "acme"]}, "wrong_type"),
        (f"n/decision/{A}", {"decision": "accept", "entities": [A, B]}, "key_mismatch"),
        (f"n/decision/{decision_id([A])}", {"decision": "accept", "entities": [A]}, "wrong_type"),
        (f"n/decision/{decision_id([A, B])}", {"decision": "split", "entities": [A, B]}, "wrong_type"),
        ("n/decision/d", {"decision": "split", "entities": [A]}, "bad_key"),
        ("n/entity/acme", {"name": "Acme"}, "bad_key"),
        ("n/settings/graph", {"node_types": []}, "wrong_type"),
        ("n/settings/graph", {"predicates": {"owns": {"from": ["team"]}}}, "wrong_type"),
    ],
)
def test_malformed_edits_say_what_is_wrong(key: str, value: Any, reason: str) -> None:
    with pytest.raises(MalformedEvent) as refused:
        decode_curation(key.encode(), json.dumps(value).encode())
    assert refused.value.reason == reason
