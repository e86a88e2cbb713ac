"""Line ends in scripts without blanks, and characters that show nothing."""

import pytest

from indexer.parsing import parse

WRAPPED = "この港の水\n門は毎朝\n六時に開きま\nす。"


@pytest.mark.parametrize(
    ("content", "media_type"),
    [
        (WRAPPED, "text/markdown"),
        (WRAPPED.replace("毎朝", "**毎朝**"), "text/markdown"),
        (WRAPPED, "text/plain"),
        (f"題\n==\n\n{WRAPPED}", "text/x-rst"),
        (f"<p>{WRAPPED}</p>".replace("\n", "\n    ").replace("毎朝", "<b>毎朝</b>"), "text/html"),
    ],
)
def test_a_line_end_between_such_characters_is_nothing(content: str, media_type: str) -> None:
    assert parse(content.encode(), media_type).text.endswith("この港の水門は毎朝六時に開きます。")


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("水,\n門", "水, 門"),
        ("「水」\n（門）", "「水」（門）"),
        ("Ｗｅｂ\n水", "Ｗｅｂ水"),
        ("水\nWeb\n門", "水 Web 門"),
        ("한국어는\n띄어", "한국어는 띄어"),
        ("ภาษา\nไทย", "ภาษาไทย"),
        ("水 門", "水 門"),
        ("one\ntwo", "one two"),
    ],
)
def test_elsewhere_it_is_a_blank(written: str, text: str) -> None:
    assert parse(written.encode(), "text/markdown").text == text


def test_verse_and_addresses_keep_their_lines() -> None:
    for text in ("床前明月光，\n疑是地上霜。", "東京都\n丸の内"):
        assert parse(text.encode(), "text/plain").text == text


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("Be\u00adtriebs\u00adrat", "Betriebsrat"),
        ("Betriebs\u00ad\nrat", "Betriebsrat"),
        ("word\u2060joiner, zero\u200bwidth, by\ufeffte, Auf\u200clage", "wordjoiner, zerowidth, byte, Auflage"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("क्\u200dष 👩\u200d💻", "क्\u200dष 👩\u200d💻"),
        ("ไทย\u200bไทย", "ไทย\u200bไทย"),
    ],
)
@pytest.mark.parametrize("media_type", ["text/markdown", "text/plain", "text/html"])
def test_what_shows_nothing_and_divides_a_word_is_left_out(written: str, text: str, media_type: str) -> None:
    assert parse(written.encode(), media_type).text == text
    assert parse(f"<h1>{written}</h1>".encode(), "text/html").title == text
