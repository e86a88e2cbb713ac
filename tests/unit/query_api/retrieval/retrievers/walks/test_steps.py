"""Single steps: what the edges between chunks and the predicates of statements weigh."""

import pytest
from hypothesis import given, settings

from query_api.index.graph.view import GraphView
from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.graph_edges import Activation
from query_api.retrieval.retrievers.walks.steps import steps_from
from schemas.graph_delta import ChunkEdge
from tests.unit.query_api.in_memory_text import Page
from tests.unit.query_api.retrieval.results.test_path_properties import pages
from tests.unit.query_api.retrieval.retrievers.small_world import seed_of, view_of

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
    return steps_from(view, [seed], graph_edges.entrances(view, {}), edges, between_chunks=True)


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


@pytest.mark.parametrize(("predicate", "weight"), [("is_a", 1.0), ("part_of", 0.95), ("replaces", 0.3)])
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
