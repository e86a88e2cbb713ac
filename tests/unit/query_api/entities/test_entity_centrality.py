"""The most central entities: of facts, and of edges that people made."""

from dataclasses import replace

import msgspec

from query_api.entities.entity_centrality import entity_centrality
from schemas.graph_delta import DENIAL
from schemas.ids import DocumentKey, entity_id
from tests.support.fakes.text_stores import Page, made_edge
from tests.unit.query_api.entities.organisation import COLLECTION, catalogue_of, view_of


def most_central(*made: Page, deleted: str = "") -> list[str]:
    view = view_of(made=made)
    if deleted:
        view = view.with_changes([(DocumentKey(COLLECTION, deleted), None)], 1)
    catalogue = catalogue_of(view)
    ranks = entity_centrality(catalogue)
    return [catalogue[row].label for row in sorted(range(len(catalogue)), key=lambda row: -ranks[row])]


def test_what_most_facts_join_is_the_most_central() -> None:
    assert most_central()[0] == "Kafka"


def test_deleted_document_no_longer_counts() -> None:
    assert "Lisbon" not in most_central(deleted="harbor")
    assert most_central(deleted="harbor")[0] == "Beacon"


def test_edges_of_people_count() -> None:
    ids = {
        name: entity_id(COLLECTION, name.lower()) for name in ("Lisbon", "Harbor", "Kafka", "Maria Okafor", "Beacon")
    }
    edges = [made_edge(ids["Lisbon"], "hosts", ids[name], collection=COLLECTION) for name in ids if name != "Lisbon"]
    assert most_central(*edges)[0] == "Lisbon"


def test_denied_facts_do_not_count() -> None:
    made = Page("denial", "Denial", [["Lisbon"]], ["Lisbon"], collection=COLLECTION, types={"Lisbon": "place"})
    others = ("Harbor", "Beacon", "Team Petrel", "Maria Okafor")
    facts = [("Lisbon", "owns", other) for other in others]
    contribution = replace(made, facts=facts).contribution()
    denials = [msgspec.structs.replace(each, extractor=DENIAL) for each in contribution.statements]
    key = DocumentKey(COLLECTION, "denial")
    ranks = []
    for statements in (denials, []):
        changed = msgspec.structs.replace(contribution, statements=statements)
        view = view_of().with_changes([(key, changed)], 1)
        catalogue = catalogue_of(view)
        ranks.append(entity_centrality(catalogue).tolist())
    assert ranks[0] == ranks[1]


def test_centrality_of_a_catalogue_is_computed_once() -> None:
    first, other = catalogue_of(view_of()), catalogue_of(view_of(["harbor"]))
    assert entity_centrality(first) is entity_centrality(first)
    assert (len(entity_centrality(first)), len(entity_centrality(other))) == (len(first), len(other))
