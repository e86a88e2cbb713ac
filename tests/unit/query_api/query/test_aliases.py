"""What people say is one, or called so, is meant by a question that names it."""

from dataclasses import replace

from query_api.index.curation_follower import NO_ALIASES, CollectionEdits, Curation, Placed
from query_api.index.graph.identifiers import key_of
from query_api.index.graph.view import GraphView
from query_api.query.analysis import Question
from query_api.query.entity_linking import link_names
from query_api.retrieval.cache import snapshot_identity
from schemas.graph_edits import DecisionEdit, EntityEdit, MergeEdit
from schemas.ids import entity_id, normalise_name
from tests.support.fakes.text_stores import Page, world
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


def linked_names(question: str, *pages: Page, curation: Curation | None = None) -> set[str]:
    view = GraphView.from_contributions([page.contribution() for page in pages], 0)
    aliases = (curation or Curation()).aliases
    found = link_names(Question(question), view, COLLECTION, None, aliases)
    keys = [each.entity for each in (*found.links, *found.entities)]
    return {name for _, name in view.entity_names(keys).values()}


def page(text: str, facts: list[tuple[str, str, str]] | None = None, **types: str) -> Page:
    names = {name.replace("_", " "): kind for name, kind in types.items()}
    return Page(text, text.title(), [[text]], list(names), facts or [], collection=COLLECTION, types=names)


def test_first_or_family_name_means_the_only_person_it_fits() -> None:
    john = page("John Carter owns Beacon.", John_Carter="person", Beacon="product")
    mary = page("Mary Carter reads J. Carter.", Mary_Carter="person")
    assert linked_names("What does Carter own?", john) == {"john carter"}
    assert linked_names("what does carter own", john) == {"john carter"}
    assert linked_names("What does John own?", john, mary) == {"john carter"}
    assert linked_names("What does Carter own?", john, mary) == set()
    assert linked_names("What does Beacon own?", john) == {"beacon"}


def test_family_name_that_is_also_a_place_means_the_place() -> None:
    person = page("George Lisbon came.", George_Lisbon="person")
    place = page("Lisbon is far.", Lisbon="place")
    assert linked_names("Who came from Lisbon?", person) == {"george lisbon"}
    assert linked_names("Who came from Lisbon?", person, place) == {"lisbon"}


def test_name_of_two_letters_is_linked_once_it_is_an_alias() -> None:
    used = page("AI is used here.", AI="thing")
    field = page("Artificial intelligence is a field.", Artificial_intelligence="concept")
    assert linked_names("Where is AI used?", used, field) == set()
    merge = MergeEdit(entities=[id_of("AI"), id_of("Artificial intelligence")])
    merged_edits = Curation({COLLECTION: CollectionEdits(merges={"m1": Placed(merge, 0)})})
    assert linked_names("Where is AI used?", used, field, curation=merged_edits) == {"ai", "artificial intelligence"}
    stated = page("It is called AI.", [("Artificial intelligence", "also_known_as", "AI")], AI="thing")
    assert linked_names("Where is AI used?", used, stated) == {"ai"}
