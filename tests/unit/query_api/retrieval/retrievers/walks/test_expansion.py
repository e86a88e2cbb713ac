"""Expanding around a seed, against numbers worked by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from query_api.index.text.segments import Scope
from query_api.query.question import Question
from query_api.retrieval.results.paths import Trail
from query_api.retrieval.retrievers.graph_edges import Reach, Reason
from query_api.retrieval.retrievers.graph_results import Findings
from query_api.retrieval.retrievers.walks.expansion import connectivity, distances, expansion
from query_api.retrieval.retrievers.walks.start import RING
from tests.unit.query_api.in_memory_text import Page
from tests.unit.query_api.retrieval.retrievers.walks.chain import ALPHA, CHAIN, JANE, LISBON, beginning_at


def scores(found: Findings, *pages: Page) -> list[float | None]:
    return [found.scores.get(page.passage_ids()[0]) for page in pages]


def test_a_way_is_as_long_as_its_edges_are_light_and_the_shortest_counts() -> None:
    first = [Reach(5, 0.5, Reason("mentions", 0)), Reach(5, 0.25, Reason("shares", 0)), Reach(6, 0.1, Reason("x", 1))]
    second = [Reach(6, 0.5, Reason("mentions", 2)), Reach(9, 1.0, Reason("mentions", 2))]
    found = distances([1, 2], first, [5], second)
    assert found.passages == [1, 2, 5, 6, 9]
    infinite = math.inf
    assert found.distances.tolist() == [[0, infinite], [infinite, 0], [2, infinite], [4, 10], [3, infinite]]


def test_two_steps_are_no_three() -> None:
    """A shorter way to a passage of the ring by way of another one is not gone on from."""
    first = [Reach(5, 1.0, Reason("mentions", 0)), Reach(6, 0.1, Reason("shares", 0))]
    second = [Reach(6, 1.0, Reason("mentions", 1)), Reach(9, 1.0, Reason("mentions", 2))]
    found = distances([1], first, [5, 6], second)
    assert dict(zip(found.passages, found.distances[:, 0].tolist(), strict=True)) == {1: 0, 5: 1, 6: 2, 9: 11}


def test_what_is_near_counts_by_the_mean_over_the_seeds_that_reach_it() -> None:
    """Weights 1 and .5: (2 + .5 · 5) / 1.5 = 3."""
    lengths = np.array([[2.0, 5.0], [2.0, np.inf], [np.inf, np.inf]])
    near = connectivity(lengths, np.array([1.0, 0.5])).tolist()
    assert near == pytest.approx([math.exp(-3), math.exp(-2), 0.0])


def test_connectivity_centrality_and_relationship_make_the_score() -> None:
    """Alpha is the seed. An edge of weight 1 leads to Jane, who holds no word of the question: so .3 to Lisbon, 13/3
    from Alpha. PageRanks are as 1 : 1.85 : 2.5725. Only Jane has a direct edge."""
    found = expansion(beginning_at(ALPHA, *CHAIN))
    alpha = 0.5 + 0.3 / 2.5725
    jane = 0.5 * math.exp(-1) + 0.3 * 1.85 / 2.5725 + 0.2
    lisbon = 0.5 * math.exp(-13 / 3) + 0.3
    assert scores(found, *CHAIN) == [
        1.0,
        pytest.approx(jane / alpha, abs=1e-4),
        pytest.approx(lisbon / alpha, abs=1e-4),
    ]
    assert found.gate == 1.0
    assert found.compared is not None
    assert found.compared.row_of.keys() == found.scores.keys(), "what was discovered is compared with the question"


def test_the_graph_alone_adds_half_of_how_well_each_fits_by_its_text() -> None:
    """Only Alpha holds the word of the question: .5 for it, nothing for the others."""
    beside, alone = expansion(beginning_at(ALPHA, *CHAIN)), expansion(beginning_at(ALPHA, *CHAIN, alone=True))
    assert scores(alone, ALPHA) == [1.5]
    assert scores(alone, JANE, LISBON) == scores(beside, JANE, LISBON)


def test_a_path_of_two_steps_is_told_step_by_step_with_evidence() -> None:
    beginning = beginning_at(ALPHA, *CHAIN)
    found = expansion(beginning)
    trail = Trail(Question("Who made it?"), beginning.view, found)
    target = LISBON.passage_ids()[0]
    assert trail.passages_of_evidence([target]) == {ALPHA.passage_ids()[0], JANE.passage_ids()[0]}
    texts = {chunk: text for page in CHAIN for chunk, _, text in page.chunks()}
    path = trail.path(target, texts.get, LISBON.chunks()[0][0])
    assert [(step.source, step.edge, step.target, step.evidence) for step in path] == [
        ("question", "matches", "Alpha", None),
        ("Alpha", "mentions", "Jane Doe", "Alpha was made by Jane Doe."),
        ("Jane Doe", "mentions", "Lisbon", "Jane Doe came from Lisbon."),
    ]


def test_of_a_way_of_one_step_and_one_of_two_the_shorter_is_told() -> None:
    both = Page("both", "Both", [["Jane Doe made it, of Lisbon."]], ["Jane Doe", "Lisbon"])
    found = expansion(beginning_at(both, both, JANE, LISBON))
    assert [found.reasons[page.passage_ids()[0]].origin for page in (JANE, LISBON)] == [0, 0]


def test_ways_back_are_gone_too() -> None:
    assert None not in scores(expansion(beginning_at(LISBON, *CHAIN)), *CHAIN)


def test_only_the_wanted_edges_are_followed() -> None:
    linked = Page("linked", "Linked", [["z"]])
    start = Page("start", "Start", [["Start made Jane Doe."]], ["Jane Doe"], links=["wiki/linked"])
    pages = (start, JANE, LISBON, linked)
    assert scores(expansion(beginning_at(start, *pages, edges=["link"])), *pages)[1:3] == [None, None]
    assert scores(expansion(beginning_at(start, *pages, edges=["title_mention"])), *pages)[3] is None
    assert list(expansion(beginning_at(start, *pages, edges=["named"])).scores) == start.passage_ids()


def test_an_edge_out_of_the_scope_may_be_gone_over_and_is_not_shown() -> None:
    beginning = beginning_at(ALPHA, *CHAIN, scope=Scope("wiki", frozenset({ALPHA.key, LISBON.key})))
    assert scores(expansion(beginning), *CHAIN)[1] is None
    assert None not in scores(expansion(beginning), ALPHA, LISBON)


def test_where_very_many_are_near_only_the_nearest_are_gone_on_from() -> None:
    """Each of forty leads on to a document of its own; as many of these are found as there are places in the ring."""
    near = [Page(f"n{at:02}", f"Near{at:02}", [[f"It is beside Far{at:02}."]], [f"Far{at:02}"]) for at in range(40)]
    far = [Page(f"f{at:02}", f"Far{at:02}", [["Far."]]) for at in range(40)]
    names = [page.title for page in near]
    seed = Page("seed", "Seed", [[" ".join(names)]], names)
    found = expansion(beginning_at(seed, seed, *near, *far))
    assert sum(score is not None for score in scores(found, *near)) == 40
    assert sum(score is not None for score in scores(found, *far)) == RING


def test_one_hop_goes_no_further_than_what_the_seeds_lead_to() -> None:
    found = expansion(replace(beginning_at(ALPHA, *CHAIN), hops=1))
    assert scores(found, LISBON) == [None]
    assert None not in scores(found, ALPHA, JANE)
