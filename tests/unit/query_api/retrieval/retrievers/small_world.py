"""A world of three documents that lead to each other, and seeds made of them by hand."""

from query_api.index.graph.view import GraphView
from query_api.retrieval.retrievers.graph_edges import MentionedEntity, Seed
from tests.support.fakes.text_stores import Page, world

ALPHA = Page("alpha", "Alpha", [["Alpha was made by Jane Doe in Lisbon."]], ["Alpha", "Jane Doe", "Lisbon"])
JANE = Page("jane", "Jane Doe", [["Jane Doe likes Lisbon.", "More."], ["Her later life."]], ["Jane Doe", "Lisbon"])
HARBOUR = Page("harbour", "A harbour", [["It lies in Lisbon."]], ["Lisbon"])


def view_of(*pages: Page) -> GraphView:
    return world(pages)[0].graph


def seed_of(view: GraphView, page: Page, weight: float = 1.0, value: float = 1.0) -> Seed:
    document = view.document(page.key)
    assert document is not None
    passage = view.passages_of_document(document)[0]
    held = {}
    for name in page.names:
        entity = view.entity(page.collection, name.lower())
        if entity is not None and name in page.passages[0][0]:
            held[entity] = MentionedEntity(name.lower(), view.chunks_of_passage(passage)[0], value)
    return Seed(passage, document, weight, None, (), held)
