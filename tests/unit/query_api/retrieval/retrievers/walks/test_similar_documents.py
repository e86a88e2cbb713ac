"""Passages of other documents that are like a parent's, as far as its collection chose to go on to them."""

from collections.abc import Sequence

import pytest

from query_api.retrieval.retrievers import graph_edges
from query_api.retrieval.retrievers.walks.similar_documents import similar_across
from schemas.curation import LinkingChoice
from tests.unit.query_api.in_memory_text import Page, world
from tests.unit.query_api.retrieval.retrievers.small_world import parent_of

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
    reaches = list(similar_across(view, text, linking, [parent_of(view, SEED)]))
    assert all(0 < reach.score <= 1 for reach in reaches)
    places = [(view.document_of_passage(reach.passage), reach.passage) for reach in reaches]
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
    [reach] = similar_across(snapshot.graph, text, linking, [parent_of(snapshot.graph, SEED)])
    assert reach.score == pytest.approx(0.5)
    assert graph_edges.strongest([reach])[reach.passage].reason.term == "similar_across"
