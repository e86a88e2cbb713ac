"""Personalised PageRank as a way through the graph."""

import numpy as np
import pytest

from query_api.index.text.segments import Scope
from query_api.retrieval.retrievers.walks.bipartite import PassagesAndEntities
from query_api.retrieval.retrievers.walks.pagerank import EPSILON, RESTART, personalised_pagerank
from tests.unit.query_api.in_memory_text import Page
from tests.unit.query_api.retrieval.retrievers.walks.chain import ALPHA, CHAIN, JANE, LISBON, beginning_at, passage


def test_scores_are_what_the_walk_leaves_beyond_the_start_as_a_share_of_the_best() -> None:
    """Two entities stand between three passages; each way of a title weighs 1, each way of an entity .707."""
    half = 0.5**0.5
    order = ["alpha", "jane", "lisbon", "entity of both", "the other"]
    weights = np.array(
        [[0, 1, 0, half, 0], [1, 0, 1, half, half], [0, 1, 0, 0, half], [half, half, 0, 0, 0], [0, half, half, 0, 0]]
    )
    start = np.array([1.0, 0, 0, 0, 0])
    moves = weights / weights.sum(axis=1, keepdims=True)
    exact = RESTART * np.linalg.solve(np.eye(5) - (1 - RESTART) * moves.T, start) - RESTART * start
    found = personalised_pagerank(beginning_at(ALPHA, *CHAIN))
    best = exact[:3].max()
    for place, page in enumerate(CHAIN):
        wrong = abs(found.scores[page.passage_ids()[0]] - exact[place] / best)
        assert wrong <= 2 * EPSILON * weights.sum(axis=1).max() / best, order[place]
    assert found.scores[JANE.passage_ids()[0]] == 1.0
    assert found.scores[LISBON.passage_ids()[0]] > 0


def test_within_two_steps_a_hit_has_a_path_and_beyond_it_has_none() -> None:
    tagus = Page("tagus", "Tagus", [["The Tagus meets Spain."]], ["Tagus", "Spain"])
    found = personalised_pagerank(beginning_at(ALPHA, *CHAIN, tagus))
    assert found.reasons.keys() == {page.passage_ids()[0] for page in CHAIN}
    assert found.scores[tagus.passage_ids()[0]] > 0
    assert found.gathered is not None
    assert found.reasons[LISBON.passage_ids()[0]].origin == 1
    assert found.gathered.parents[1].reached == found.reasons[JANE.passage_ids()[0]]


def test_edges_and_scope_hold() -> None:
    nothing = personalised_pagerank(beginning_at(ALPHA, *CHAIN, edges=["link"]))
    assert nothing.scores.keys() <= set(ALPHA.passage_ids())
    scoped = personalised_pagerank(beginning_at(ALPHA, *CHAIN, scope=Scope("wiki", frozenset({LISBON.key}))))
    assert list(scoped.scores) == LISBON.passage_ids()


def test_a_walk_over_the_same_view_comes_to_the_same_to_the_last_bit() -> None:
    beginning = beginning_at(JANE, *CHAIN)
    assert personalised_pagerank(beginning).scores == personalised_pagerank(beginning).scores
    ground = PassagesAndEntities(beginning.view, ())
    assert ground.neighbours(np.array([passage(beginning.view, JANE)])).weight.sum() == pytest.approx(2 + 2 * 0.5**0.5)
