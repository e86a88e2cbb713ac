"""Text on its way to a terminal."""

from schemas.terminal import plain


def test_what_a_terminal_would_obey_is_shown() -> None:
    assert plain("a\x1b[31mb\x9bc\x7fd\x00\u202ee\u2066") == "a\\x1b[31mb\\x9bc\\x7fd\\x00\\u202ee\\u2066"


def test_what_people_write_stays_as_it_is() -> None:
    for text in ("tab\tand\nline", "Zürich 東京", "שלום\u200f!", "می\u200cخواهم", "👩\u200d🔬"):
        assert plain(text) == text
    assert plain("of Windows\r\n") == "of Windows\n"
