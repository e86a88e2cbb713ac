"""Evidence: the sentence that names what a step is about, found without normalising those that cannot hold it."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from indexer.chunking.sentences import sentence_spans
from query_api.query.analysis import normalise_text
from query_api.query.evidence_sentences import sentence_naming, sentence_of_fact, written_in
from schemas.ids import normalise_name

WORDS = st.sampled_from(
    ["Will", "Grace", "&", "&amp;", "AT&T", "(film)", "Jones's", "x's-y", "X-Y", "Café", "CAFE", "foo_bar", "C++", "."]
)
TEXTS = st.lists(WORDS | st.text("aé'’s-& .", max_size=4), max_size=8).map(" ".join)


@given(TEXTS, TEXTS)
@example("It was cold. Will &amp; Grace won.", "Will & Grace")
@example("So the x's-y ran.", "x-y")
@example("It is a Café.", "cafe")
def test_the_first_sentence_whose_normalised_words_hold_the_name_is_found(text: str, name: str) -> None:
    wanted = normalise_name(name)
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    naming = (each for each in sentences if wanted and f" {wanted} " in f" {normalise_text(each)} ")
    assert sentence_naming(text, wanted) == next(naming, None)


@pytest.mark.parametrize(
    ("text", "name", "written"),
    [
        ("The TARN Works closed.", "tarn works", "TARN Works"),
        ("The Tarn-Works closed, then tarn works.", "tarn works", "tarn works"),
        ("The Tarn\nWorks closed.", "tarn works", "Tarn\nWorks"),
        ("İ before the Tarn Works.", "tarn works", "Tarn Works"),
        ("Works of the Tarn.", "tarn works", None),
        ("A brook.", "tarn", None),
        ("A brook.", "", None),
        ("", "tarn", None),
    ],
)
def test_a_name_is_shown_as_the_text_writes_it(text: str, name: str, written: str | None) -> None:
    assert written_in(text, name) == written


CHUNK = "Tarn uses rope. Ada likes Tarn. Ada uses Tarn. Superseded-By: 435. Nobody knows."


@pytest.mark.parametrize(
    ("predicate", "end", "other", "sentence"),
    [
        ("uses", "ada", "tarn", "Ada uses Tarn."),
        ("uses", "ben", "tarn", "Tarn uses rope."),
        ("owns", "ben", "tarn", "Tarn uses rope."),
        ("superseded_by", "pep 354", "pep 435", "Superseded-By: 435."),
        ("uses", "ada", "cloth", None),
        ("uses", "ada", "", None),
    ],
)
def test_the_sentence_of_a_fact_holds_the_end_it_is_evidence_of(
    predicate: str, end: str, other: str, sentence: str | None
) -> None:
    assert sentence_of_fact(CHUNK, predicate, end, other) == sentence


@pytest.mark.parametrize(
    ("predicate", "end", "other", "sentence"),
    [
        ("author", "tarn", "ada", None),
        ("author", "ben", "ada", None),
        ("superseded_by", "pep 354", "pep 435", "Superseded-By: 435."),
    ],
)
def test_fact_of_front_matter_is_not_proved_by_any_sentence(
    predicate: str, end: str, other: str, sentence: str | None
) -> None:
    assert sentence_of_fact(CHUNK, predicate, end, other, is_stated=False) == sentence
