"""Character sets that nobody declared."""

import pytest

from indexer.parsing.charsets import detect_charset
from indexer.parsing.decoding import decode_text

GERMAN = "Die Flüsse fließen über große Ebenen. Das Café an der Mündung ist schön – und öffnet früh. "
FRENCH = "Le fleuve coule près de l'école où les élèves étudient l'été. Ils ont reçu leurs livres à Noël, bien sûr. "
POLISH = "Rzeka płynie doliną i niesie piasek do morza. Łódź płynie z prądem, żeby zdążyć na święta. "
RUSSIAN = "Река течёт по долине, и вода несёт песок к морю. Где она граница, там линия идёт по руслу. "
GREEK = "Ο ποταμός ρέει κατά μήκος της κοιλάδας και μεταφέρει άμμο προς τη θάλασσα. "
JAPANESE = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。何でも薄暗いじめじめした所で泣いていた。"
CHINESE = "河流沿着山谷流淌，把沙子带到大海。船只顺流而下。"


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
