"""What an answer is about: entities of the question and of its hits, and the facts among them."""

from collections.abc import Sequence

from query_api.entities.answer_subgraph import MOST_ENTITIES, answer_subgraph
from query_api.entities.catalogue import EntityCatalogues
from query_api.index.search_snapshot import Snapshot
from schemas.entities import AnswerSubgraph
from schemas.hits import NamedInQuestion, Understanding
from schemas.ids import entity_id
from tests.support.fakes.engine import Tables, make_hit
from tests.support.fakes.text_stores import Page, WordCounts, made_edge, made_node
from tests.unit.query_api.entities.organisation import COLLECTION, pages, view_of

BEACON, KAFKA = (entity_id(COLLECTION, name) for name in ("beacon", "kafka"))


def subgraph(
    hits: Sequence[str],
    names: Sequence[str] = (),
    made: Sequence[Page] = (),
    later: Sequence[str] = (),
    deleted: Sequence[str] = (),
) -> AnswerSubgraph:
    """Of an answer with a hit for each of these documents, to a question with these names. The documents of
    `later` are in a segment of their own, those of `deleted` were there."""
    every = {page.id: page for page in [*pages(), *made]}
    view = view_of([page.id for page in pages() if page.id not in later], made)
    if later:
        view = view.with_changes([(every[each].key, every[each].contribution()) for each in later], 1)
    view = view.with_changes([(every[each].key, None) for each in deleted], 2)
    text = Tables({page.key: page for page in every.values()}, WordCounts({}))
    found = [
        make_hit(at).model_copy(
            update={
                "chunk_id": every[each].chunks()[0][0],
                "document_id": each,
                "collection": COLLECTION,
            }
        )
        for at, each in enumerate(hits, start=1)
    ]
    named = [
        NamedInQuestion(words=each, name=each, collection=COLLECTION, node=entity_id(COLLECTION, each))
        for each in names
    ]
    understanding = Understanding(intent="general", names=tuple(named))
    snapshot = Snapshot("g", text, view, "documents")  # type: ignore[arg-type]
    return answer_subgraph(EntityCatalogues(), snapshot, understanding, found)


def facts(found: AnswerSubgraph) -> dict[tuple[str, str, str], int]:
    return {(each.subject.label, each.predicate, each.object.label): each.stated for each in found.relations}


def test_entities_of_most_hits_come_first_and_dates_are_left_out() -> None:
    found = subgraph(["teams", "beacon", "more"])
    shown = [(each.label, each.type, each.hits, each.named) for each in found.entities]
    assert shown[0] == ("Beacon", "product", 3, False)
    assert {label: hits for label, _, hits, _ in shown} == {
        "Beacon": 3,
        "Kafka": 2,
        "Team Petrel": 2,
        "Maria Okafor": 1,
    }
    assert (found.entities[0].id, found.entities[0].collection) == (BEACON, COLLECTION)
    assert not found.truncated


def test_what_the_question_names_is_first_though_no_hit_is_about_it() -> None:
    found = subgraph(["teams"], ["lisbon"])
    first, *others = found.entities
    assert (first.label, first.named, first.hits) == ("Lisbon", True, 0)
    assert [each.named for each in others] == [False] * 3


def test_most_central_has_the_centrality_one_and_others_less() -> None:
    central = {each.label: each.centrality for each in subgraph(["teams", "beacon", "harbor"]).entities}
    assert max(central, key=lambda label: central[label] or 0) == "Kafka"
    assert central["Kafka"] == 1
    assert 0 < (central["Maria Okafor"] or 0) < 1


def test_relations_are_the_facts_between_two_of_them_with_evidence_of_a_hit() -> None:
    found = subgraph(["more"])
    assert facts(found) == {("Beacon", "depends_on", "Kafka"): 2, ("Team Petrel", "owns", "Beacon"): 1}
    (relation,) = [each for each in found.relations if each.predicate == "depends_on"]
    (evidence,) = relation.evidence
    assert (evidence.document_id, evidence.sentence, relation.strength) == ("more", "Beacon requires Kafka.", 1.0)
    assert (relation.subject.id, relation.object.id) == (BEACON, KAFKA)


def test_relations_are_those_of_all_segments_and_not_of_deleted_documents() -> None:
    requires = "Beacon", "depends_on", "Kafka"
    assert facts(subgraph(["beacon"], later=["more", "teams"])) == {requires: 2}
    assert facts(subgraph(["beacon"], deleted=["more"])) == {requires: 1}


def test_hand_made_nodes_and_edges_are_part_of_it() -> None:
    node = made_node("petrel", "The boats", "They sail.", collection=COLLECTION)
    edges = [
        made_edge("petrel", "runs", BEACON, name="e1", collection=COLLECTION, weight=0.4),
        made_edge(BEACON, "replaces", KAFKA, name="e2", collection=COLLECTION),
        made_edge("petrel", "runs", entity_id(COLLECTION, "harbor"), name="e3", collection=COLLECTION),
    ]
    found = subgraph(["beacon", node.id], made=[node, *edges])
    (shown,) = [each for each in found.entities if each.id == "petrel"]
    assert (shown.label, shown.type, shown.collection, shown.hits) == ("The boats", "thing", COLLECTION, 1)
    assert shown.centrality is None
    assert facts(found) == {
        ("Beacon", "replaces", "Kafka"): 0,
        ("Beacon", "depends_on", "Kafka"): 2,
        ("The boats", "runs", "Beacon"): 0,
    }
    assert [each.by_people for each in found.relations if each.predicate == "runs"] == [["e1"]]


def test_it_is_bounded_and_says_so() -> None:
    names = [f"Thing {chr(97 + at)}{chr(97 + at)}" for at in range(MOST_ENTITIES + 1)]
    many = Page(
        "many", "Many", [[" and ".join(names)]], names, collection=COLLECTION, types=dict.fromkeys(names, "product")
    )
    found = subgraph(["many"], made=[many])
    assert (len(found.entities), found.truncated) == (MOST_ENTITIES, True)


def test_answer_without_hits_and_names_is_about_nothing() -> None:
    found = subgraph([])
    assert (found.entities, found.relations, found.truncated) == ([], [], False)
