"""What a record of the documents topic may say, and how it is told what is wrong with it."""

import base64
import json
from contextlib import suppress
from typing import Any

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
        unknown_fields=("colour",),
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


def test_a_raw_json_document_is_no_envelope() -> None:
    value = envelope(id="another.md")
    event = decode(value, content_type="application/json")
    assert isinstance(event, DocumentUpsert)
    assert (event.content, event.content_type, event.title) == (value, "application/json", None)
    said = decode(envelope(title="Guide"), content_type="application/vnd.thalweg.document+json")
    assert isinstance(said, DocumentUpsert)
    assert said.title == "Guide"


@pytest.mark.parametrize(
    ("data", "content", "content_type"),
    [
        ({"data": "# Hello"}, b"# Hello", "text/markdown"),
        ({"data": "Hello", "datacontenttype": "text/plain"}, b"Hello", "text/plain"),
        ({"data": {"content": "Hello"}}, b'{"content":"Hello"}', "application/json"),
        ({"data_base64": "SGk=", "datacontenttype": "text/html"}, b"Hi", "text/html"),
        (
            {"data": json.loads(envelope()), "datacontenttype": "application/vnd.thalweg.document+json"},
            b"Hello.",
            "text/markdown",
        ),
    ],
)
def test_a_structured_cloudevent_carries_any_content(
    data: dict[str, object], content: bytes, content_type: str
) -> None:
    value = json.dumps({"specversion": "1.0", "type": "page.published", "sequence": 3} | data).encode()
    event = decode(value, content_type="application/cloudevents+json")
    assert isinstance(event, DocumentUpsert)
    assert (event.content, event.content_type, event.version) == (content, content_type, 3)


@pytest.mark.parametrize("fields", [{"content": ""}, {"content": " \n"}, {"content": None}, {"content_base64": ""}])
def test_an_envelope_with_a_title_needs_no_content(fields: dict[str, Any]) -> None:
    nothing = {"content": None} | fields
    upsert = decode(envelope(title="On the Heron", **nothing))
    assert isinstance(upsert, DocumentUpsert)
    assert upsert.is_title_only
    assert not decode(envelope(title="On the Heron")).is_title_only
    with pytest.raises(MalformedEvent) as refusal:
        decode(envelope(title=" ", **nothing))
    assert refusal.value.reason == "empty_content"


def test_a_title_of_which_nothing_can_be_seen_is_none() -> None:
    upsert = decode(envelope(title="\u200b \u3164"))
    assert isinstance(upsert, DocumentUpsert)
    assert upsert.title is None
    alone = decode(envelope(title="On the Heron", content="\u200b"))
    assert isinstance(alone, DocumentUpsert)
    assert alone.is_title_only


def test_a_null_cloudevent_deletes_at_its_version() -> None:
    headers = [("ce_specversion", b"1.0"), ("ce_type", b"page.deleted"), ("ce_sequence", b"9")]
    assert decode_document_event(KEY, None, headers, LIMITS) == DocumentDelete(
        key=DocumentKey("docs", "guide.md"), version=9
    )


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"subject": "other.md"}, "key_mismatch"),
        ({"specversion": "0.3"}, "wrong_type"),
        ({"sequence": "nine"}, "wrong_type"),
        ({"sequence": "00009223372036854775808"}, "wrong_type"),
        ({"sequence": "9" * 5_000}, "wrong_type"),
        ({"type": ""}, "wrong_type"),
        ({"data_base64": "%"}, "wrong_type"),
        ({"data": ""}, "empty_content"),
    ],
)
def test_a_bad_cloudevent_is_refused_with_a_reason(attributes: dict[str, str], reason: str) -> None:
    value = {"specversion": "1.0", "type": "page.published", "data": "Hello."} | attributes
    with pytest.raises(MalformedEvent) as refusal:
        decode(json.dumps(value).encode(), content_type="application/cloudevents+json")
    assert refusal.value.reason == reason


@pytest.mark.parametrize(
    ("sequence", "version"),
    [("0000000000000000000012", 12), ("0" * 5_000, 0), ("0009223372036854775807", 2**63 - 1), (7, 7)],
)
def test_a_sequence_may_be_padded_with_zeros(sequence: str | int, version: int) -> None:
    """The extension `sequence` is a string that sorts as text where it is padded."""
    value = {"specversion": "1.0", "type": "page.published", "data": "Hello.", "sequence": sequence}
    assert decode(json.dumps(value).encode(), content_type="application/cloudevents+json").version == version


