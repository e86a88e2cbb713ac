"""How a collection is linked, and the order to link it again, over HTTP."""

import pytest

from query_api.ingest.producer import OutgoingRecord
from schemas.curation import ExtractionChoice, LinkingChoice, encode_choice, extraction_key, linking_key
from schemas.orders import Relinking, relink_key
from tests.support.fakes.curation import CurationLog
from tests.support.fakes.service import Running, problem

PATH = "/v1/collections/a/linking"
RELINK = "/v1/collections/a/relink"


async def test_a_choice_and_an_order_go_to_the_curation_topic(running: Running, sent: list[OutgoingRecord]) -> None:
    assert (await running.http.put(PATH, json={"similar_above": 0.5})).json() == {"position": "0:0", "documents": 3}
    assert (await running.http.delete(PATH)).status_code == 202
    order = await running.http.post(RELINK)
    assert (order.status_code, order.json()["position"]) == (202, "0:2")
    assert sent[:2] == [
        OutgoingRecord(b"a/settings/linking", b'{"similar_above":0.5}'),
        OutgoingRecord(b"a/settings/linking", None),
    ]
    assert sent[2].key == f"a/relink/{order.json()['id']}".encode()


async def test_what_applies_is_shown_with_what_was_chosen(running: Running, log: CurationLog) -> None:
    await log.put(linking_key("a"), encode_choice(LinkingChoice(max_related=2)))
    shown = (await running.get(PATH)).json()
    assert (shown["max_related"], shown["similar_above"], shown["position"]) == (2, 0.8, "0:0")
    assert shown["chosen"]["similar_above"] is None
    assert (shown["defaults"]["max_related"], shown["defaults"]["similar_above"]) == (8, 0.8)
    await log.put(linking_key("a"), None)
    assert (await running.get(PATH)).json()["position"] is None


async def test_an_order_tells_how_far_it_is(running: Running, log: CurationLog) -> None:
    state = Relinking(state="running", documents=64, of=100, changed=3)
    await log.put(relink_key("a", "a1"), encode_choice(state))
    assert (await running.get(f"{RELINK}/a1")).json() == state.model_dump()
    assert problem(await running.get(f"{RELINK}/a2"))["status"] == 404


async def test_a_collection_without_documents_is_not_linked_again_and_those_there_are_are_named(
    running: Running, sent: list[OutgoingRecord]
) -> None:
    body = problem(await running.http.post("/v1/collections/nots/relink"))
    assert (body["status"], body["reason"]) == (404, "unknown_collection")
    assert body["detail"] == "No document is in the collection 'nots'. There are documents in a."
    assert sent == []


@pytest.mark.parametrize("choice", [{"similar_above": 1.5}, {"related": 0}, {"max_related": 65}, {"colour": 1}])
async def test_weights_and_thresholds_have_bounds(running: Running, choice: dict[str, float]) -> None:
    assert problem(await running.http.put(PATH, json=choice))["status"] == 422


async def test_without_kafka_nothing_is_ordered(running: Running) -> None:
    for answer in (await running.http.post(RELINK), await running.get(PATH), await running.get(f"{RELINK}/a")):
        assert problem(answer)["status"] == 503


async def test_an_extractor_is_chosen_by_an_event(running: Running, sent: list[OutgoingRecord]) -> None:
    path = "/v1/collections/a/extraction"
    assert (await running.http.put(path, json={"extractor": "language_model"})).status_code == 202
    assert (await running.http.put(path, json={"extractor": "magic"})).status_code == 422
    assert (await running.http.delete(path)).status_code == 202
    assert sent == [
        OutgoingRecord(b"a/settings/extraction", b'{"extractor":"language_model"}'),
        OutgoingRecord(b"a/settings/extraction", None),
    ]


async def test_chosen_extractor_is_shown_until_it_is_taken_back(running: Running, log: CurationLog) -> None:
    path = "/v1/collections/a/extraction"
    await log.put(extraction_key("a"), encode_choice(ExtractionChoice(extractor="language_model")))
    chosen = (await running.http.get(path)).json()
    assert (chosen["extractor"], chosen["position"]) == ("language_model", "0:0")
    await log.put(extraction_key("a"), None)
    default = (await running.http.get(path)).json()
    assert (default["extractor"], default["position"]) == ("rules", None)
