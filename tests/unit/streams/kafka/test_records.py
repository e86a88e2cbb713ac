"""The headers of a dead letter."""

from schemas.errors import MalformedEvent
from streams.kafka.records import DeadLetter, SourceRecord, letter_headers, omitted_headers


def letter(error: Exception, headers: tuple[tuple[str, bytes], ...] = (), value: bytes | None = b"bytes") -> DeadLetter:
    return SourceRecord(2, 41, 0, b"default/a", value, headers).dead_letter("t.documents.v1", "decode", error)


def decoded(headers: list[tuple[str, bytes]]) -> dict[str, str]:
    return {name: value.decode() for name, value in headers}


def test_kafka_connects_headers_say_where_it_came_from_and_why() -> None:
    headers = decoded(letter_headers(letter(MalformedEvent("not_json", "It is not JSON."))))
    assert headers == {
        "__connect.errors.topic": "t.documents.v1",
        "__connect.errors.partition": "2",
        "__connect.errors.offset": "41",
        "__connect.errors.connector.name": "thalweg",
        "__connect.errors.task.id": "0",
        "__connect.errors.stage": "decode",
        "__connect.errors.class.name": "thalweg.decode",
        "__connect.errors.exception.class.name": "schemas.errors.MalformedEvent",
        "__connect.errors.exception.message": "It is not JSON.",
        "thalweg.reason": "not_json",
    }


def test_what_an_unexpected_error_says_stays_out_for_it_may_quote_the_document() -> None:
    headers = decoded(letter_headers(letter(ValueError("bad value: the secret text"))))
    assert headers["thalweg.reason"] == "failed"
    assert "secret" not in str(headers)


def test_the_producers_headers_stay_and_those_of_an_earlier_dead_letter_go() -> None:
    before = (("content-type", b"text/plain"), ("thalweg.reason", b"old"), ("__connect.errors.offset", b"7"))
    headers = letter_headers(letter(MalformedEvent("not_json", "It is not JSON."), before))
    assert headers[0] == ("content-type", b"text/plain")
    assert [value for name, value in headers if name == "__connect.errors.offset"] == [b"41"]
    assert [value for name, value in headers if name == "thalweg.reason"] == [b"not_json"]


def test_a_record_that_does_not_fit_says_how_large_it_was_and_where_it_still_is() -> None:
    headers = decoded(omitted_headers(letter(MalformedEvent("too_large", "Too large."), (("origin", b"x"),), b"12345")))
    assert headers["thalweg.value.omitted"] == "5 bytes"
    assert headers["__connect.errors.offset"] == "41"
    assert "origin" not in headers
