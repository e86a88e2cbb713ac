"""Facts: statements of documents, and edges that people made."""

from query_api.entities.paths import PathFinder
from query_api.index.curation import CollectionEdits, Curation, Placed
from schemas.graph_edits import EdgeEdit, NodeEdit
from schemas.ids import entity_id, normalise_name
from tests.unit.query_api.entities.organisation import COLLECTION, catalogue_of, describer_of, view_of


def id_of(name: str) -> str:
    return entity_id(COLLECTION, normalise_name(name))


def edited(**edges: EdgeEdit) -> Curation:
    placed = {identifier: Placed(edge, at) for at, (identifier, edge) in enumerate(edges.items())}
    nodes = {"team-x": Placed(NodeEdit(label="Team X", type="team"), 9)}
    return Curation({COLLECTION: CollectionEdits(nodes=nodes, edges=placed)})


def facts(curation: Curation, name: str) -> dict[tuple[str, str, str], tuple[float, int, list[str]]]:
    view = view_of()
    entity = catalogue_of(view, curation).find(name, COLLECTION)
    assert entity is not None
    return {
        (each.subject.label, each.predicate, each.object.label): (each.strength, each.stated, each.by_people)
        for each in describer_of(view, curation).describe(entity, 20).statements
    }


def test_an_edge_that_people_made_is_a_fact_of_both_ends() -> None:
    curation = edited(e1=EdgeEdit(source=id_of("Lisbon"), target=id_of("Beacon"), predicate="hosts", weight=0.4))
    expected = ("Lisbon", "hosts", "Beacon"), (0.4, 0, ["e1"])
    assert expected in facts(curation, "Beacon").items()
    assert expected in facts(curation, "Lisbon").items()


def test_an_edge_adds_to_what_documents_state() -> None:
    edge = EdgeEdit(source=id_of("Harbor"), target=id_of("Kafka"), predicate="depends_on", weight=0.2)
    stated = facts(edited(), "Harbor")["Harbor", "depends_on", "Kafka"]
    assert stated == (0.9, 1, [])
    assert facts(edited(e1=edge), "Harbor")["Harbor", "depends_on", "Kafka"] == (1.0, 1, ["e1"])


def test_an_end_may_be_a_hand_made_node_and_nothing_that_is_missing() -> None:
    curation = edited(
        e1=EdgeEdit(source="team-x", target=id_of("Kafka"), predicate="runs"),
        e2=EdgeEdit(source=id_of("Nobody"), target=id_of("Kafka"), predicate="runs"),
    )
    found = facts(curation, "Kafka")
    assert found["Team X", "runs", "Kafka"] == (1.0, 0, ["e1"])
    assert [each for each in found if each[1] == "runs"] == [("Team X", "runs", "Kafka")]


def test_paths_go_by_edges_that_people_made() -> None:
    curation = edited(e1=EdgeEdit(source=id_of("Lisbon"), target=id_of("Team Petrel"), predicate="hosts"))
    view, catalogue = view_of(), catalogue_of(view_of(), curation)
    ends = [catalogue.find(name, COLLECTION) for name in ("Team Petrel", "Lisbon")]
    assert ends[0] is not None
    assert ends[1] is not None
    found = PathFinder(view, catalogue, describer_of(view, curation)).paths(ends[0], ends[1], 2, 1).paths
    (step,) = found[0].steps
    assert (step.predicate, step.inverse, step.strength, step.evidence) == ("hosts", True, 1.0, None)
