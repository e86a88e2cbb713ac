"""Settings of collections on the curation topic: what may be said, and what is refused."""

import pytest
from pydantic import ValidationError

from schemas.curation import (
    ChunkingChoice,
    LinkingChoice,
    LinkingEvent,
    chunking_key,
    decode_curation,
    encode_choice,
    linking_key,
)
from schemas.errors import MalformedEvent
from schemas.orders import RELINK, OrderEvent, Relinking, relink_key


def test_a_choice_comes_back_as_it_was_sent() -> None:
    choice = ChunkingChoice(parent_characters=800, child_overlap=0, method="semantic", language="de")
    assert encode_choice(choice) == b'{"parent_characters":800,"child_overlap":0,"method":"semantic","language":"de"}'
    event = decode_curation(chunking_key("notes"), encode_choice(choice))
    assert event == ("notes", choice)


def test_linking_and_orders_come_back_as_they_were_sent() -> None:
    choice = LinkingChoice(similar_above=0.5, max_related=2)
    assert decode_curation(linking_key("notes"), encode_choice(choice)) == LinkingEvent("notes", choice)
    state = Relinking(state="running", documents=3, of=7, changed=1)
    assert decode_curation(relink_key("notes", "a1"), encode_choice(state)) == OrderEvent(RELINK, "a1", state, "notes")
    assert decode_curation(relink_key("notes", "a1"), None) == OrderEvent(RELINK, "a1", None, "notes")


def test_a_null_value_takes_the_choice_back() -> None:
    assert decode_curation(b"notes/settings/chunking", None) == ("notes", None)


@pytest.mark.parametrize("key", [b"notes/nodes/rhine", b"notes/edges/a/settings/chunking", b"", None])
def test_keys_of_other_kinds_are_not_read(key: bytes | None) -> None:
    assert decode_curation(key, b"anything") is None


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"notes/settings/chunking", b"{", "not_json"),
        (b"notes/settings/chunking", b"[]", "wrong_type"),
        (b"notes/settings/chunking", b'{"parent_characters": "800"}', "wrong_type"),
        (b"notes/settings/chunking", b'{"parent_characters": 100}', "wrong_type"),
        (b"notes/settings/chunking", b'{"method": "pages"}', "wrong_type"),
        (b"notes/settings/chunking", b'{"language": "klingon"}', "wrong_type"),
        (b"notes/settings/chunking", b'{"size": 300}', "wrong_type"),
        (b"notes/settings/linking", b'{"similar_above": 1.5}', "wrong_type"),
        (b"notes/relink/a1", b'{"state": "soon"}', "wrong_type"),
        (b"notes/settings/colour", b"{}", "unknown_setting"),
        (b"/settings/chunking", b"{}", "bad_key"),
        (b"n\xff/settings/chunking", b"{}", "bad_key"),
        (b"notes/node/petrel", b'{"label": "Petrel"}', "bad_key"),
        (b"notes/edge/petrel", None, "bad_key"),
    ],
)
def test_what_is_malformed_is_refused_with_its_reason(key: bytes, value: bytes, reason: str) -> None:
    with pytest.raises(MalformedEvent) as caught:
        decode_curation(key, value)
    assert caught.value.reason == reason
    assert "klingon" not in str(caught.value), "a message quotes nothing of the record"


def test_a_whole_number_may_be_written_as_a_float_and_no_other_may() -> None:
    assert LinkingChoice.model_validate_json('{"max_related": 63.0}') == LinkingChoice(max_related=63)
    assert type(LinkingChoice.model_validate_json('{"max_related": 63.0}').max_related) is int
    for refused in ("63.5", "true", '"63"', "1e400", "65.0"):
        with pytest.raises(ValidationError):
            LinkingChoice.model_validate_json(f'{{"max_related": {refused}}}')
