"""Documents over HTTP: one envelope or many, files and raw bodies, and the record each becomes."""

import io
import json
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from starlette.datastructures import FormData, UploadFile

from query_api.errors import ApiProblem
from query_api.ingest import intake
from schemas.events import DocumentDelete, DocumentUpsert, decode_document_event
from schemas.ids import DocumentKey
from schemas.limits import is_blank
from schemas.settings import KafkaSettings, LimitSettings

LIMITS = LimitSettings()
KAFKA = KafkaSettings()
KEY = DocumentKey("default", "notes/a.md")


def envelope(**fields: Any) -> bytes:
    return json.dumps({"id": "notes/a.md", "content": "text"} | fields).encode()


def test_a_single_envelope_is_no_batch() -> None:
    assert intake.split_json(envelope(), 9) is None
    assert intake.split_json(envelope(documents=[]), 9) is None


def test_a_batch_is_a_list_or_an_object_with_documents() -> None:
    members = [json.loads(envelope()), {"id": "b"}]
    for body in (members, {"documents": members}):
        split = intake.split_json(b" \n" + json.dumps(body).encode(), 9)
        assert split is not None
        assert [json.loads(bytes(member)) for member in split] == members


@pytest.mark.parametrize(("body", "status"), [(b"", 400), (b"[1", 400), (b"7", 422), (b'{"documents": 7}', 422)])
def test_what_is_neither_is_refused(body: bytes, status: int) -> None:
    with pytest.raises(ApiProblem) as caught:
        intake.split_json(body, 9)
    assert caught.value.status == status


def test_each_member_of_a_batch_stands_for_itself() -> None:
    good, bad, worse = intake.from_envelopes([envelope(), b'{"id": "b"}', b"7"], LIMITS)
    assert isinstance(good.outcome, DocumentUpsert)
    assert isinstance(bad.outcome, ApiProblem)
    assert (bad.id, worse.id) == ("b", None)
    with pytest.raises(ApiProblem):
        intake.event_or_raise(bad)


def test_a_put_may_leave_out_the_names_and_must_not_contradict_the_path() -> None:
    assert intake.from_envelope(b'{"content": "x"}', LIMITS, expected=KEY).key == KEY
    with pytest.raises(ApiProblem) as caught:
        intake.from_envelope(envelope(id="other"), LIMITS, expected=KEY)
    assert caught.value.status == 422
    with pytest.raises(ApiProblem) as caught:
        intake.from_envelope(b"nonsense", LIMITS, expected=KEY)
    assert caught.value.status == 400


def test_a_raw_body_takes_its_metadata_from_headers() -> None:
    headers = {"content-type": "text/html; charset=utf-8", "thalweg-author": "Ada", "user-agent": "curl"}
    event = intake.from_raw(KEY, b"<p>text</p>", headers, LIMITS, title="T", version=3)
    assert isinstance(event, DocumentUpsert)
    assert (event.title, event.version, event.metadata) == ("T", 3, {"author": "Ada"})
    assert event.content_type == "text/html; charset=utf-8"


def test_a_title_may_complete_by_model_in_an_envelope_and_not_beside_an_empty_file() -> None:
    upsert = intake.from_envelope(envelope(title="The Heron", content=""), LIMITS)
    assert isinstance(upsert, DocumentUpsert)
    assert upsert.is_title_only
    record = intake.record_of(upsert, KAFKA)
    assert decode_document_event(record.key, record.value, [], LIMITS) == upsert
    with pytest.raises(ApiProblem) as caught:
        intake.from_raw(KEY, b"", {"content-type": "text/plain"}, LIMITS, title="The Heron")
    assert caught.value.members["reason"] == "empty_content"


def test_the_record_says_what_the_document_says() -> None:
    upsert = DocumentUpsert(
        key=KEY,
        content="naïve text".encode(),
        content_type="text/plain",
        title="T",
        uri="u",
        metadata={"n": [1, None]},
        version=2**63 - 1,
        links=["b"],
    )
    record = intake.record_of(upsert, KAFKA)
    assert record.key == b"default/notes/a.md"
    again = decode_document_event(record.key, record.value, [], LIMITS)
    assert again == upsert


@given(
    content=st.binary(min_size=1).filter(lambda content: not is_blank(content)),
    document_id=st.text(min_size=1, max_size=50),
)
def test_any_content_survives_the_record(content: bytes, document_id: str) -> None:
    assume(not any(ord(character) < 32 or ord(character) == 127 for character in document_id))
    key = intake.document_key("default", document_id)
    upsert = DocumentUpsert(key=key, content=content, content_type="text/plain")
    record = intake.record_of(upsert, KAFKA)
    again = decode_document_event(record.key, record.value, [], LIMITS)
    assert isinstance(again, DocumentUpsert)
    assert again.content == content
    assert again.revision == upsert.revision


