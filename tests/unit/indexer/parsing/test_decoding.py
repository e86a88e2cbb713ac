"""From bytes to characters."""

import pytest

from indexer.errors import UnparsableDocument
from indexer.parsing.decoding import decode_text, detect_charset, normalise

GERMAN = "Die Flüsse fließen über große Ebenen. Das Café an der Mündung ist schön – und öffnet früh. "
FRENCH = "Le fleuve coule près de l'école où les élèves étudient l'été. Ils ont reçu leurs livres à Noël, bien sûr. "
POLISH = "Rzeka płynie doliną i niesie piasek do morza. Łódź płynie z prądem, żeby zdążyć na święta. "
RUSSIAN = "Река течёт по долине, и вода несёт песок к морю. Где она граница, там линия идёт по руслу. "
GREEK = "Ο ποταμός ρέει κατά μήκος της κοιλάδας και μεταφέρει άμμο προς τη θάλασσα. "
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。"
CHINESE = "河流沿着山谷流淌，把沙子带到大海。船只顺流而下。"


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
    assert normalise(decode_text(b"a\r\nb\rc\x0cd\x07e\tf", "text/plain")) == "a\nb\nc\nd e\tf"


@pytest.mark.parametrize(
    ("text", "charset"),
    [
        (GERMAN, "cp1252"), (FRENCH, "cp1252"), (FRENCH, "latin-1"), (POLISH, "cp1250"), (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"), (GREEK, "cp1253"), (JAPANESE, "shift_jis"), (CHINESE, "gb18030"),
    ],
)  # fmt: skip
def test_the_character_set_is_told_by_the_words(text: str, charset: str) -> None:
    words = text * 3
    assert decode_text(words.encode(charset), "text/plain") == words
    in_english = "A line of English.\n" * 500 + words
    assert decode_text(in_english.encode(charset), "text/plain") == in_english


def test_too_few_bytes_or_no_words_tell_nothing() -> None:
    assert detect_charset("Flüsse".encode("latin-1")) is None
    assert detect_charset(bytes(range(128, 256)) * 10) is None


def test_a_declared_character_set_is_not_second_guessed() -> None:
    assert decode_text(RUSSIAN.encode("koi8-r"), "text/plain; charset=koi8-r") == RUSSIAN
    assert decode_text(FRENCH.encode("cp1252"), "text/plain; charset=cp1250") == FRENCH.encode("cp1252").decode(
        "cp1250"
    )
