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
    [harbor, more] = [page for page in pages() if page.id in ("harbor", "more")]
    kafka = Page("kafka", "Kafka", [["Kafka keeps records."]], ["Kafka"], collection=COLLECTION)
    found = related_concepts(view_of(made=[kafka]), "What does Harbor depend on?", [cited(harbor)])
    assert {each.name: each.type for each in found} == {
        "Kafka": "product",
        "Okafor, Maria": "person",
        "Lisbon": "place",
        "Beacon": None,  # a document that Kafka leads to
    }
    assert (found[0].name, found[0].id) == ("Kafka", entity_id(COLLECTION, "kafka"))
    named = [each.name for each in related_concepts(view_of(), "Who owns Beacon?", [cited(more)])]
    assert not {"Beacon", "3 May 2024", "notification service"} & set(named)


def test_they_are_few_and_none_comes_twice() -> None:
    names = [f"Gauge{number}" for number in range(30)]
    page = Page(
        "gauges", "Gauges", [[" ".join(names)]], names, collection=COLLECTION, types=dict.fromkeys(names, "product")
    )
    found = related_concepts(view_of((), [page]), "gauges", [cited(page), cited(page)])
    assert len({each.name for each in found}) == len(found) == MOST_CONCEPTS == 8


def test_of_a_passage_that_the_graph_does_not_have_nothing_is_known() -> None:
    assert related_concepts(view_of(), "x", [cited(Page("new", "New", [["Not in the graph."]]))]) == []
