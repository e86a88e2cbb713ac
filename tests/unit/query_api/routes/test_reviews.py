"""Entities that may be one: listed, decided about, merged, renamed, split off; each decision an event."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from indexer.resolution.candidates import NamedEntity
from query_api.entities.review_queue import Reviews
from query_api.index.curation_follower import Curation
from schemas.curation import decode_curation
from schemas.graph_edits import DecisionEdit, EntityEdit, GraphEdit, MergeEdit, decision_id
from schemas.ids import entity_id, normalise_name
from tests.support.fakes.catalogue import NamedEntities
from tests.support.fakes.curation import CurationLog
from tests.support.fakes.service import Running, problem

NAMES = [("Maria Okafor", 9), ("M. Okafor", 4), ("Okafro, Maria", 1), ("Peter Lindqvist", 3)]
MARIA, INITIAL, MISSPELT, PETER = (entity_id("a", normalise_name(name)) for name, _ in NAMES)


class GroupedEntities(NamedEntities):
    """As the service's own catalogue: names that people merged are one entity, by the first of them."""

    def __init__(self, entities: Sequence[NamedEntity], curation: Curation) -> None:
        self._groups: Mapping[str, Sequence[str]] = curation.of("a").groups().members
        super().__init__(each for each in entities if self._groups.get(each.id, (each.id,))[0] == each.id)

    def find(self, identifier: str, collection: str) -> Any:
        computed = identifier if len(identifier) == 32 else entity_id(collection, normalise_name(identifier))
        return super().find(self._groups.get(computed, (computed,))[0], collection)


@pytest.fixture
def reviews(running: Running, log: CurationLog) -> Reviews:
    entities = [NamedEntity(entity_id("a", normalise_name(name)), "a", name, "person", many) for name, many in NAMES]
    made: Reviews = running.http._transport.app.state.reviews  # type: ignore[attr-defined]
    made.catalogue_of = lambda snapshot: GroupedEntities(entities, snapshot.curation)
    return made


