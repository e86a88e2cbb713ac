"""What people say is one, or called so, is meant by a question that names it."""

from dataclasses import replace

from query_api.index.curation_follower import NO_ALIASES, CollectionEdits, Curation, Placed
from query_api.index.graph.identifiers import key_of
from query_api.query.analysis import Question
from query_api.query.entity_linking import link_names
from query_api.retrieval.cache import snapshot_identity
from schemas.graph_edits import DecisionEdit, EntityEdit, MergeEdit
from schemas.ids import entity_id, normalise_name
from tests.support.fakes.text_stores import world
from tests.unit.query_api.entities.organisation import COLLECTION, pages, view_of

QUESTION = Question("Who leads Team Petrel?")


def id_of(name: str) -> str:
    return entity_id(COLLECTION, normalise_name(name))


def merged(*names: str, called: str | None = None) -> Curation:
    merge = MergeEdit(entities=[id_of(name) for name in names], name=called)
    return Curation({COLLECTION: CollectionEdits(merges={"m1": Placed(merge, 0)})})


def linked(curation: Curation, question: Question = QUESTION, collection: str | None = COLLECTION) -> set[int]:
    found = link_names(question, view_of(), collection, None, curation.aliases)
    return {each.entity for each in found.entities} | {each.entity for each in found.links}


def test_without_edits_a_name_means_itself() -> None:
    assert Curation().aliases == NO_ALIASES
    assert linked(Curation()) == {key_of(id_of("Team Petrel"))}


def test_a_merged_name_means_all_that_are_one_with_it() -> None:
    both = {key_of(id_of("Team Petrel")), key_of(id_of("Kafka"))}
    assert linked(merged("Team Petrel", "Kafka")) == both
    assert linked(merged("Team Petrel", "Kafka"), Question("Who runs Kafka?")) == both
    assert linked(merged("Harbor", "Kafka")) == {key_of(id_of("Team Petrel"))}


def test_an_accepted_review_is_a_merge_and_a_newer_rejection_ends_it() -> None:
    pair = [id_of("Team Petrel"), id_of("Kafka")]
    accepted = {"r1": Placed(DecisionEdit(decision="accept", entities=pair), 1)}
    rejected = accepted | {"r2": Placed(DecisionEdit(decision="reject", entities=pair), 2)}
    assert len(linked(Curation({COLLECTION: CollectionEdits(decisions=accepted)}))) == 2
    assert len(linked(Curation({COLLECTION: CollectionEdits(decisions=rejected)}))) == 1


def test_a_name_that_people_gave_means_the_entity_in_its_collection() -> None:
    renamed = Curation({COLLECTION: CollectionEdits(entities={id_of("Kafka"): Placed(EntityEdit(name="The Log"), 0)})})
    question = Question("Who runs The Log?")
    assert linked(renamed, question) == {key_of(id_of("Kafka"))}
    assert linked(renamed, question, None) == {key_of(id_of("Kafka"))}
    assert linked(renamed, question, "another") == set()
    assert linked(merged("Kafka", "Lisbon", called="The Log"), question) == {
        key_of(id_of("Kafka")), key_of(id_of("Lisbon")),
    }  # fmt: skip


def test_answers_are_cached_apart() -> None:
    snapshot, _, _ = world(pages())
    other = replace(snapshot, curation=merged("Team Petrel", "Kafka"))
    assert snapshot_identity(snapshot) != snapshot_identity(other)
    assert snapshot_identity(other) == snapshot_identity(replace(other, curation=merged("Team Petrel", "Kafka")))
