"""Text on its way to a terminal."""

import json

from schemas.terminal import plain, plain_json


def test_what_a_terminal_would_obey_is_shown() -> None:
    assert plain("a\x1b[31mb\x9bc\x7fd\x00\u202ee\u2066") == "a\\x1b[31mb\\x9bc\\x7fd\\x00\\u202ee\\u2066"


def test_what_people_write_stays_as_it_is() -> None:
    for text in ("tab\tand\nline", "Zürich 東京", "שלום\u200f!", "می\u200cخواهم", "👩\u200d🔬"):
        assert plain(text) == text
    assert plain("of Windows\r\n") == "of Windows\n"


def test_a_name_that_is_no_utf_8_can_be_printed() -> None:
    """As Python reads a file's name of bytes: b"caf\\xe9.md"."""
    shown = plain(b"caf\xe9.md".decode("utf-8", "surrogateescape"))
    assert shown.encode() == b"caf\\udce9.md"


def test_json_says_the_same_and_steers_nothing() -> None:
    answer = {"title": "a\x1b[31mb\x9bc\x7fd\u202ee\r\n", "text": "Zürich\n東京"}
    written = plain_json(json.dumps(answer, ensure_ascii=False, indent=2))
    assert json.loads(written) == answer
    assert "東京" in written
    assert not {"\x1b", "\x9b", "\x7f", "\u202e", "\r"} & set(written)
