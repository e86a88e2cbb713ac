"""Expansion around seeds: distances, centrality, and what is like a seed in other documents."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from query_api.index.graph.view import GraphView
from query_api.index.text.text_segments import Scope
from query_api.query.analysis import Question
from query_api.retrieval.results.hit_paths import PathBuilder
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import Activation, Reason
from query_api.retrieval.retrievers.graph_scoring import GraphResults
from query_api.retrieval.retrievers.pagerank import centrality, pagerank
from query_api.retrieval.retrievers.walks import (
    RING,
    connectivity,
    distances,
    expansion,
    similar_across,
    steps_from,
)
from schemas.curation import LinkingChoice
from schemas.graph_delta import ChunkEdge
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.results.test_path_properties import pages
from tests.unit.query_api.retrieval.retrievers.chain import ALPHA, CHAIN, JANE, LISBON, beginning_at
from tests.unit.query_api.retrieval.retrievers.small_world import seed_of, view_of


def scores(found: GraphResults, *pages: Page) -> list[float | None]:
    return [found.scores.get(page.passage_ids()[0]) for page in pages]


def test_a_way_is_as_long_as_its_edges_are_light_and_the_shortest_counts() -> None:
    first = [
        Activation(5, 0.5, Reason("mentions", 0)),
        Activation(5, 0.25, Reason("shares", 0)),
        Activation(6, 0.1, Reason("x", 1)),
    ]
    second = [Activation(6, 0.5, Reason("mentions", 2)), Activation(9, 1.0, Reason("mentions", 2))]
    found = distances([1, 2], first, [5], second)
    assert found.passages == [1, 2, 5, 6, 9]
    infinite = math.inf
    assert found.distances.tolist() == [[0, infinite], [infinite, 0], [2, infinite], [4, 10], [3, infinite]]


def test_two_steps_are_no_three() -> None:
    """A shorter way to a passage of the ring by way of another one is not gone on from."""
    first = [Activation(5, 1.0, Reason("mentions", 0)), Activation(6, 0.1, Reason("shares", 0))]
    second = [Activation(6, 1.0, Reason("mentions", 1)), Activation(9, 1.0, Reason("mentions", 2))]
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
    assert found.exact is not None
    assert found.exact.row_of.keys() == found.scores.keys(), "what was discovered is compared with the question"


def test_the_graph_alone_adds_half_of_how_well_each_fits_by_its_text() -> None:
    """Only Alpha holds the word of the question: .5 for it, nothing for the others."""
    beside, alone = expansion(beginning_at(ALPHA, *CHAIN)), expansion(beginning_at(ALPHA, *CHAIN, alone=True))
    assert scores(alone, ALPHA) == [1.5]
    assert scores(alone, JANE, LISBON) == scores(beside, JANE, LISBON)


def test_a_path_of_two_steps_is_told_step_by_step_with_evidence() -> None:
    start = beginning_at(ALPHA, *CHAIN)
    found = expansion(start)
    trail = PathBuilder(Question("Who made it?"), start.view, found, {})
    target = LISBON.passage_ids()[0]
    assert trail.evidence_passages([target]) == {ALPHA.passage_ids()[0], JANE.passage_ids()[0]}
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
    start = beginning_at(ALPHA, *CHAIN, scope=Scope("wiki", frozenset({ALPHA.key, LISBON.key})))
    assert scores(expansion(start), *CHAIN)[1] is None
    assert None not in scores(expansion(start), ALPHA, LISBON)


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


def test_it_is_computed_once_for_a_view_and_again_for_the_next() -> None:
    view = world(CHAIN)[0].graph
    assert centrality(view) is centrality(view)
    following = view.with_changes([(JANE.key, None)], 4)
    alpha, lisbon = ranks_of(following, CHAIN[0], CHAIN[2])
    assert alpha == lisbon == pytest.approx(0.5)
    assert centrality(GraphView.empty()).tolist() == []


WEIR = "a weir holds the river back"
SEED = Page("seed", "A", [[WEIR, WEIR], ["it was built of stone"]])
SAME = Page("same", "A", [["rain"], [WEIR, WEIR]])
NEAR = Page("near", "A", [[f"{WEIR} here"]])
FAR = Page("far", "A", [["sheep eat grass"]])
ELSEWHERE = Page("same", "A", [[WEIR]], collection="private")
ALL = (SEED, SAME, NEAR, FAR, ELSEWHERE)


def found(pages: Sequence[Page], **choice: float | int) -> list[tuple[str, int]]:
    """(document, ordinal of its passage) of what is reached."""
    snapshot, text, _ = world(pages)
    view = snapshot.graph
    linking = {"wiki": LinkingChoice.model_validate(choice)}
    activations = list(similar_across(view, text, linking, [seed_of(view, SEED)]))
    assert all(0 < activation.score <= 1 for activation in activations)
    places = [(view.document_of_passage(activation.passage), activation.passage) for activation in activations]
    return [(view.document_key(at).document_id, passage - view.passages_of_document(at)[0]) for at, passage in places]


@pytest.mark.parametrize(
    ("choice", "reached"),
    [
        ({}, []),
        ({"similar_above": 0.1}, []),
        ({"max_across": 5}, [("same", 1), ("near", 0)]),
        ({"max_across": 1}, [("same", 1)]),
        ({"max_across": 5, "similar_above": 0.99}, [("same", 1)]),
    ],
)
def test_the_nearest_of_other_documents_are_gone_on_to_where_the_collection_chose_so(
    choice: dict[str, float | int], reached: list[tuple[str, int]]
) -> None:
    assert found(ALL, **choice) == reached


def test_what_is_gone_is_not_gone_on_to() -> None:
    assert found((SEED, NEAR), max_across=5) == [("near", 0)]


def test_it_weighs_what_was_chosen_times_the_cosine() -> None:
    snapshot, text, _ = world((SEED, SAME))
    linking = {"wiki": LinkingChoice(max_across=1, similar_across=0.5)}
    [activation] = similar_across(snapshot.graph, text, linking, [seed_of(snapshot.graph, SEED)])
    assert activation.score == pytest.approx(0.5)
    assert graph_edges.strongest([activation])[activation.passage].reason.term == "similar_across"


LONG = Page(
    "long",
    "Long",
    [["a", "b"], ["c"], ["d"]],
    edges=[
        ChunkEdge("next_chunk", 0, 1, 0.95),
        ChunkEdge("next_chunk", 1, 2, 0.9),
        ChunkEdge("next_chunk", 2, 3, 0.85),
        ChunkEdge("similar_to", 1, 2, 0.75),
        ChunkEdge("related_to", 0, 3, 0.6),
        ChunkEdge("related_to", 3, 0, 0.6),
        ChunkEdge("related_to", 1, 3, 0.65),
        ChunkEdge("related_to", 3, 1, 0.65),
    ],
)


def steps(view: GraphView, passage: int, *edges: str) -> list[Activation]:
    seed = graph_edges.Seed(passage, view.document_of_passage(passage), 0.5, None, (), {})
    return steps_from(view, [seed], graph_edges.entry_passages(view, {}), edges, between_chunks=True)


@pytest.mark.parametrize(
    ("passage", "kind", "reached"),
    [
        (0, "next_chunk", {1: 0.9}),
        (1, "next_chunk", {0: 0.9, 2: 0.85}),
        (1, "similar_to", {0: 0.75}),
        (1, "related_to", {}),
        (0, "related_to", {2: 0.65}),
        (2, "related_to", {0: 0.65}),
    ],
)
def test_the_strongest_edge_between_their_chunks_joins_two_passages(
    passage: int, kind: str, reached: dict[int, float]
) -> None:
    found = graph_edges.strongest(steps(view_of(LONG), passage, kind))
    assert {other: activation.score for other, activation in found.items()} == pytest.approx(reached, abs=1e-3)
    assert {activation.reason.term for activation in found.values()} <= {kind}


@pytest.mark.parametrize(("predicate", "weight"), [("is_a", 1.0), ("part_of", 0.95), ("replaces", 0.9), ("likes", 0.3)])
def test_a_statement_weighs_what_its_predicate_does(predicate: str, weight: float) -> None:
    view = view_of(Page("a", "Ada", [["x"]], facts=[("Ada", predicate, "Bo")]), Page("b", "Bo", [["y"]]))
    start = seed_of(view, Page("a", "Ada", [["x"]])).passage
    assert [activation.score for activation in steps(view, start, predicate)] == pytest.approx([weight])


@settings(deadline=None, max_examples=50)
@given(made=pages())
def test_every_step_weighs_more_than_nothing_and_no_more_than_one(made: list[Page]) -> None:
    view = view_of(*made)
    passages = [passage for document in view.live_documents() for passage in view.passages_of_document(int(document))]
    assert all(0 < activation.score <= 1 for passage in passages for activation in steps(view, passage))
