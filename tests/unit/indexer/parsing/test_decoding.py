"""From bytes to characters."""

import pytest

from indexer.errors import UnparsableDocument
from indexer.parsing.decoding import decode_text


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        ("Flüsse".encode(), "text/plain"),
        (b"\xef\xbb\xbf" + "Flüsse".encode(), "text/plain; charset=latin-1"),
        ("Flüsse".encode("utf-16"), "text/plain"),
        ("Flüsse".encode("utf-16-be"), "text/plain; charset=UTF-16BE"),
        ("Flüsse".encode("latin-1"), 'text/plain; charset="ISO-8859-1"'),
        ("Flüsse".encode("cp1252"), "text/plain;charset=windows-1252"),
    ],
)
def test_characters_are_read_by_mark_then_utf8_then_what_is_declared(content: bytes, content_type: str) -> None:
    assert decode_text(content, content_type) == "Flüsse"


def test_html_may_declare_its_character_set_inside() -> None:
    content = '<meta charset="iso-8859-1">Flüsse'.encode("latin-1")
    assert decode_text(content, "text/html", declared_inside=True).endswith("Flüsse")
    with pytest.raises(UnparsableDocument):
        decode_text(content, "text/html")


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"\xff\xfe\xfa", "text/plain"),
        (b"Fl\xfcsse", "text/plain"),
        (b"Fl\xfcsse", "text/plain; charset=no-such-set"),
        (b"Fl\xfcsse", "text/plain; charset=unicode_escape"),
        (b"\xed\xa0\x80 a lone surrogate", "text/plain"),
        (b"binary\0content", "text/plain"),
    ],
)
def test_what_is_not_text_is_refused(content: bytes, content_type: str) -> None:
    with pytest.raises(UnparsableDocument) as caught:
        decode_text(content, content_type)
    assert caught.value.reason == "undecodable"


def test_line_ends_are_one_kind_and_control_characters_blanks() -> None:
    assert decode_text(b"a\r\nb\rc\x0cd\x07e\tf", "text/plain") == "a\nb\nc\nd e\tf"
