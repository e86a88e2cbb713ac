"""What the chunk of a hit mentions and states."""

from concurrent.futures import Executor

from schemas.ids import entity_id
from tests.support.fakes.text_stores import Page, world
from tests.unit.query_api.retrieval.asking import ask

TYPES = {"Jane Doe": "person", "Lisbon": "place", "Tagus": "place"}
PAGES = [
    Page(
        "alpha", "Alpha Film", [["Alpha Film was directed by Jane Doe."]], ["Jane Doe", "Alpha Film"],
        facts=[("Alpha Film", "directed_by", "Jane Doe")], types=TYPES,
    ),
    Page(
        "jane", "Jane Doe", [["Jane Doe was born in Lisbon, and Lisbon lies on the Tagus."]],
        ["Jane Doe", "Lisbon", "Tagus"], facts=[("Lisbon", "lies_on", "Tagus"), ("Jane Doe", "born_in", "Lisbon")],
        types=TYPES,
    ),
]  # fmt: skip
QUESTION = "Where was the director of Alpha Film born?"


async def test_explained_hits_tell_entities_and_statements_of_their_chunk(executor: Executor) -> None:
    hits = {hit.document_id: hit for hit in (await ask(world(PAGES), executor, QUESTION, explain=True)).hits}
    jane = hits["jane"]
    assert {(each.label, each.type) for each in jane.entities} == {
        ("Jane Doe", "person"), ("Lisbon", "place"), ("Tagus", "place"),
    }  # fmt: skip
    assert entity_id("wiki", "lisbon") in {each.id for each in jane.entities}
    assert {(each.subject, each.predicate, each.object) for each in jane.statements} == {
        ("Jane Doe", "born_in", "Lisbon"), ("Lisbon", "lies_on", "Tagus"),
    }  # fmt: skip
    assert all(each.sentence and each.object in each.sentence for each in jane.statements)
    assert [(each.label, each.type) for each in hits["alpha"].entities] == [("Jane Doe", "person")]


async def test_what_the_path_goes_by_comes_first(executor: Executor) -> None:
    hits = (await ask(world(PAGES), executor, QUESTION, explain=True)).hits
    jane = next(hit for hit in hits if hit.document_id == "jane")
    assert "Jane Doe" in {end for edge in jane.path for end in (edge.source, edge.target)}
    assert jane.entities[0].label == "Jane Doe"
    assert jane.statements[0].predicate == "born_in"


async def test_nothing_of_it_is_told_unasked(executor: Executor) -> None:
    for hit in (await ask(world(PAGES), executor, QUESTION)).hits:
        assert (hit.entities, hit.statements) == ([], [])
