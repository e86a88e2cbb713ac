"""What a reader can see."""

import pytest

from schemas.limits import is_blank, is_visible


@pytest.mark.parametrize(
    "text", ["", " \n\t\u00a0", "\u200b", "\ufeff\u2060\u00ad", "\u3164\u2800", "\x01\x1f\x85", None]
)
def test_blanks_of_any_width_cannot_be_seen(text: str | None) -> None:
    assert not is_visible(text)
    assert is_blank((text or "").encode())


@pytest.mark.parametrize("text", ["a", "\u200b.", "水", "\u200bй", "🌊", "\ufffd", "\u0301", "\ue000", "\0"])
def test_one_character_that_is_seen_is_enough(text: str) -> None:
    assert is_visible(text)
    assert not is_blank(text.encode())


@pytest.mark.parametrize("content", ["水".encode("utf-16-le"), "й".encode("koi8-r"), b"\xff\xd8\xff"])
def test_bytes_that_are_no_utf8_may_be_anything(content: bytes) -> None:
    assert not is_blank(content)
