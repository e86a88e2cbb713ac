"""PageRank against numbers worked by hand."""

import numpy as np
import pytest

from query_api.index.graph.view import GraphView
from query_api.retrieval.retrievers.walks.centrality import centrality, pagerank
from tests.unit.query_api.in_memory_text import Page, world
from tests.unit.query_api.retrieval.retrievers.walks.chain import CHAIN, JANE


def ranks_of(view: GraphView, *pages: Page) -> list[float]:
    ranks = centrality(view)
    return [float(ranks[view.document(page.key) or 0]) for page in pages]


def test_of_two_the_one_that_is_pointed_at_has_more() -> None:
    """a = (1 - .85 a) / 2, so a = .5 / 1.425."""
    ranks = pagerank(np.array([0]), np.array([1]), np.array([1.0]), 2)
    assert ranks.tolist() == pytest.approx([0.5 / 1.425, 0.925 / 1.425], abs=1e-6)


def test_a_heavier_edge_brings_more() -> None:
    """One third and two thirds of .85 a on top of what each gets anyway, a."""
    ranks = pagerank(np.array([0, 0]), np.array([1, 2]), np.array([1.0, 2.0]), 3)
    a, b, c = ranks.tolist()
    assert (b / a, c / a) == (pytest.approx(1 + 0.85 / 3, abs=1e-5), pytest.approx(1 + 1.7 / 3, abs=1e-5))


def test_without_edges_all_are_equal() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert pagerank(none, none, np.zeros(0), 4).tolist() == [0.25] * 4


def test_a_document_that_others_name_is_central_and_its_own_name_counts_nothing() -> None:
    """In a row: 1, then 1 + .85, then 1 + .85 · 1.85 shares of the same."""
    alpha, jane, lisbon = ranks_of(world(CHAIN)[0].graph, *CHAIN)
    assert (jane / alpha, lisbon / alpha) == (pytest.approx(1.85, abs=1e-4), pytest.approx(2.5725, abs=1e-4))
    assert alpha + jane + lisbon == pytest.approx(1.0)


def test_a_link_counts_as_a_name_does() -> None:
    one, two = Page("one", "One", [["x"]], links=["wiki/two"]), Page("two", "Two", [["y"]])
    assert ranks_of(world([one, two])[0].graph, one, two) == pytest.approx([0.5 / 1.425, 0.925 / 1.425], abs=1e-6)


def test_it_is_computed_once_for_a_view_and_anew_for_the_next() -> None:
    view = world(CHAIN)[0].graph
    assert centrality(view) is centrality(view)
    following = view.with_changes([(JANE.key, None)], 4)
    alpha, lisbon = ranks_of(following, CHAIN[0], CHAIN[2])
    assert alpha == lisbon == pytest.approx(0.5)
    assert centrality(GraphView.empty()).tolist() == []