def test_a_delete_is_a_null_value() -> None:
    assert intake.record_of(DocumentDelete(key=KEY), KAFKA).value is None


def test_the_trace_of_a_request_goes_on_in_its_record() -> None:
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    record = intake.record_of(intake.from_envelope(envelope(), LIMITS), KAFKA, trace)
    assert decode_document_event(record.key, record.value, record.headers, LIMITS).traceparent == trace


@pytest.mark.parametrize(
    ("metadata", "status", "reason"),
    [
        ({"a": "x" * 1_000_000}, 413, "metadata_too_large"),
        ({"page_starts": [0]}, 422, "reserved_metadata"),
        ({"n": 2**64}, 422, "number_too_large"),
    ],
)
def test_metadata_the_worker_would_not_take_is_refused(metadata: dict[str, Any], status: int, reason: str) -> None:
    with pytest.raises(ApiProblem) as caught:
        intake.from_envelope(envelope(metadata=metadata), LIMITS)
    assert (caught.value.status, caught.value.members["reason"]) == (status, reason)


def test_a_record_over_the_topics_limit_is_refused() -> None:
    upsert = DocumentUpsert(key=KEY, content=b"\x01" * (KAFKA.max_record_bytes // 4), content_type="text/plain")
    with pytest.raises(ApiProblem) as caught:
        intake.record_of(upsert, KAFKA)
    assert caught.value.status == 413


def test_a_json_file_of_a_form_is_a_document_and_no_envelope() -> None:
    value = b'{"title": "Data", "content": "Of a mill."}'
    form = FormData([("file", UploadFile(io.BytesIO(value), filename="data.json"))])
    (candidate,) = intake.from_form(form, LIMITS)
    upsert = intake.event_or_raise(candidate)
    assert isinstance(upsert, DocumentUpsert)
    assert (upsert.content, upsert.content_type, upsert.title) == (value, "application/json", None)
    record = intake.record_of(upsert, KAFKA)
    assert decode_document_event(record.key, record.value, record.headers, LIMITS) == upsert


def test_a_json_document_comes_raw_under_another_json_type() -> None:
    upsert = intake.from_raw(KEY, b'{"content": "Of a mill."}', {"content-type": "text/json"}, LIMITS)
    assert isinstance(upsert, DocumentUpsert)
    assert (upsert.content, upsert.content_type) == (b'{"content": "Of a mill."}', "text/json")


@pytest.mark.parametrize("name", ["title", "uri"])
def test_what_is_named_beside_a_raw_body_has_the_limits_of_an_envelope(name: str) -> None:
    said: dict[str, Any] = {name: "x" * 5_000_000}
    with pytest.raises(ApiProblem) as caught:
        intake.from_raw(KEY, b"text", {"content-type": "text/plain"}, LIMITS, **said)
    assert (caught.value.status, caught.value.members["reason"]) == (413, f"{name}_too_large")


@pytest.mark.parametrize("wrap", [b"[%s]", b'{"documents": [%s]}'])
def test_members_of_a_batch_are_counted_before_anything_is_made_of_them(wrap: bytes) -> None:
    at_most = intake.split_json(wrap % b",".join([b"{}"] * 9), 9)
    assert at_most is not None
    assert len(at_most) == 9
    for many in (10, 1_000_000):
        with pytest.raises(ApiProblem) as caught:
            intake.split_json(wrap % b",".join([b"{}"] * many), 9)
        assert caught.value.status in {413, 422}


def test_what_lies_in_a_member_is_counted_too() -> None:
    bomb = b'[{"id": "a", "content": "x", "junk": [' + b",".join([b"[]"] * intake.MAX_JSON_MEMBERS) + b"]}]"
    with pytest.raises(ApiProblem) as caught:
        intake.split_json(bomb, 9)
    assert (caught.value.status, caught.value.members["reason"]) == (413, "too_many_members")


def test_an_envelope_too_long_for_any_document_is_refused_before_it_is_decoded() -> None:
    limits = LimitSettings(max_document_bytes=1_000)
    with pytest.raises(ApiProblem) as caught:
        intake.from_envelope(b"no JSON at all" * 100_000, limits)
    assert (caught.value.status, caught.value.members["reason"]) == (413, "too_large")
