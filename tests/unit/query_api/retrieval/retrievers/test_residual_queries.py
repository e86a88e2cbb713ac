"""The residual hop: what is asked after a seed is read, and how what it finds is scaled, by hand."""

import numpy as np
import pytest

from query_api.index.snapshot import Candidate
from query_api.query.analysis import Question
from query_api.retrieval.retrievers.graph_edges import Seed, Sentence
from query_api.retrieval.retrievers.residual_queries import ResidualHits, along, hop_of, residual_query
from schemas.ids import DocumentKey

QUESTION = Question("Where was the director of Alpha born?")


def sentence(text: str, share: float, *names: str) -> Sentence:
    return Sentence(text, f" {text.lower().rstrip('.')} ", share, names)


def seed(*sentences: Sentence) -> Seed:
    return Seed(0, 0, 1.0, None, sentences, {})


def found(scores: dict[str, float]) -> list[Candidate]:
    return [Candidate(name, score, DocumentKey("c", name)) for name, score in scores.items()]


def test_what_is_open_is_asked_about_the_new_names_of_the_two_best_sentences() -> None:
    read = seed(
        sentence("It was shot in Rome.", 0.1, "rome"),
        sentence("Alpha was directed by Jane Doe.", 0.9, "jane doe", "alpha"),
        sentence("Unrelated Name.", 0.0, "unrelated name"),
    )
    assert residual_query(QUESTION, read, "A film") == "director born jane doe rome"


def test_the_names_of_the_seed_itself_ask_nothing_new() -> None:
    read = seed(sentence("Bitter Rice, or Rice, is sold by Jane Doe.", 0.5, "bitter rice", "rice", "jane doe"))
    assert residual_query(QUESTION, read, "Bitter Rice (film)") == "director alpha born jane doe"
    assert residual_query(QUESTION, read, "Rice") == "director alpha born jane doe"
    assert residual_query(QUESTION, read, "Jane Doe").endswith("born bitter rice rice")


def test_a_seed_without_a_title_asks_about_all_its_names() -> None:
    for title in ("", "…"):
        assert residual_query(QUESTION, seed(sentence("Rome.", 0.5, "rome")), title) == "director alpha born rome"


def test_without_a_new_name_nothing_is_asked() -> None:
    assert residual_query(QUESTION, seed(), "A film") == ""
    assert residual_query(QUESTION, seed(sentence("Alpha.", 0.5, "alpha")), "A film") == ""


def test_a_hop_knows_its_best_but_for_the_seed_itself() -> None:
    scores = {f"p{at:02}": 30.0 - at for at in range(27)}
    hop = hop_of(2, "p00", "asked", found(scores))
    assert hop is not None
    assert hop == ResidualHits(2, "asked", 29.0, tuple(scores)[1:])


def test_equal_passages_are_in_the_order_of_their_names_and_a_hop_that_finds_its_seed_alone_is_none() -> None:
    assert hop_of(0, "p", "asked", found({"p": 9.0, "z": 3.0, "a": 3.0})) == ResidualHits(0, "asked", 3.0, ("a", "z"))
    assert hop_of(0, "p", "asked", found({"p": 9.0})) is None
    assert hop_of(0, "p", "asked", []) is None


def test_passages_continue_a_hop_by_their_share_of_its_best() -> None:
    bm25 = np.array([8.0, 6.0, 4.0, 0.0, 10.0])
    assert along(ResidualHits(0, "asked", 8.0, ()), bm25) == pytest.approx([1.0, 0.75, 0.5, 0.0, 1.0])
