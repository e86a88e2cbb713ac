"""Things of one name, distinguished by the brackets of titles: in the catalogue, whatever else comes and goes."""

from itertools import permutations

import numpy as np

from indexer.chunking.splitter import ChunkingParameters
from indexer.document_pipeline import prepare
from indexer.extraction.entity_mentions import EntityMention
from indexer.linking import contribution
from query_api.entities.catalogue import EntityCatalogue, EntityCatalogues
from query_api.entities.entity_facts import FactFinder
from query_api.index.curation_follower import Curation
from query_api.index.graph.view import GraphView
from schemas.events import DocumentUpsert
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey

PLANET = ("Mercury (planet)", "Mercury is a small planet. Nobody lives on Mercury.")
ELEMENT = ("Mercury (element)", "Mercury is a chemical element.")
OTHER = ("Thermometers", "Old ones hold Mercury.")


def made(document: tuple[str, str]) -> Contribution:
    title, text = document
    upsert = DocumentUpsert(
        key=DocumentKey("notes", title), content=text.encode(), content_type="text/plain", title=title
    )
    prepared = prepare(upsert, ChunkingParameters())
    mention = EntityMention(0, "mercury", "Mercury", text.count("Mercury"), (0,), "thing", 0.9)
    return contribution(prepared, np.zeros((1, 1), dtype=np.float32), entities=[mention])


def listed(catalogue: EntityCatalogue) -> set[tuple[str, int]]:
    entities = [catalogue[row] for row in range(len(catalogue))]
    return {(each.label, each.mentions) for each in entities if "Mercury" in each.label}


def catalogue_of(view: GraphView) -> EntityCatalogue:
    return EntityCatalogues().of(view, Curation())


def test_homonyms_are_entities_with_their_own_statements() -> None:
    view = GraphView.from_contributions(map(made, (PLANET, ELEMENT, OTHER)), 0)
    catalogue = catalogue_of(view)
    assert listed(catalogue) == {("Mercury (planet)", 2), ("Mercury (element)", 1), ("Mercury", 1)}
    kinds = {}
    for name in ("Mercury (planet)", "Mercury (element)", "Mercury"):
        found = catalogue.find(name, "notes")
        assert found is not None
        facts = FactFinder(view, catalogue).of_entities(np.array(found.members, dtype=np.uint64))
        kinds[found.label] = [fact.object.surface for fact in facts if fact.predicate == "is_a"]
    assert kinds == {"Mercury (planet)": ["small planet"], "Mercury (element)": ["chemical element"], "Mercury": []}
    assert [each.same for each in catalogue.named("notes") if "Mercury" in each.name] == [frozenset()] * 3


def test_bracket_of_a_single_thing_of_a_name_says_nothing() -> None:
    catalogue = catalogue_of(GraphView.from_contributions(map(made, (PLANET, OTHER)), 0))
    assert listed(catalogue) == {("Mercury", 3)}
    assert catalogue.find("Mercury (planet)", "notes") == catalogue.find("Mercury", "notes")


def test_order_and_deleted_documents_leave_no_trace_in_homonyms() -> None:
    wanted = {count: listed(catalogue_of(GraphView.from_contributions(map(made, of), 0))) for count, of in CASES}
    for order in permutations((PLANET, ELEMENT, OTHER)):
        view = GraphView.empty()
        for position, document in enumerate(order):
            view = view.with_changes([(DocumentKey("notes", document[0]), made(document))], position)
        assert listed(catalogue_of(view)) == wanted[3]
        view = view.with_changes([(DocumentKey("notes", ELEMENT[0]), None)], len(order))
        assert listed(catalogue_of(view)) == wanted[2]


CASES = [(3, (PLANET, ELEMENT, OTHER)), (2, (PLANET, OTHER))]
