"""What a person may ask about next."""

from query_api.answers.related_concepts import related_concepts
from schemas.answers import MOST_CONCEPTS, Citation
from schemas.ids import entity_id
from tests.support.fakes.text_stores import Page
from tests.unit.query_api.entities.organisation import COLLECTION, pages, view_of


def cited(page: Page) -> Citation:
    return Citation(
        number=1, text="", title=page.title, document_id=page.id, collection=page.collection, chunk_id="", hit=1,
        passage_id=page.passage_ids()[0], section=[], start=0, end=0,
    )  # fmt: skip


def test_what_the_cited_passages_are_about_comes_with_its_neighbours_and_without_dates_and_the_question() -> None:
    [beacon, more] = [page for page in pages() if page.id in ("beacon", "more")]
    found = related_concepts(view_of(), "What does Beacon require?", [cited(beacon), cited(more)])
    assert {(each.name, each.type) for each in found} >= {
        ("Kafka", "product"),
        ("notification service", None),
        ("Team Petrel", "organisation"),
        ("Harbor", None),  # by a statement elsewhere
    }
    names = [each.name for each in found]
    assert not {"Beacon", "3 May 2024"} & set(names)
    assert names.index("Kafka") < names.index("Harbor")
    assert found[names.index("Kafka")].id == entity_id(COLLECTION, "kafka")


def test_they_are_few_and_none_comes_twice() -> None:
    names = [f"Gauge{number}" for number in range(30)]
    page = Page(
        "gauges", "Gauges", [[" ".join(names)]], names, collection=COLLECTION, types=dict.fromkeys(names, "product")
    )
    found = related_concepts(view_of((), [page]), "gauges", [cited(page), cited(page)])
    assert len({each.name for each in found}) == len(found) == MOST_CONCEPTS == 8


def test_of_a_passage_that_the_graph_does_not_have_nothing_is_known() -> None:
    assert related_concepts(view_of(), "x", [cited(Page("new", "New", [["Not in the graph."]]))]) == []