def test_a_binary_cloudevent_needs_a_type_as_a_structured_one_does() -> None:
    with pytest.raises(MalformedEvent) as refusal:
        decode_document_event(KEY, b"Hello.", [("ce_specversion", b"1.0"), ("content-type", b"text/plain")], LIMITS)
    assert refusal.value.reason == "wrong_type"
    assert "`ce_type`" in str(refusal.value)


TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
OTHER = "00-11111111111111111111111111111111-2222222222222222-00"
STRUCTURED = {"specversion": "1.0", "type": "page.published", "data": "Hello.", "traceparent": OTHER}


@pytest.mark.parametrize(
    ("value", "headers", "trace"),
    [
        (envelope(), [("traceparent", TRACE)], TRACE),
        (None, [("traceparent", TRACE)], TRACE),
        (b"Hello.", [("content-type", "text/plain"), ("traceparent", TRACE)], TRACE),
        (b"Hello.", [("ce_specversion", "1.0"), ("ce_type", "a"), ("ce_traceparent", TRACE)], TRACE),
        (None, [("ce_specversion", "1.0"), ("ce_type", "a.deleted"), ("ce_traceparent", TRACE)], TRACE),
        (json.dumps(STRUCTURED).encode(), [("content-type", "application/cloudevents+json")], OTHER),
        (
            json.dumps(STRUCTURED).encode(),
            [("content-type", "application/cloudevents+json"), ("traceparent", TRACE)],
            TRACE,
        ),
        (envelope(), [("traceparent", TRACE.upper())], None),
        (envelope(), [("traceparent", "00-" + "0" * 32 + "-00f067aa0ba902b7-01")], None),
        (envelope(), [("traceparent", TRACE + "-more")], None),
        (envelope(), [("traceparent", "cc" + TRACE[2:] + "-what-comes")], "cc" + TRACE[2:] + "-what-comes"),
        (envelope(), [("traceparent", "ff" + TRACE[2:])], None),
    ],
)
def test_a_trace_is_carried_and_a_malformed_one_ignored(
    value: bytes | None, headers: list[tuple[str, str]], trace: str | None
) -> None:
    event = decode_document_event(KEY, value, [(name, text.encode()) for name, text in headers], LIMITS)
    assert event.traceparent == trace


def nested(levels: int) -> object:
    value: object = "x"
    for _ in range(levels):
        value = {"n": value}
    return value


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (nested(100), "metadata_too_deep"),
        (nested(33), "metadata_too_deep"),
        ({"n": 2**64}, "number_too_large"),
        ({"n": [{"m": -(2**63) - 1}]}, "number_too_large"),
        ({"page_starts": [0, 7]}, "reserved_metadata"),
        ({"stated_fields": []}, "reserved_metadata"),
    ],
)
def test_metadata_beyond_the_limits_is_refused(metadata: object, reason: str) -> None:
    with pytest.raises(MalformedEvent) as refusal:
        decode_document_event(KEY, envelope(metadata=metadata), [], LimitSettings())
    assert refusal.value.reason == reason


@pytest.mark.parametrize("metadata", [nested(32), {"n": 2**64 - 1}, {"n": -(2**63), "page": 3}])
def test_metadata_within_the_limits_is_taken(metadata: object) -> None:
    assert decode_document_event(KEY, envelope(metadata=metadata), [], LimitSettings())


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        (b"docs/", "bad_key"),
        (b"/guide.md", "bad_key"),
        (b"docs/a\0b", "bad_key"),
        (b"docs/" + b"x" * 10_000, "bad_key"),
        (b"x" * 129 + b"/a", "bad_key"),
        (b'"docs/a"', "bad_key"),
        (rb'"docs\/a \"b\""', "bad_key"),
        (b"'docs/a'", "bad_key"),
        (b"b'docs/a'", "bad_key"),
        (b'{"collection": "docs", "id": "a/b"}', "bad_key"),
        (b"\0\0\0\0\x01docs/a", "bad_key"),
    ],
)
def test_a_key_that_names_no_document_is_refused(key: bytes, reason: str) -> None:
    with pytest.raises(MalformedEvent) as refusal:
        decode(None, key)
    assert refusal.value.reason == reason
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("key", ["it's/it's", '"a"/"b"', "{slug}/{page}", "b/c", "b'/x"])
def test_collections_may_begin_with_a_mark(key: str) -> None:
    assert str(decode(None, key.encode()).key) == key


