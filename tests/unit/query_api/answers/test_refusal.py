"""The signs by which an answer is refused, worked by hand."""

import math

import pytest

from indexer.text_analysis import query_terms
from query_api.answers.features import Titles
from query_api.answers.refusal import SIGNS, USUAL_COSINE, signs
from query_api.answers.sentences import TermIdf, sentences_of_hits
from query_api.query.analysis import Question
from schemas.hits import Hit
from tests.unit.query_api.answers.found import hit, idf_of

ASKED = "who built the Pier of Lisbon"


def signs_of(question: str, hits: list[Hit]) -> dict[str, float] | None:
    idf = idf_of(question)
    sentences = sentences_of_hits(hits, idf, 65)
    found = signs(Question(question), hits, sentences, Titles.of(Question(question), hits[:5], idf), TermIdf(idf, 4.0))
    return None if found is None else dict(zip(SIGNS, found.tolist(), strict=True))


def test_signs_of_two_hits() -> None:
    hits = [
        hit(1, "Pier", "It was built of oak.", confidence=0.4, scores={"vector": 0.6}),
        hit(2, "Oak", "A tree. Lisbon has many.", confidence=0.2, scores={"vector": 0.4}),
    ]
    found = signs_of(ASKED, hits)
    terms = len(set(query_terms(ASKED)))
    assert found == pytest.approx(
        {
            "confidence": 0.4,
            "mean_confidence": math.log(0.3 / 0.7),
            "cosine": 0.5,
            "names_missing": 0.0,
            "best_hit": 2 / terms,
            "size": 4.0,
        }
    )


def test_a_name_that_no_hit_has_is_missing() -> None:
    found = signs_of(ASKED, [hit(1, "Pier", "It was built of oak.")])
    assert found is not None
    assert found["names_missing"] == 0.5


def test_hits_after_the_fifth_do_not_count() -> None:
    hits = [hit(rank, f"Note {rank}", f"Nothing {rank}.", confidence=0.1) for rank in range(1, 6)]
    assert signs_of(ASKED, [*hits, hit(6, "Pier of Lisbon", "He built it.")]) == signs_of(ASKED, hits)


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_what_is_certain_has_finite_log_odds(confidence: float) -> None:
    found = signs_of(ASKED, [hit(1, "Pier", "Built.", confidence=confidence)])
    assert found is not None
    assert math.isfinite(found["mean_confidence"])


def test_a_search_without_vectors_has_the_usual_cosine() -> None:
    found = signs_of(ASKED, [hit(1, "Pier", "Built.", scores={"keyword": 0.5})])
    assert found is not None
    assert found["cosine"] == USUAL_COSINE


def test_without_any_confidence_there_are_no_signs() -> None:
    assert signs_of(ASKED, [hit(1, "Pier", "Built.", confidence=None)]) is None
    assert signs_of(ASKED, []) is None
