"""An answer: verbatim sentences with their sources, or a refusal that says what is missing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from query_api.answers.answer import LEAST_CONFIDENCE, compose, frames_of
from query_api.answers.features import AskedFor
from query_api.answers.sentences import TermIdf
from query_api.query.analysis import Question
from schemas.answers import Answer, AnswerCitation, AnswerDelta
from schemas.hits import Hit
from schemas.search import SearchRequest
from tests.unit.query_api.answers.found import HITS, QUESTION, hit, idf_of


def answer_to(question: str, hits: list[Hit], **options: Any) -> Answer:
    return compose(SearchRequest(q=question, answer=True, **options), hits, TermIdf(idf_of(question), 5.0))


def test_the_chain_to_the_answer_has_its_sources() -> None:
    answer = answer_to(QUESTION, HITS)
    assert not answer.refused
    assert "She was born in Lisbon, Portugal." in answer.text
    assert [source.number for source in answer.citations] == list(range(1, len(answer.citations) + 1))
    for source in answer.citations:
        of_hit = HITS[source.hit - 1]
        assert of_hit.parent_text[source.start : source.end] == source.text
        assert (source.document_id, source.title) == (of_hit.document_id, of_hit.title)
        assert f"[{source.number}]" in answer.text


def test_places_count_from_the_beginning_of_the_document() -> None:
    (source, *_) = answer_to(
        "When was the pier built?", [hit(1, "Pier", "It was built in 1901.", parent_start=700)]
    ).citations
    assert (source.start, source.end) == (700, 721)


def test_a_title_stands_before_its_first_sentence_only() -> None:
    text = answer_to("What is the pier made of?", [hit(1, "Pier", "The pier is made of oak. The pier is old.")]).text
    assert text.count("*Pier*: ") == 1


def test_a_document_without_a_title_is_named_by_its_id() -> None:
    assert answer_to("What is the pier made of?", [hit(1, "", "The pier is made of oak.")]).text.startswith("*d1*: ")


def test_frames_are_the_answer_in_pieces() -> None:
    answer = answer_to(QUESTION, HITS)
    frames = list(frames_of(answer))
    assert "".join(frame.text for frame in frames if isinstance(frame, AnswerDelta)) == answer.text
    sources = [frame for frame in frames if isinstance(frame, AnswerCitation)]
    assert [source.number for source in sources] == [source.number for source in answer.citations]
    assert list(frames_of(None)) == []


def test_what_is_unlikely_is_refused_and_the_missing_words_are_named() -> None:
    vain = [each.model_copy(update={"confidence": 0.01}) for each in HITS]
    answer = answer_to("Which airline sponsors the harbour?", vain)
    assert answer.refused
    assert (answer.text, answer.citations) == ("", [])
    assert answer.confidence is not None
    assert answer.confidence < LEAST_CONFIDENCE
    assert answer.reason is not None
    assert "“airline”, “sponsors” or “harbour”" in answer.reason


def test_nothing_found_is_refused() -> None:
    assert answer_to(QUESTION, []).refused


def test_without_confidence_it_is_not_known_how_likely_the_answer_is() -> None:
    unknown = [each.model_copy(update={"confidence": None}) for each in HITS]
    answer = answer_to(QUESTION, unknown)
    assert (answer.confidence, answer.refused) == (None, False)


def test_one_sentence_is_one_when_one_is_asked_for() -> None:
    assert len(answer_to(QUESTION, HITS, answer_sentences=1).citations) == 1


@pytest.mark.parametrize(
    ("question", "kind", "fits"),
    [
        ("When did the ferry sink?", "time", "It sank in 1934."),
        ("In which year did it open?", "time", "It opened in May."),
        ("How many boats are there?", "number", "There are twelve."),
        ("Who built it?", "person", "It was built by Jane Doe."),
        ("Where is it?", "place", "It lies in Lisbon."),
        ("What does it do?", "thing", "It is run by the Beacon Trust."),
    ],
)
def test_a_question_wants_a_kind_of_answer(question: str, kind: str, fits: str) -> None:
    asked_for = AskedFor.by(Question(question))
    assert asked_for.kind == kind
    assert asked_for.is_in(fits)
    assert not asked_for.is_in("it is so.")


@given(st.text(min_size=1, max_size=200).filter(str.strip), st.text(max_size=400), st.text(max_size=60))
def test_any_question_of_any_text_is_answered_or_refused(question: str, text: str, title: str) -> None:
    answer = answer_to(question, [hit(1, title, text), hit(2, title, text[::-1])])
    assert answer.refused == (not answer.text)
    for source in answer.citations:
        passage = text if source.hit == 1 else text[::-1]
        assert passage[source.start : source.end] == source.text
