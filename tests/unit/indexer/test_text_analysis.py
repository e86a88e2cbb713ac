"""The terms of a text are those of every other spelling of it, and cost no more memory than words do."""

import sys
import threading
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.chunking.sentences import language_of
from indexer.text_analysis import MAX_WORD_CHARACTERS, _analysis_by, query_terms, terms_of, words_with_terms


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Rivers running", "river run"),
        ("CAFÉ", "cafe"),
        ("cafe\u0301s", "cafés"),
        ("a\u030angstro\u0308m", "ångström"),
        ("O’Neil’s", "O'Neil"),
        ("don’t", "don't"),
        ("JOHN'S", "John"),
        ("ﬁne", "fine"),
        ("the river of the sea", "river, sea!"),
        ("snake_case", "snake case"),
        ("a\ud800b", "b"),
        ("ΑΒΓ", "αβγ"),
        ("οδός", "ΟΔΟΣ"),
        ("ｶﾞｿﾘﾝ", "ガソリン"),
        ("ＵＴＦ８", "utf8"),
        ("Łódź, Tromsø", "lodz tromso"),
        ("Işık İzmir", "isik izmir"),
        ("Ёж", "еж"),
        ("كِتَابٌ", "كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("मज़ा", "मजा"),
        ("٤٢", "42"),
        ("Silben\u00adtren\u200bnung", "Silbentrennung"),
        ("l'île", "île"),
    ],
)
def test_two_spellings_are_the_same_terms(one: str, other: str) -> None:
    assert terms_of(one) == terms_of(other) != []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("GraphView", ["graphview", "graph", "view"]),
        ("utf8", ["utf8", "utf", "8"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("marker0d30faae4ab1", ["marker0d30faae4ab1"]),
        ("Straße", ["strass"]),
        ("København", ["kobenhavn"]),
        ("т34", ["т34"]),
        ("漢字", ["漢", "漢字", "字"]),
        ("カメラ", ["カメ", "メラ"]),
        ("Wi-Fi", ["wi", "fi", "wifi"]),
        ("2024-05-06", ["2024", "05", "06"]),
        ("end-of-the-line", ["end", "line"]),
    ],
)
def test_a_word_that_is_put_together_counts_whole_and_in_its_parts(text: str, parts: list[str]) -> None:
    """Letters beyond ASCII are never taken for the place where a word is put together."""
    assert terms_of(text) == [zlib.crc32(part.encode()) for part in parts]


@pytest.mark.parametrize(
    ("query", "text", "finds"),
    [
        ("wifi", "a Wi-Fi network", True),
        ("wi fi", "wifi here", True),
        ("e mail", "email me", True),
        ("cooperate", "they co-operate", True),
        ("IT", "the IT desk", True),
        ("IT", "it is late", False),
        ("WHO", "THE MAN WHO KNEW", False),
        ("the CAN bus", "a CAN of worms", True),
        ("ガス", "カスタム", False),
        ("橋", "橋の下", True),
        ("電車", "車は電気で動く", False),
        ("학교를", "학교에서 만나요", True),
        ("강", "강을 건너다", True),
        ("대학교", "서울대학교에서", True),
        ("ตลาด", "ไปตลาดเช้า", True),
        ("ភាសា", "ភាសាខ្មែរ", True),
        ("مدرسة", "ذهبت إلى المَدْرَسَة", True),
        ("ילד", "הילד הלך", True),
        ("पान", "पानी का गिलास", False),
        ("книга", "две книги на столе", True),
        ("Wälder", "Der Wald ist im Winter sehr still und dunkel.", True),
        ("oiseaux", "Un oiseau chante le matin dans le jardin.", True),
        ("encyclopaedia", "Encyclopædia", True),
    ],
)
def test_a_query_finds_the_forms_of_its_words_and_no_others(query: str, text: str, finds: bool) -> None:
    assert set(query_terms(query)).isdisjoint(terms_of(text, language_of(text))) is not finds


def test_letters_that_overlap_are_marked_as_one_and_of_a_compound_the_word_alone() -> None:
    text = "The Wi-Fi by 中央図書館 is slow."
    found = words_with_terms(text, 0, len(text), set(query_terms("図書館 fi")))
    assert [text[start:end] for start, end, _ in found] == ["Fi", "図書館"]


@pytest.mark.parametrize("text", ["", " \n", "the of AND", "_ - ' ’ \x00 \ud800 😀 \u0301"])
def test_some_texts_have_no_terms(text: str) -> None:
    assert terms_of(text) == []


def test_terms_repeat_as_the_words_do_and_in_their_order() -> None:
    sea, river = terms_of("sea river")
    assert terms_of("Sea, river; sea. SEA") == [sea, river, sea, sea]


def test_of_a_long_word_only_its_beginning_counts_and_is_remembered() -> None:
    beginning = "q" * MAX_WORD_CHARACTERS
    _analysis_by.cache_clear()
    assert terms_of(beginning + "x" * 1_000_000) == terms_of(beginning + "y") == terms_of(beginning)
    cached: Any = _analysis_by(None)
    assert cached.cache_info().currsize == 1


@settings(deadline=None)
@given(st.text())
def test_every_text_has_terms_of_32_bits_and_the_same_each_time(text: str) -> None:
    terms = terms_of(text)
    assert all(0 <= term < 2**32 for term in terms)
    _analysis_by.cache_clear()
    assert terms_of(text) == terms


def test_threads_do_not_disturb_each_other() -> None:
    words = [f"{stem}{ending}" for stem in ("connect", "relat", "run", "argu") for ending in ("ing", "ed", "s", "ion")]
    texts = [" ".join(f"{word}x{number}" for word in words) for number in range(200)]
    expected = [terms_of(text) for text in texts]
    _analysis_by.cache_clear()
    found: dict[int, list[list[int]]] = {}
    threads = [
        threading.Thread(target=lambda number=number: found.update({number: [terms_of(text) for text in texts]}))
        for number in range(4)
    ]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert list(found.values()) == [expected] * 4
