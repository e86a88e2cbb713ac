"""Names and statements that no orderly document holds: each entity is found, and nothing goes round for ever."""

import pytest

from query_api.entities.description import EntityDescriber
from query_api.entities.entity_paths import PathFinder
from query_api.index.graph.view import GraphView
from schemas.ids import DocumentKey, entity_id, normalise_name
from tests.support.fakes.text_stores import Page
from tests.unit.query_api.entities.organisation import COLLECTION, catalogue_of, end_of, read_chunks

LONG = "Wort" * 2_500
ODD_NAMES = ["X", LONG, "Tokyo Москва 北京", "Apple", "\N{CYRILLIC CAPITAL LETTER A}pple"]
CIRCLE = [("Alpha", "Beta"), ("Beta", "Gamma"), ("Gamma", "Alpha"), ("Alpha", "Alpha")]


def page(name: str, names: list[str], facts: list[tuple[str, str, str]]) -> Page:
    text = "; ".join(names)
    return Page(name, name, [[text]], names, facts, collection=COLLECTION, types=dict.fromkeys(names, "concept"))


def describer_of(view: GraphView) -> EntityDescriber:
    return EntityDescriber(view, catalogue_of(view), read_chunks, lambda keys: {})


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_entity_of_an_odd_name_is_found_and_no_other(name: str) -> None:
    view = GraphView.from_contributions([page("odd", ODD_NAMES, []).contribution()], 0)
    catalogue = catalogue_of(view)
    assert len(catalogue) == len(ODD_NAMES)
    found = catalogue.find(name, COLLECTION)
    assert found is not None
    assert found.id == entity_id(COLLECTION, normalise_name(name))
    assert describer_of(view).describe(found, 20).documents[0].document_id == "odd"


@pytest.mark.parametrize("name", ["", "?!", "\N{ZERO WIDTH SPACE}", "..."])
def test_a_name_of_punctuation_finds_nothing(name: str) -> None:
    view = GraphView.from_contributions([page("odd", ODD_NAMES, []).contribution()], 0)
    assert catalogue_of(view).find(name, COLLECTION) is None


@pytest.mark.parametrize("predicate", ["is_a", "prerequisite", "depends_on"])
def test_statements_in_a_circle_are_shown_and_walked_once(predicate: str) -> None:
    facts = [(subject, predicate, target) for subject, target in CIRCLE]
    view = GraphView.from_contributions([page("circle", ["Alpha", "Beta", "Gamma"], facts).contribution()], 0)
    catalogue = catalogue_of(view)
    alpha = catalogue.find("Alpha", COLLECTION)
    assert alpha is not None
    start, end = (end_of(catalogue, name) for name in ("Alpha", "Gamma"))
    found = PathFinder(view, catalogue, describer_of(view)).paths(start, end, 4, 10).paths
    assert found
    for path in found:
        labels = [path.steps[0].source.label, *(step.target.label for step in path.steps)]
        assert len(labels) == len(set(labels))
    stated = {(each.subject.label, each.object.label) for each in describer_of(view).describe(alpha, 20).statements}
    assert {("Alpha", "Beta"), ("Gamma", "Alpha")} <= stated
    emptied = view.with_changes([(DocumentKey(COLLECTION, "circle"), None)], 1)
    assert len(catalogue_of(emptied)) == 0
