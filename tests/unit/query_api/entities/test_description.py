"""What is told of an entity, each thing with the sentence that says it."""

from query_api.entities.catalogue import Entity
from query_api.entities.consolidation import MOST_OF_A_DOCUMENT
from query_api.entities.entity_facts import sample_statements
from query_api.index.graph.explorer import NodeRef
from query_api.index.graph.view import GraphView
from schemas.api import GraphEdge
from schemas.entities import EntityDetail
from tests.support.fakes.text_stores import Page
from tests.unit.query_api.entities.organisation import (
    COLLECTION,
    DAY_MS,
    NEW_YEAR_MS,
    TYPES,
    catalogue_of,
    describer_of,
    pages,
    view_of,
)


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


def test_an_example_is_a_sentence_that_mentions_it() -> None:
    example = described("Kafka").example
    assert example is not None
    assert example.sentence is not None
    assert "Kafka" in example.sentence
    assert example.document_id in ("beacon", "harbor", "more")


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
        ("Team Petrel", 0.8, 2),
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


def test_evidence_says_when_and_by_which_record_it_was_stated() -> None:
    owns = next(each for each in described("Beacon").statements if each.predicate == "owns")
    (evidence,) = owns.evidence
    assert (evidence.version, evidence.position, evidence.stated_at) == (1, "0:0", "2025-01-01T00:00:00+00:00")


def test_since_leaves_what_was_stated_from_then_on() -> None:
    view = view_of()
    beacon = describer_of(view).describe(entity_of(view, "Beacon"), 20, since_ms=NEW_YEAR_MS + 3 * DAY_MS)
    assert [(each.predicate, each.stated) for each in beacon.statements] == [("depends_on", 2)]
    assert [each.document_id for each in beacon.documents] == ["more"]
    none = describer_of(view).describe(entity_of(view, "Beacon"), 20, since_ms=NEW_YEAR_MS + 9 * DAY_MS)
    assert (none.statements, none.documents) == ([], [])
    assert none.label == "Beacon"


def in_chunks(document: str, *texts: str) -> Page:
    names = [name for name in TYPES if any(name in text for text in texts)]
    return Page(document, document.title(), [[text] for text in texts], names, collection=COLLECTION, types=TYPES)


def test_consolidation_joins_what_documents_treat_in_different_chunks_only() -> None:
    both = [in_chunks(f"note {at}", "Beacon is new.", "Lisbon is warm.", "It was 3 May 2024.") for at in range(2)]
    near = in_chunks("near", "Beacon talks to Harbor.", "Harbor is old.", "Kafka is older.")
    view = GraphView.from_contributions([page.contribution() for page in (*both, near)], 0)
    found = described("Beacon", view).consolidated
    assert [(each.entity.label, each.documents, each.document_ids) for each in found] == [
        ("Lisbon", 2, ["note 0", "note 1"]),
        ("Kafka", 1, ["near"]),
    ]
    without = GraphView.from_contributions([both[0].contribution()], 0)
    assert [(each.entity.label, each.documents) for each in described("Beacon", without).consolidated] == [
        ("Lisbon", 1)
    ]


def test_consolidation_takes_what_a_document_mentions_most() -> None:
    names = {f"Port {at}": "product" for at in range(MOST_OF_A_DOCUMENT + 20)}
    texts = ["Beacon is new.", *(" ".join([name] * 2) for name in names), "Port 0"]
    page = Page(
        "long", "Long", [[text] for text in texts], ["Beacon", *names], collection=COLLECTION, types=TYPES | names
    )
    view = GraphView.from_contributions([page.contribution()], 0)
    assert len(described("Beacon", view, limit=500).consolidated) == MOST_OF_A_DOCUMENT


def test_statements_drawn_are_shown_with_their_sentences() -> None:
    view = view_of()
    (shown,) = describer_of(view).of_statements(sample_statements(view, COLLECTION, "owns", 10, seed=0))
    assert (shown.subject.label, shown.object.label, shown.stated) == ("Team Petrel", "Beacon", 1)
    assert [each.sentence for each in shown.evidence] == ["Team Petrel owns Beacon."]


RIVER_PAGES = [
    Page(
        "tidal", "Tidal turbine", [["A tidal turbine is a turbine. A tidal turbine requires a foundation."]],
        ["tidal turbine", "turbine", "foundation"], collection=COLLECTION,
        facts=[("tidal turbine", "is_a", "turbine"), ("tidal turbine", "requires", "foundation")],
        types=dict.fromkeys(("tidal turbine", "turbine", "foundation"), "concept"),
    ),
    Page(
        "surveys", "Surveys", [["A survey is a prerequisite of a tidal turbine."]],
        ["tidal turbine", "survey"], collection=COLLECTION, facts=[("survey", "prerequisite_of", "tidal turbine")],
        types=dict.fromkeys(("tidal turbine", "survey"), "concept"),
    ),
]  # fmt: skip


def test_entity_has_prerequisites_parents_and_subtopics() -> None:
    view = view_of((), RIVER_PAGES)
    turbine, kind = described("tidal turbine", view), described("turbine", view)
    assert {each.label for each in turbine.prerequisites} == {"foundation", "survey"}
    assert [each.label for each in turbine.parents] == ["turbine"]
    assert ([each.label for each in kind.subtopics], kind.parents) == (["tidal turbine"], [])
    assert turbine.domain == COLLECTION
    assert [(each.document_id, each.about, each.relevance) for each in turbine.documents] == [
        ("tidal", True, 1.0),
        ("surveys", False, 0.0),
    ]


def test_edge_of_an_entity_with_two_names_has_the_sentence_of_either() -> None:
    view = view_of()
    catalogue = catalogue_of(view)
    maria, team = (catalogue.find(name, COLLECTION) for name in ("Maria Okafor", "Team Petrel"))
    assert maria is not None
    assert team is not None
    assert len(team.members) == 2
    for at in team.members:
        leads = GraphEdge.model_validate({"from": maria.id, "to": team.id, "kind": "states", "label": "leads"})
        ends = NodeRef("entity", at), NodeRef("entity", maria.members[0])
        evidence = describer_of(view).evidence_of_edge(*ends, leads)
        assert evidence is not None
        assert evidence.sentence == "Maria Okafor leads Team Petrel."