async def listed(running: Running, **params: Any) -> list[dict[str, Any]]:
    answer = await running.get("/v1/reviews", collection="a", **params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["reviews"]
    return found


async def decide(running: Running, review: str, decision: str, by: str | None = None) -> dict[str, Any]:
    body = {"collection": "a", "decision": decision, "by": by}
    answer = await running.http.post(f"/v1/reviews/{review}", json=body)
    assert answer.status_code == 202, answer.text
    accepted: dict[str, Any] = answer.json()
    return accepted


async def test_candidates_are_listed_with_a_reason_and_go_once_decided(
    running: Running, log: CurationLog, reviews: Reviews
) -> None:
    found = await listed(running)
    pairs = [{each["name"] for each in review["entities"]} for review in found]
    assert {"Maria Okafor", "M. Okafor"} in pairs
    assert {"Maria Okafor", "Okafro, Maria"} in pairs
    assert not any("Peter Lindqvist" in pair for pair in pairs)
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    assert all(each["reason"] and each["state"] == "open" for each in found)

    accepted = decision_id([MARIA, INITIAL])
    await decide(running, accepted, "accept", by="ada")
    assert decode_curation(log.records[-1].key, log.records[-1].value) == GraphEdit(
        "a", "decision", accepted, DecisionEdit(decision="accept", entities=sorted([MARIA, INITIAL]), by="ada")
    )
    await decide(running, decision_id([MARIA, MISSPELT]), "reject")
    assert {MARIA, MISSPELT} not in [{each["id"] for each in review["entities"]} for review in await listed(running)]
    states = [(each["state"], each["position"], each["by"]) for each in await listed(running, state="decided")]
    assert states == [("rejected", "0:1", None), ("accepted", "0:0", "ada")]
    assert [each["id"] for each in await listed(running, state="accepted")] == [accepted]

    await decide(running, accepted, "undo")
    await decide(running, decision_id([MARIA, MISSPELT]), "undo")
    assert await listed(running) == found
    assert await listed(running, state="decided") == []


async def test_a_rejection_holds_for_the_other_names_of_an_entity(
    running: Running, log: CurationLog, reviews: Reviews
) -> None:
    await decide(running, decision_id([MARIA, MISSPELT]), "reject")
    answer = await running.http.post(
        "/v1/entities/merge", json={"collection": "a", "entities": ["Maria Okafor", "M. Okafor"]}
    )
    assert answer.status_code == 202
    assert await listed(running) == []


async def test_opposite_decisions_leave_the_newer(running: Running, log: CurationLog, reviews: Reviews) -> None:
    review = decision_id([MARIA, INITIAL])
    await decide(running, review, "accept", by="ada")
    await decide(running, review, "reject", by="bob")
    (found,) = await listed(running, state="decided")
    assert (found["state"], found["by"]) == ("rejected", "bob")


async def test_a_merge_is_made_shown_and_taken_back(running: Running, log: CurationLog, reviews: Reviews) -> None:
    order = {"collection": "a", "entities": [PETER, "maria okafor"], "name": "The Two"}
    answer = await running.http.post("/v1/entities/merge", json=order)
    assert answer.status_code == 202
    again = await running.http.post("/v1/entities/merge", json=order)
    assert (again.status_code, again.json()["id"]) == (202, answer.json()["id"])
    event = decode_curation(log.records[0].key, log.records[0].value)
    assert isinstance(event, GraphEdit)
    assert event.edit == MergeEdit(entities=[PETER, MARIA], name="The Two")
    (merged,) = await listed(running, state="merged")
    assert (merged["name"], merged["overruled"]) == ("The Two", False)
    await decide(running, merged["id"], "undo")
    assert await listed(running, state="merged") == []


@pytest.mark.parametrize(
    ("entities", "says"),
    [
        ([MARIA, "Maria Okafor"], "not merged with itself"),
        (["Maria Okafor", "maria OKAFOR (engineer)"], "not merged with itself"),
        ([MARIA, "Nobody"], "no entity 'Nobody'"),
        ([MARIA, "f" * 32], "no entity 'ffff"),
        ([MARIA, "?!"], "no entity '?!'"),
        ([MARIA, "x" * 10_000], "no entity"),
        ([MARIA], "`entities`"),
    ],
)
async def test_a_merge_that_makes_no_sense_is_refused(
    running: Running, log: CurationLog, reviews: Reviews, entities: list[str], says: str
) -> None:
    body = problem(await running.http.post("/v1/entities/merge", json={"collection": "a", "entities": entities}))
    assert (body["status"], log.records) == (422, [])
    assert says in body["detail"]


async def test_a_merge_undone_after_later_edits_leaves_what_they_say(
    running: Running, log: CurationLog, reviews: Reviews
) -> None:
    first = {"collection": "a", "entities": [MARIA, PETER], "name": "The Two"}
    merge = (await running.http.post("/v1/entities/merge", json=first)).json()["id"]
    later = {"collection": "a", "entities": [MARIA, INITIAL], "name": "Maria O."}
    assert (await running.http.post("/v1/entities/merge", json=later)).status_code == 202
    renamed = await running.http.put(f"/v1/entities/{PETER}", json={"collection": "a", "type": "organisation"})
    assert renamed.status_code == 202
    await decide(running, merge, "undo")
    (left,) = await listed(running, state="merged")
    assert (left["name"], left["overruled"]) == ("Maria O.", False)
    assert {each["id"] for each in left["entities"]} == {MARIA, INITIAL}


async def test_a_merge_in_a_circle_is_one_entity(running: Running, log: CurationLog, reviews: Reviews) -> None:
    for pair in ([MARIA, INITIAL], [INITIAL, PETER]):
        answer = await running.http.post("/v1/entities/merge", json={"collection": "a", "entities": pair})
        assert answer.status_code == 202
    body = problem(await running.http.post("/v1/entities/merge", json={"collection": "a", "entities": [PETER, MARIA]}))
    assert "one entity already" in body["detail"]


async def test_an_entity_is_renamed_retyped_split_off_and_left_as_it_was(
    running: Running, log: CurationLog, reviews: Reviews
) -> None:
    async def change(entity: str, **wanted: Any) -> Any:
        return await running.http.put(f"/v1/entities/{entity}", json={"collection": "a", **wanted})

    assert (await change(MARIA, name="Maria J. Okafor", type="person", by="ada")).status_code == 202
    split = await change("M. Okafor", split=True)
    assert (split.status_code, split.json()["id"]) == (202, INITIAL)
    said = running.service.snapshot().curation.of("a")
    assert said.entities[MARIA].edit == EntityEdit(name="Maria J. Okafor", type="person", by="ada")
    assert said.decisions[decision_id([INITIAL])].edit == DecisionEdit(decision="split", entities=[INITIAL])
    assert [each["state"] for each in await listed(running, state="split")] == ["split"]
    assert (await change(MARIA)).status_code == 202
    assert (await change(INITIAL)).status_code == 202
    said = running.service.snapshot().curation.of("a")
    assert (said.entities, said.decisions) == ({}, {})
    assert problem(await change("TCP%2FIP", name="x"))["title"] == "No such entity"
    assert problem(await change(MARIA, name="…"))["status"] == 422


async def test_pages_and_unknown_reviews(running: Running, log: CurationLog, reviews: Reviews) -> None:
    everything = await listed(running, state="all")
    seen, cursor = [], {}
    while True:
        page = (await running.get("/v1/reviews", collection="a", state="all", limit=1, **cursor)).json()
        seen += page["reviews"]
        assert page["total"] == len(everything)
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == everything
    for cursor_text in ("é", "W10", "WyJhIiwgMSwgMSwgMV0"):
        assert problem(await running.get("/v1/reviews", cursor=cursor_text))["status"] == 400
    answer = await running.http.post(f"/v1/reviews/{'0' * 32}", json={"collection": "a", "decision": "accept"})
    assert problem(answer)["status"] == 404


async def test_homonyms_are_merged_by_their_whole_titles(running: Running, log: CurationLog, reviews: Reviews) -> None:
    names = ("mercury", "mercury planet", "wednesday planet")
    entities = [NamedEntity(entity_id("a", name), "a", name, "thing", 1) for name in names]
    reviews.catalogue_of = lambda snapshot: GroupedEntities(entities, snapshot.curation)
    body = {"collection": "a", "entities": ["Mercury (planet)", "Wednesday planet"]}
    answer = await running.http.post("/v1/entities/merge", json=body)
    assert answer.status_code == 202, answer.text
    event = decode_curation(log.records[-1].key, log.records[-1].value)
    assert isinstance(event, GraphEdit)
    assert isinstance(event.edit, MergeEdit)
    assert set(event.edit.entities) == {entity_id("a", name) for name in names[1:]}
