"""Passages beside a question: cosines and words, also where the store or the question has none of one of them."""

import numpy as np
import pytest

from query_api.retrieval.exact_scores import CandidateScores, ExactScorer
from tests.support.fakes.text_stores import InMemoryText, Page, WordCounts, world

RIVER = Page("river", "River", [["The river is high.", "Boats wait."]])
LAKE = Page("lake", "Lake", [["The lake is calm."]])
HILL = Page("hill", "Hill", [["A hill."]])
QUESTION = "high river boats"


@pytest.fixture
def stores() -> tuple[InMemoryText, WordCounts]:
    _, text, encoder = world([RIVER, LAKE, HILL])
    return text, encoder


IDS = [page.passage_ids()[0] for page in (LAKE, RIVER)]


def cosines(text: InMemoryText, encoder: WordCounts, known: dict[str, float]) -> list[float]:
    comparer = ExactScorer(text, QUESTION, "wiki", encoder.encode([QUESTION])[0], known, with_words=True)
    found: list[float] = comparer.score([*IDS, HILL.passage_ids()[0]]).cosine.tolist()
    return found


def test_passages_are_compared_by_their_nearest_chunk_and_by_their_words(
    stores: tuple[InMemoryText, WordCounts],
) -> None:
    text, encoder = stores
    vector = encoder.encode([QUESTION])[0]
    compared = ExactScorer(text, QUESTION, "wiki", vector, {}, with_words=True).score([*IDS, IDS[0]])
    assert list(compared.row_of) == IDS, "each once"
    nearest = max(float(encoder.encode([f"River {chunk}"])[0] @ vector) for chunk in RIVER.passages[0])
    assert compared.cosine[1] == pytest.approx(nearest)
    assert compared.words.tolist() == [0.0, 4.25]
    assert compared.term_matches.tolist() == [[False] * 3, [True] * 3]
    assert compared.text[1] == pytest.approx(nearest + 0.16 * (3 + 1.25))


def test_a_question_without_a_vector_is_compared_by_words(stores: tuple[InMemoryText, WordCounts]) -> None:
    compared = ExactScorer(stores[0], QUESTION, "wiki", None, {IDS[0]: 0.9}, with_words=True).score(IDS)
    assert (compared.cosine.tolist(), compared.words.tolist()) == ([0.0, 0.0], [0.0, 4.25])
    assert stores[0].calls["compare_vectors"] == 0


def test_without_words_they_count_nothing_and_matches_are_known(stores: tuple[InMemoryText, WordCounts]) -> None:
    compared = ExactScorer(stores[0], QUESTION, "wiki", None, {}, with_words=False).score(IDS)
    assert compared.words.tolist() == [0.0, 0.0]
    assert compared.term_matches.tolist() == [[False] * 3, [True] * 3]


def test_where_the_store_cannot_tell_a_cosine_it_is_what_the_search_found_or_the_lowest_of_that(
    stores: tuple[InMemoryText, WordCounts],
) -> None:
    text, encoder = stores
    text.cosines_at_once = False
    assert cosines(text, encoder, {IDS[0]: 0.75, IDS[1]: 0.5}) == [0.75, 0.5, 0.5]
    assert cosines(text, encoder, {}) == [0.0, 0.0, 0.0]
    text.cosines_at_once = True
    told = cosines(text, encoder, {IDS[0]: 0.75})
    assert told[0] == 0.75, "what the search found is not compared again"
    assert told[1] == cosines(text, encoder, {})[1]


def test_a_word_is_worth_its_best_term_and_nothing_where_nobody_holds_it(
    stores: tuple[InMemoryText, WordCounts],
) -> None:
    comparer = ExactScorer(stores[0], "boats on RiverRafts, the unheard", "wiki", None, {}, with_words=True)
    assert comparer.word_weights(["boats", "RiverRafts", "the", "unheard", "another"]) == [1.0, 1.0, 0.0, 0.0, 0.0]


def test_a_question_of_stop_words_compares_with_nothing(stores: tuple[InMemoryText, WordCounts]) -> None:
    comparer = ExactScorer(stores[0], "who is it?", "wiki", None, {}, with_words=True)
    assert comparer.terms == ()
    assert comparer.score(IDS).term_matches.shape == (2, 0)
    assert comparer.word_weights(["who"]) == [0.0]


def test_what_is_compared_later_follows(stores: tuple[InMemoryText, WordCounts]) -> None:
    comparer = ExactScorer(stores[0], QUESTION, "wiki", None, {}, with_words=True)
    apart = comparer.score(IDS[:1]).concat(comparer.score(IDS[1:]))
    assert _plain(apart) == _plain(comparer.score(IDS))
    assert _plain(comparer.score(IDS).concat(comparer.score([]))) == _plain(comparer.score(IDS))


def _plain(compared: CandidateScores) -> list[object]:
    return [part if isinstance(part, dict) else np.asarray(part).tolist() for part in compared]
