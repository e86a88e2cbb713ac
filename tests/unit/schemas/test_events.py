"""What a record of the documents topic may say, and how it is told what is wrong with it."""

import base64
import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.errors import MalformedEvent
from schemas.events import DocumentDelete, DocumentUpsert, decode_document_event
from schemas.ids import DocumentKey
from schemas.settings import LimitSettings

LIMITS = LimitSettings(max_document_bytes=1000, max_metadata_bytes=200)
KEY = b"docs/guide.md"


def decode(value: bytes | None, key: bytes | None = KEY, **headers: str) -> DocumentUpsert | DocumentDelete:
    named = [(name.replace("_", "-"), text.encode()) for name, text in headers.items()]
    return decode_document_event(key, value, named, LIMITS)


def envelope(**fields: object) -> bytes:
    return json.dumps({"id": "guide.md", "collection": "docs", "content": "Hello."} | fields).encode()


def test_an_envelope_is_the_default_form() -> None:
    event = decode(envelope(title="Guide", metadata={"tag": ["a"]}, version="7", links=["other.md"], colour="red"))
    assert event == DocumentUpsert(
        key=DocumentKey("docs", "guide.md"),
        content=b"Hello.",
        content_type="text/markdown",
        title="Guide",
        metadata={"tag": ["a"]},
        version=7,
        links=["other.md"],
        unknown_fields=1,
    )


def test_base64_content_is_decoded() -> None:
    event = decode(envelope(content=None, content_base64=base64.b64encode(b"\x00pdf").decode()))
    assert isinstance(event, DocumentUpsert)
    assert event.content == b"\x00pdf"


def test_a_raw_record_is_its_content() -> None:
    event = decode(b"<p>Hi</p>", content_type="text/html; charset=utf-8", thalweg_author="Ada")
    assert isinstance(event, DocumentUpsert)
    assert (event.content, event.content_type) == (b"<p>Hi</p>", "text/html; charset=utf-8")
    assert event.metadata == {"author": "Ada"}


def test_a_null_value_deletes() -> None:
    assert decode(None) == DocumentDelete(key=DocumentKey("docs", "guide.md"))


def test_a_binary_cloudevent_carries_its_version() -> None:
    headers = [
        ("ce_specversion", b"1.0"),
        ("ce_type", b"page.published"),
        ("ce_subject", b"guide.md"),
        ("ce_sequence", b"42"),
        ("content-type", b"text/plain"),
    ]
    event = decode_document_event(KEY, b"Hello.", headers, LIMITS)
    assert isinstance(event, DocumentUpsert)
    assert (event.version, event.content_type, event.content) == (42, "text/plain", b"Hello.")


def test_a_structured_cloudevent_of_a_deleted_type_deletes() -> None:
    value = json.dumps({"specversion": "1.0", "type": "page.deleted", "subject": "guide.md", "sequence": "9"}).encode()
    event = decode(value, content_type="application/cloudevents+json; charset=utf-8")
    assert event == DocumentDelete(key=DocumentKey("docs", "guide.md"), version=9)


@pytest.mark.parametrize(
    ("value", "key", "reason"),
    [
        (b"\xff\xfe\x00", KEY, "not_json"),
        (envelope()[:-4], KEY, "not_json"),
        (b"[1, 2]", KEY, "wrong_type"),
        (b'"text"', KEY, "wrong_type"),
        (envelope(content=17), KEY, "wrong_type"),
        (envelope(metadata=[1]), KEY, "wrong_type"),
        (envelope(version=-1), KEY, "wrong_type"),
        (envelope(version="v2"), KEY, "wrong_type"),
        (envelope(version=1.5), KEY, "wrong_type"),
        (envelope(content=None, content_base64="%%%"), KEY, "wrong_type"),
        (envelope(content_base64="QUJD"), KEY, "wrong_type"),
        (json.dumps({"collection": "docs", "content": "x"}).encode(), KEY, "wrong_type"),
        (envelope(id="other.md"), KEY, "key_mismatch"),
        (envelope(), None, "missing_id"),
        (envelope(), b"", "missing_id"),
        (envelope(), b"no-slash", "bad_key"),
        (envelope(), b"docs/\xff", "bad_key"),
        (envelope(content=" \n"), KEY, "empty_content"),
        (envelope(content=None), KEY, "empty_content"),
        (envelope(content="x" * 1001), KEY, "too_large"),
        (envelope(metadata={"a": "x" * 300}), KEY, "metadata_too_large"),
        (b"[" * 100_000, KEY, "wrong_type"),
        (b'{"a":' * 100_000, KEY, "not_json"),
    ],
)
def test_a_bad_record_is_refused_with_a_reason(value: bytes, key: bytes | None, reason: str) -> None:
    with pytest.raises(MalformedEvent) as refusal:
        decode(value, key)
    assert refusal.value.reason == reason
    assert len(str(refusal.value)) < 300, "a reason is a sentence, not the record"


@given(st.binary(max_size=200), st.binary(max_size=30) | st.none())
def test_any_bytes_decode_or_are_refused(value: bytes, key: bytes | None) -> None:
    with suppress(MalformedEvent):
        assert decode_document_event(key, value, [], LIMITS)


def test_equal_content_has_an_equal_revision_and_other_content_has_not() -> None:
    first, again = decode(envelope(metadata={"a": 1, "b": 2})), decode(envelope(metadata={"b": 2, "a": 1}, version=9))
    other = decode(envelope(metadata={"a": 1, "b": 3}))
    assert isinstance(first, DocumentUpsert)
    assert isinstance(again, DocumentUpsert)
    assert isinstance(other, DocumentUpsert)
    assert first.revision == again.revision != other.revision
