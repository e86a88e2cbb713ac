"""What is told of an entity, each thing with the sentence that says it."""

from query_api.entities.catalogue import Entity
from query_api.index.graph.view import GraphView
from schemas.entities import EntityDetail
from tests.unit.query_api.entities.organisation import COLLECTION, catalogue_of, describer_of, pages, view_of


def described(name: str, view: GraphView | None = None, limit: int = 20) -> EntityDetail:
    view = view or view_of()
    return describer_of(view).describe(entity_of(view, name), limit)


def entity_of(view: GraphView, name: str) -> Entity:
    found = catalogue_of(view).find(name, COLLECTION)
    assert found is not None
    return found


def test_a_definition_is_the_sentence_that_says_what_it_is() -> None:
    definition = described("Beacon").definition
    assert definition is not None
    assert definition.text == "Beacon is a notification service."
    assert definition.source.document_id == "beacon"
    assert described("Kafka").definition is None


def test_statements_grow_stronger_with_their_evidence_and_weaker_again() -> None:
    def requires(detail: EntityDetail) -> tuple[float, int, list[str | None]]:
        found = next(each for each in detail.statements if each.predicate == "depends_on")
        return found.strength, found.stated, [each.sentence for each in found.evidence]

    sentence = "Beacon requires Kafka."
    assert requires(described("Beacon")) == (1.0, 2, [sentence, sentence])
    assert requires(described("Beacon", view_of(["beacon", "teams"]))) == (0.9, 1, [sentence])


def test_the_ends_of_statements_are_entities_or_names() -> None:
    statements = {each.predicate: each for each in described("Beacon").statements}
    assert (statements["owns"].subject.label, statements["owns"].subject.type) == ("Team Petrel", "organisation")
    assert statements["is_a"].object.label == "notification service"
    assert statements["is_a"].object.id is None


def test_documents_aliases_and_neighbours_are_counted() -> None:
    beacon = described("Beacon")
    assert [(each.document_id, each.mentions, each.about) for each in beacon.documents] == [
        ("beacon", 2, True),
        ("more", 1, False),
        ("teams", 1, False),
    ]
    assert [(each.surface, each.mentions) for each in beacon.aliases] == [("Beacon", 4)]
    assert {(each.entity.label, each.strength, each.shared_chunks) for each in beacon.neighbours} == {
        ("Kafka", 1.0, 2),
        ("Team Petrel", 0.3, 2),
        ("Maria Okafor", 0.0, 1),
    }
    assert not beacon.truncated
    few = described("Beacon", limit=1)
    assert (len(few.documents), len(few.neighbours), len(few.statements), few.truncated) == (1, 1, 1, True)
    assert few.document_count == 3


def test_a_chunk_shows_what_it_mentions_and_states() -> None:
    view = view_of()
    (chunk,) = view.chunks([next(page for page in pages() if page.id == "teams").chunks()[0][0]]).tolist()
    entities, statements = describer_of(view).of_chunk(chunk)
    assert {each.label for each in entities} == {"Team Petrel", "Beacon", "Maria Okafor"}
    assert [(each.subject.label, each.predicate, each.object.label, each.stated) for each in statements] == [
        ("Maria Okafor", "leads", "Team Petrel", 1),
        ("Team Petrel", "owns", "Beacon", 1),
    ]
