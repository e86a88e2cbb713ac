"""Paths between entities: the strongest first, each step with its evidence."""

from collections.abc import Sequence
from typing import Any

from query_api.entities.entity_paths import PathFinder
from query_api.entities.path_search import Step, search_around
from schemas.entities import EntityPath
from schemas.ids import entity_id
from tests.support.fakes.text_stores import Page, made_edge, made_node
from tests.unit.query_api.entities.organisation import (
    COLLECTION,
    catalogue_of,
    describer_of,
    end_of,
    view_of,
)


def paths(source: str, target: str, max_steps: int = 4, limit: int = 3) -> list[EntityPath]:
    view = view_of()
    catalogue = catalogue_of(view)
    start, end = (end_of(catalogue, name) for name in (source, target))
    return PathFinder(view, catalogue, describer_of(view)).paths(start, end, max_steps, limit).paths


def around(source: str, *predicates: str, made: Sequence[Page] = (), through: str = "", **choices: Any) -> list[str]:
    """The labels of what is around an entity of the sample and of what people `made`."""
    view = view_of(made=made)
    catalogue = catalogue_of(view)
    finder = PathFinder(view, catalogue, describer_of(view), predicates)
    by = end_of(catalogue, through) if through else None
    asked = {"max_steps": 3, "limit": 20, "min_strength": 0.4, **choices}
    found = finder.around(end_of(catalogue, source), through=by, **asked).paths
    return [path.steps[-1].target.label for path in found]


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


def test_entities_that_one_sentence_names_are_a_step_apart() -> None:
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


def test_entities_of_one_chunk_but_no_sentence_are_no_step() -> None:
    assert paths("Lisbon", "Kafka", max_steps=1) == []
    assert [step.target.label for step in paths("Lisbon", "Kafka")[0].steps] == ["Harbor", "Kafka"]


def test_the_strongest_around_come_first_down_to_the_least_strength() -> None:
    assert around("Maria Okafor", max_steps=1) == ["Team Petrel"]
    assert around("Kafka", "depends_on") == ["Beacon", "Harbor"]
    found = around("Kafka", min_strength=0.0, max_steps=6)
    assert found[:2] == ["Beacon", "Harbor"]
    assert "Maria Okafor" in found
    assert around("Kafka", limit=1) == ["Beacon"]


def test_around_by_way_of_another_is_what_it_leads_to() -> None:
    assert around("Maria Okafor", through="Team Petrel", min_strength=0.2) == ["Beacon", "Kafka"]
    assert around("Maria Okafor", through="Team Petrel", entity_type="place", min_strength=0.0) == []


def test_around_includes_hand_made_nodes_and_goes_through_them() -> None:
    made = [
        made_node("guild", "Harbour Guild", collection=COLLECTION),
        made_edge("guild", "licenses", entity_id(COLLECTION, "kafka"), collection=COLLECTION),
        made_edge("guild", "licenses", entity_id(COLLECTION, "lisbon"), collection=COLLECTION),
    ]
    assert around("Lisbon", "licenses", made=made) == ["Harbour Guild", "Kafka"]


def test_weaker_but_shorter_path_leads_further() -> None:
    steps = {"a": [("b", 1.0), ("c", 0.5)], "b": [("c", 1.0)], "c": [("d", 1.0)]}
    found = search_around(
        "a",
        lambda nodes: [Step(*step, None) for step in steps.get(nodes[-1], ())],
        max_steps=2,
        limit=9,
        min_strength=0.4,
        is_wanted=lambda _: True,
    )
    assert [(path[-1].target, strength) for strength, path in found.paths] == [("b", 1.0), ("c", 1.0), ("d", 0.5)]
