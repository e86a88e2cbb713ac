"""How dead letters are shown."""

import pytest

from query_api.dead_letters.records import PREVIEW_BYTES, LetterRecord, detail, escaped, summary
from schemas.dead_letters import OMITTED_HEADER


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"caf\xc3\xa9", "café"),
        (b"\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        (b"\xff\x00", "\\xff\\x00"),
        ("\u202eright to left\u2066".encode(), "\\u202eright to left\\u2066"),
        (b"one\ntwo", "one\\ntwo"),
    ],
)
def test_characters_that_do_not_print_are_escaped(content: bytes, text: str) -> None:
    assert escaped(content, 100) == text


def test_a_beginning_ends_between_characters() -> None:
    assert escaped("é".encode() * 3, 3) == "é"
    assert escaped("é".encode()[:1], 3) == "\\xc3"


ENVELOPE = b'{"id": "a", "collection": "c", "content": "caf\xc3\xa9", "content_type": "application/pdf"}'


@pytest.mark.parametrize(
    ("value", "headers", "content_bytes"),
    [
        (ENVELOPE, [], 5),
        (ENVELOPE.replace(b'content": "caf\xc3\xa9', b'content_base64": "AP8='), [], 2),
        (ENVELOPE.replace(b'"c"', b'"other"'), [], None),
        (b"%PDF-", [("content-type", b"application/pdf")], 5),
        (b"{", [], None),
        (b"", [(OMITTED_HEADER, b"9 bytes"), ("content-type", b"text/plain")], None),
        (None, [], None),
    ],
)
def test_size_is_that_of_record_and_of_document_in_it(
    value: bytes | None, headers: list[tuple[str, bytes]], content_bytes: int | None
) -> None:
    shown = summary(LetterRecord(0, 5, 0, b"c/a", value, headers))
    assert (shown.bytes, shown.content_bytes) == (None if value is None else len(value), content_bytes)


def test_record_without_letter_headers_is_shown() -> None:
    shown = detail(LetterRecord(0, 5, -1, None, b"x" * (PREVIEW_BYTES + 1), [("note", b"\x00")]))
    assert (shown.position, shown.key, shown.source, shown.reason) == ("0:5", None, None, "unknown")
    assert (len(shown.preview), shown.preview_is_all, shown.headers) == (PREVIEW_BYTES, False, {"note": "\\x00"})