def test_keys_are_taken_as_they_are_written() -> None:
    """Slashes and quotes belong to the id; ids that differ by case or by Unicode form are different documents."""
    spellings = ["a/b//c", 'it\'s "quoted"', "Guide.md", "guide.md", "caf\u00e9", "cafe\u0301"]
    keys = {decode(None, f"docs/{spelling}".encode()).key for spelling in spellings}
    assert keys == {DocumentKey("docs", spelling) for spelling in spellings}


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
        (envelope(content="\u200b\u2060 \u00ad"), KEY, "empty_content"),
        (envelope(content="\ufeff", title="\u200b"), KEY, "empty_content"),
        (envelope(content="x" * 1001), KEY, "too_large"),
        (envelope(metadata={"a": "x" * 300}), KEY, "metadata_too_large"),
        (envelope(title="x" * 2_001), KEY, "title_too_large"),
        (envelope(uri="https://a.org/" + "x" * 4_000), KEY, "uri_too_large"),
        (envelope(content_type="text/plain; a=" + "x" * 500), KEY, "content_type_too_large"),
        (envelope(links=["a"] * 2_001), KEY, "links_too_large"),
        (envelope(links=["a", "x" * 2_178]), KEY, "links_too_large"),
        (b"[" * 100_000, KEY, "wrong_type"),
        (b'{"a":' * 100_000, KEY, "not_json"),
    ],
)
def test_a_bad_record_is_refused_with_a_reason(value: bytes, key: bytes | None, reason: str) -> None:
    with pytest.raises(MalformedEvent) as refusal:
        decode(value, key)
    assert refusal.value.reason == reason
    assert len(str(refusal.value)) < 300, "a reason is a sentence, not the record"


def test_null_is_what_is_left_out() -> None:
    optional = ["title", "uri", "metadata", "version", "links", "content_type", "content_base64"]
    assert decode(envelope(**dict.fromkeys(optional))) == decode(envelope())
    value = json.dumps({"id": "a", "collection": None, "content": "x"}).encode()
    assert decode(value, b"default/a").key == DocumentKey("default", "a")


@pytest.mark.parametrize("version", [3, 3.0, "3", "003", "3.0", "3.000"])
def test_whole_number_is_a_version_however_it_is_written(version: object) -> None:
    assert decode(envelope(version=version)).version == 3


@pytest.mark.parametrize("frame", [b"\0\0\0\0\x2a", b"\0" * 8 + b"\x07", b"\x03\0" + bytes(range(16))])
def test_json_is_read_behind_the_frame_of_a_schema_registry(frame: bytes) -> None:
    assert decode(frame + envelope()) == decode(envelope())
    event = json.dumps({"specversion": "1.0", "type": "page.deleted", "subject": "guide.md"}).encode()
    assert isinstance(decode(frame + event, content_type="application/cloudevents+json"), DocumentDelete)


@pytest.mark.parametrize(
    "value", [b"\0\0\0\0\x2a\x0cguide.md", b"\0\0\0\0\x2a\0\x0a\x05guide", b"\x03\x05" + b"z" * 40]
)
def test_what_else_a_schema_registry_frames_is_named(value: bytes) -> None:
    with pytest.raises(MalformedEvent, match="schema registry") as refusal:
        decode(value)
    assert refusal.value.reason == "not_json"


def test_raw_content_that_begins_with_zeros_is_its_own() -> None:
    assert decode(b"\0\0\0\0\x2a{}", content_type="application/octet-stream").content == b"\0\0\0\0\x2a{}"


@given(st.binary(max_size=200), st.binary(max_size=30) | st.none())
def test_any_bytes_decode_or_are_refused(value: bytes, key: bytes | None) -> None:
    with suppress(MalformedEvent):
        assert decode_document_event(key, value, [], LIMITS)


def test_what_is_said_beside_the_content_may_be_as_long_as_its_limit() -> None:
    full = envelope(title="x" * 2_000, uri="u" * 4_000, links=["l" * 2_177] * 2_000)
    assert isinstance(decode(full), DocumentUpsert)


def test_equal_content_has_an_equal_revision_and_other_content_has_not() -> None:
    first, again = decode(envelope(metadata={"a": 1, "b": 2})), decode(envelope(metadata={"b": 2, "a": 1}, version=9))
    other = decode(envelope(metadata={"a": 1, "b": 3}))
    assert isinstance(first, DocumentUpsert)
    assert isinstance(again, DocumentUpsert)
    assert isinstance(other, DocumentUpsert)
    assert first.revision == again.revision != other.revision
