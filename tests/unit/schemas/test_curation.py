"""Settings of collections on the curation topic: what may be said, and what is refused."""

import pytest

from schemas.curation import ChunkingChoice, chunking_key, decode_chunking, encode_choice
from schemas.errors import MalformedEvent


def test_a_choice_comes_back_as_it_was_sent() -> None:
    choice = ChunkingChoice(parent_characters=800, child_overlap=0, method="semantic", language="de")
    assert encode_choice(choice) == b'{"parent_characters":800,"child_overlap":0,"method":"semantic","language":"de"}'
    event = decode_chunking(chunking_key("notes"), encode_choice(choice))
    assert event == ("notes", choice)


def test_a_null_value_takes_the_choice_back() -> None:
    assert decode_chunking(b"notes/settings/chunking", None) == ("notes", None)


@pytest.mark.parametrize("key", [b"notes/nodes/rhine", b"notes/edges/a/settings/chunking", b"", None])
def test_edits_of_other_kinds_are_not_read_here(key: bytes | None) -> None:
    assert decode_chunking(key, b"anything") is None


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
        (b"notes/settings/colour", b"{}", "unknown_setting"),
        (b"/settings/chunking", b"{}", "bad_key"),
        (b"n\xff/settings/chunking", b"{}", "bad_key"),
    ],
)
def test_what_is_malformed_is_refused_with_its_reason(key: bytes, value: bytes, reason: str) -> None:
    with pytest.raises(MalformedEvent) as caught:
        decode_chunking(key, value)
    assert caught.value.reason == reason
    assert "klingon" not in str(caught.value), "a message quotes nothing of the record"
