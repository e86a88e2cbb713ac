"""Paths between entities: the strongest first, each step with its evidence."""

from query_api.entities.entity_paths import PathFinder
from schemas.entities import EntityPath
from tests.unit.query_api.entities.organisation import COLLECTION, catalogue_of, describer_of, view_of


def paths(source: str, target: str, max_steps: int = 4, limit: int = 3) -> list[EntityPath]:
    view = view_of()
    catalogue = catalogue_of(view)
    ends = [catalogue.find(each, COLLECTION) for each in (source, target)]
    assert ends[0] is not None
    assert ends[1] is not None
    return PathFinder(view, catalogue, describer_of(view)).paths(ends[0], ends[1], max_steps, limit).paths


def steps(path: EntityPath) -> list[tuple[str, str, str, bool]]:
    return [(each.source.label, each.predicate, each.target.label, each.inverse) for each in path.steps]


def test_the_strongest_path_goes_by_statements_and_shows_their_sentences() -> None:
    best = paths("Harbor", "Beacon")[0]
    assert steps(best) == [
        ("Harbor", "depends_on", "Kafka", False),
        ("Kafka", "depends_on", "Beacon", True),
    ]
    assert best.strength == 0.9
    assert [each.evidence.sentence for each in best.steps if each.evidence] == [
        "Harbor depends on Kafka.",
        "Beacon requires Kafka.",
    ]


def test_entities_that_one_chunk_mentions_are_a_step_apart() -> None:
    best = paths("Lisbon", "Harbor")[0]
    assert steps(best) == [("Lisbon", "mentioned_with", "Harbor", False)]
    assert best.steps[0].evidence is not None
    assert best.steps[0].evidence.sentence == "Okafor, Maria wrote Harbor in Lisbon."


def test_no_path_is_longer_than_asked_and_none_leads_to_itself() -> None:
    assert paths("Lisbon", "Beacon", max_steps=1) == []
    assert paths("Beacon", "Beacon") == []
    for path in paths("Lisbon", "Team Petrel", limit=5):
        ends = [path.steps[0].source.label, *(each.target.label for each in path.steps)]
        assert len(ends) == len(set(ends))


def test_a_date_is_no_way_through() -> None:
    found = [step.target.label for path in paths("Beacon", "Lisbon", limit=10) for step in path.steps]
    assert "Harbor" in found
    assert "3 May 2024" not in found
