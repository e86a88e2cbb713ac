"""Sentences of canonical text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from indexer.chunking import sentences as sentences_module
from indexer.chunking.sentences import language_of, sentence_spans


def sentences(text: str, language: str = "en") -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text, language=language)]


SPOKEN = {
    "de": ["Das gilt z. B. für Dr. Müller am 3. Mai 2024.", "Er kam ca. 5 Min. zu spät, d. h. um 8.30 Uhr."],
    "fr": ["M. Dupont habite 3,5 km plus loin, cf. p. 12.", "Est-ce vrai ?", "Oui !"],
    "es": ["El Sr. García vive en la Av. Libertad.", "¿Qué hora es?", "Son las 3.30."],
    "ru": ["Он родился в 1990 г. в Москве.", "Это было давно, т. е. тогда.", "Да."],
    "pl": ["Prof. Kowalski mieszka przy ul. Długiej, tj. w centrum.", "To np. prawda.", "Tak."],
    "nl": ["Dhr. Jansen woont o.a. in Amsterdam.", "Hij komt b.v. morgen."],
    "hi": ["राम घर गया।", "सीता भी गई।", "क्या तुम आओगे?", "हाँ॥"],
    "ar": ["ذهب إلى المدرسة.", "هل أنت بخير؟", "نعم، أنا بخير!"],
    "ur": ["وہ گھر گیا۔", "کیا تم آؤ گے؟", "ہاں۔"],
    "el": ["Πού είσαι;", "Είμαι εδώ."],
    "hy": ["Բարեւ։", "Ինչպես ես։"],
}
UNSPACED = {
    "zh": ["今天天气很好。", "我们去公园吧！", "你去吗？", "价格是3.5元。"],
    "ja": ["今日は天気がいい。", "公園へ行こう！", "行きますか？"],
}


@pytest.fixture(params=["pycld2", "py3langid"])
def detector(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Either of the libraries that tell languages, whichever of them this Python has."""
    pytest.importorskip(request.param, exc_type=ImportError)
    if request.param == "py3langid":
        monkeypatch.setattr(sentences_module, "pycld2", None)


@pytest.mark.usefixtures("detector")
@pytest.mark.parametrize("language", [*SPOKEN, *UNSPACED])
def test_each_language_ends_its_sentences_in_its_own_way_and_is_told_from_its_text(language: str) -> None:
    said = SPOKEN.get(language) or UNSPACED[language]
    text = (" " if language in SPOKEN else "").join(said)
    assert language_of(text) == language
    assert sentences(text, language) == said


@pytest.mark.usefixtures("detector")
@pytest.mark.parametrize("text", ["", "x = 1; foo(bar)", "OK", "\x01\x02", "\ud800", "12 34", "."])
def test_what_is_no_language_is_cut_as_english(text: str) -> None:
    assert language_of(text) == "en"


def test_english_keeps_an_abbreviation_and_a_decimal_whole_and_may_begin_in_lower_case() -> None:
    assert sentences("Dr. Smith paid $3.50 for it, e.g. in St. Louis. pip is a tool. J. R. R. Tolkien wrote it.") == [
        "Dr. Smith paid $3.50 for it, e.g. in St. Louis.",
        "pip is a tool.",
        "J. R. R. Tolkien wrote it.",
    ]


@pytest.mark.parametrize("blank", ["\xa0", "\u3000", "\u2009"])
def test_a_blank_of_several_bytes_behind_an_initial_breaks_nothing(blank: str) -> None:
    assert sentences(f"A.{blank}B went. C") == [f"A.{blank}B went.", "C"]


def test_abbreviations_end_no_sentence_and_lines_do() -> None:
    assert sentences("Hello Dr. Smith went home. He slept!\n\nA heading\n- an item. More") == [
        "Hello Dr. Smith went home.",
        "He slept!",
        "A heading",
        "- an item.",
        "More",
    ]


def test_a_number_before_an_item_belongs_to_it() -> None:
    assert sentences("1. First of all. Then.\na) Second") == ["1. First of all.", "Then.", "a) Second"]


def test_spans_of_a_part_count_characters_of_the_whole() -> None:
    text = "One. Two 😀 é. Three."
    assert sentence_spans(text, 5) == [(5, 13), (14, 20)]
    assert sentence_spans(text, 5, 13) == [(5, 13)]


def test_there_may_be_none() -> None:
    assert sentence_spans("") == []
    assert sentence_spans(" \n\t\n ") == []


@pytest.mark.processor_seconds(30)
@pytest.mark.parametrize("text", ["“" * 300_000, "x" * 5_000_000, "a. " * 300_000, "' " * 300_000, "(" * 1_000_000])
def test_time_is_bounded_whatever_the_line(text: str) -> None:
    assert sentence_spans(text)


@settings(max_examples=200, deadline=None)
@given(
    st.text(alphabet=st.sampled_from('abÄя 1.!?\n"“”()[]é😀\u2028\xa0。।؟'), max_size=400),
    st.sampled_from(["en", "de", "ru", "zh", "hi", "ar", "el"]),
)
def test_every_visible_character_is_in_exactly_one_sentence(text: str, language: str) -> None:
    spans = sentence_spans(text, language=language)
    assert spans == sorted(spans)
    covered = [position for start, end in spans for position in range(start, end)]
    assert len(covered) == len(set(covered))
    assert {position for position, character in enumerate(text) if not character.isspace()} <= set(covered)
    for start, end in spans:
        assert text[start:end] == text[start:end].strip() != ""
