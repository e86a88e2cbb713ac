"""Statements that do not go together, in the list of reviews: shown with both sentences, decided about, gone."""

from collections.abc import Sequence
from typing import Any

from query_api.index.store_opening import GraphFile
from tests.support.fakes.curation import CurationLog
from tests.support.fakes.service import Running, problem
from tests.support.fakes.text_stores import Page

NAMES = ("Kestrel", "Team Petrel", "Team Heron", "Kafka")


def page(name: str, subject: str, predicate: str, target: str, sentence: str) -> Page:
    types = dict.fromkeys(NAMES, "organisation")
    facts = [(subject, predicate, target)]
    return Page(name, name.title(), [[sentence]], NAMES, facts=facts, collection="a", types=types)


OLD = page("old.md", "Team Petrel", "owns", "Kestrel", "Kestrel is owned by Team Petrel.")
NEW = page("new.md", "Team Heron", "owns", "Kestrel", "Today Team Heron owns Kestrel.")
SAME = page("same.md", "Team Petrel", "owns", "Kestrel", "Team Petrel still owns Kestrel.")


async def index(running: Running, pages: Sequence[Page]) -> None:
    """The stores hold these documents and no others, and the service shows that."""
    engine, offset = running.engine, 100 + len(running.engine.graphs)
    engine.reader.pages.clear()
    engine.graphs[f"s{offset}"] = [each.contribution() for each in pages]
    engine.graph_file = GraphFile(f"s{offset}", offset)
    engine.reader.put(*pages, p0=(offset, offset))
    await running.service.reach({0: offset}, 10.0)


async def listed(running: Running, **params: Any) -> list[dict[str, Any]]:
    answer = await running.get("/v1/reviews", collection="a", **params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["reviews"]
    return found


async def test_conflict_is_listed_with_both_sentences(running: Running, log: CurationLog) -> None:
    await index(running, [OLD, NEW])
    (review,) = await listed(running, kind="conflict")
    assert (review["about"], review["state"], review["score"]) == ("owner", "open", 1.0)
    assert {each["name"] for each in review["entities"]} == {"Kestrel", "Team Petrel", "Team Heron"}
    evidence = {(each["evidence"][0]["document_id"], each["evidence"][0]["sentence"]) for each in review["statements"]}
    assert evidence == {("old.md", OLD.passages[0][0]), ("new.md", NEW.passages[0][0])}
    assert await listed(running, kind="enhancement") == []


async def test_conflict_goes_with_either_document(running: Running, log: CurationLog) -> None:
    for left in ([OLD], [NEW], [OLD, SAME]):
        await index(running, [OLD, NEW])
        assert len(await listed(running, kind="conflict")) == 1
        await index(running, left)
        assert await listed(running, kind="conflict") == []


async def test_conflict_is_decided_and_taken_back(running: Running, log: CurationLog) -> None:
    await index(running, [OLD, NEW])
    (review,) = await listed(running, kind="conflict")
    path, body = f"/v1/reviews/{review['id']}", {"collection": "a", "decision": "reject", "by": "ada"}
    assert (await running.http.post(path, json=body)).status_code == 202
    assert await listed(running, kind="conflict") == []
    (decided,) = await listed(running, state="decided")
    assert (decided["id"], decided["state"], decided["by"]) == (review["id"], "rejected", "ada")
    assert decided["statements"] == review["statements"]

    await index(running, [NEW, SAME, OLD])  # as after a rebuild, in another order
    assert [each["id"] for each in await listed(running, state="rejected")] == [review["id"]]
    await index(running, [NEW])
    assert await listed(running, state="all", kind="conflict") == []
    await index(running, [OLD, NEW])
    assert (await running.http.post(path, json=body | {"decision": "undo"})).status_code == 202
    assert [each["state"] for each in await listed(running, state="all", kind="conflict")] == ["open"]


async def test_accepted_conflict_makes_no_entities_one(running: Running, log: CurationLog) -> None:
    await index(running, [OLD, NEW])
    (review,) = await listed(running, kind="conflict")
    body = {"collection": "a", "decision": "accept"}
    assert (await running.http.post(f"/v1/reviews/{review['id']}", json=body)).status_code == 202
    assert running.service.snapshot().curation.of("a").groups().members == {}
    assert [each["kind"] for each in await listed(running, state="accepted")] == ["conflict"]


async def test_unknown_kind_of_review_is_refused(running: Running, log: CurationLog) -> None:
    assert "duplicate" in problem(await running.get("/v1/reviews", kind="odd"))["detail"]


async def test_edge_that_closes_a_cycle_with_a_statement_is_refused(running: Running, log: CurationLog) -> None:
    await index(running, [OLD])
    assert (
        await running.http.put("/v1/collections/a/graph", json={"predicates": {"owns": {"acyclic": True}}})
    ).is_success
    edge = {"collection": "a", "source": "Kestrel", "target": "Team Petrel", "predicate": "owns"}
    refused = problem(await running.http.post("/v1/edges", json=edge))
    assert (refused["status"], refused["reason"]) == (422, "cycle")
    assert "Kestrel → Team Petrel → Kestrel" in refused["detail"]


async def test_statements_against_the_schema_are_reported(running: Running, log: CurationLog) -> None:
    uses = page("uses.md", "Kestrel", "uses", "Kafka", "Kestrel uses Kafka.")
    back = page("back.md", "Kafka", "uses", "Kestrel", "Kafka uses Kestrel.")
    await index(running, [OLD, SAME, uses, back])
    assert (await running.get("/v1/collections/a/graph")).json()["violations"] == []
    chosen = {"predicates": {"uses": {"source": ["person"], "acyclic": True}}}
    assert (await running.http.put("/v1/collections/a/graph", json=chosen)).is_success
    found = (await running.get("/v1/collections/a/graph")).json()["violations"]
    assert [(each["what"], each["predicate"], each["type"], each["statements"]) for each in found] == [
        ("predicate", "owns", None, 2),
        ("cycle", "uses", None, 2),
        ("source", "uses", "organisation", 2),
    ]
    (example,) = found[0]["examples"]  # of two statements
    assert {each["sentence"] for each in example["evidence"]} == {OLD.passages[0][0], SAME.passages[0][0]}
    assert {each["object"]["label"] for each in found[2]["examples"]} == {"Kestrel", "Kafka"}
    await index(running, [uses])
    found = (await running.get("/v1/collections/a/graph")).json()["violations"]
    assert [(each["what"], each["statements"]) for each in found] == [("source", 1)]
