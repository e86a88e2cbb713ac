"""Statements at random."""

from query_api.entities.entity_facts import sample_statements
from query_api.index.graph.view import GraphView
from schemas.ids import CANARY_COLLECTION
from tests.support.fakes.text_stores import Page
from tests.unit.query_api.entities.organisation import COLLECTION, view_of


def test_a_sample_is_of_different_statements_and_the_same_for_a_seed() -> None:
    view = view_of()
    drawn = sample_statements(view, COLLECTION, None, 4, seed=1)
    assert len({each.key for each in drawn}) == 4
    assert drawn == sample_statements(view, COLLECTION, None, 4, seed=1)
    assert len({tuple(each.key for each in sample_statements(view, None, None, 4, seed)) for seed in range(8)}) > 1


def test_all_of_a_predicate_are_drawn_where_there_are_few() -> None:
    drawn = sample_statements(view_of(), None, "depends_on", 100, seed=3)
    assert sorted(
        (role.surface, each.predicate) for each in drawn for role in each.roles if role.name == "subject"
    ) == [
        ("Beacon", "depends_on"), ("Beacon", "depends_on"), ("Harbor", "depends_on"),
    ]  # fmt: skip
    assert sample_statements(view_of(), "nowhere", None, 10, seed=3) == []


def test_what_checks_the_service_is_drawn_by_name_alone() -> None:
    page = Page("c", "C", [["A needs B."]], ["A", "B"], facts=[("A", "needs", "B")], collection=CANARY_COLLECTION)
    view = GraphView.from_contributions([page.contribution()], 0)
    assert sample_statements(view, None, None, 10, seed=0) == []
    assert len(sample_statements(view, CANARY_COLLECTION, None, 10, seed=0)) == 1
