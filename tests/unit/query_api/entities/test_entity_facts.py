"""Facts: statements of documents, and edges that people made."""

from query_api.entities.entity_paths import PathFinder
from schemas.ids import entity_id, normalise_name
from tests.support.fakes.text_stores import Page, made_edge, made_node
from tests.unit.query_api.entities.organisation import COLLECTION, catalogue_of, describer_of, end_of, view_of


def id_of(name: str) -> str:
    return entity_id(COLLECTION, normalise_name(name))


TEAM = made_node("team-x", "Team X", collection=COLLECTION)


def edge(source: str, predicate: str, target: str, weight: float = 1.0, name: str = "e1") -> Page:
    return made_edge(source, predicate, target, weight=weight, name=name, collection=COLLECTION)


def facts(name: str, *made: Page) -> dict[tuple[str, str, str], tuple[float, int, list[str]]]:
    view = view_of(made=made)
    entity = catalogue_of(view).find(name, COLLECTION)
    assert entity is not None
    return {
        (each.subject.label, each.predicate, each.object.label): (each.strength, each.stated, each.by_people)
        for each in describer_of(view).describe(entity, 20).statements
    }


def test_an_edge_that_people_made_is_a_fact_of_both_ends() -> None:
    hosts = edge(id_of("Lisbon"), "hosts", id_of("Beacon"), 0.4)
    expected = ("Lisbon", "hosts", "Beacon"), (0.4, 0, ["e1"])
    assert expected in facts("Beacon", hosts).items()
    assert expected in facts("Lisbon", hosts).items()


def test_an_edge_adds_to_what_documents_state() -> None:
    assert facts("Harbor")["Harbor", "depends_on", "Kafka"] == (0.9, 1, [])
    depends = edge(id_of("Harbor"), "depends_on", id_of("Kafka"), 0.2)
    assert facts("Harbor", depends)["Harbor", "depends_on", "Kafka"] == (1.0, 1, ["e1"])


def test_an_end_may_be_a_hand_made_node_and_nothing_that_is_missing() -> None:
    runs = [edge("team-x", "runs", id_of("Kafka")), edge(id_of("Nobody"), "runs", id_of("Kafka"), name="e2")]
    found = facts("Kafka", TEAM, *runs)
    assert found["Team X", "runs", "Kafka"] == (1.0, 0, ["e1"])
    assert [each for each in found if each[1] == "runs"] == [("Team X", "runs", "Kafka")]


def test_paths_go_by_edges_that_people_made() -> None:
    view = view_of(made=[edge(id_of("Lisbon"), "hosts", id_of("Team Petrel"))])
    catalogue = catalogue_of(view)
    start, end = (end_of(catalogue, name) for name in ("Team Petrel", "Lisbon"))
    found = PathFinder(view, catalogue, describer_of(view)).paths(start, end, 2, 1).paths
    (step,) = found[0].steps
    assert (step.predicate, step.inverse, step.strength, step.evidence) == ("hosts", True, 1.0, None)
