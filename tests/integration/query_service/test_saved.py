"""What callers save, on a real topic: by two services at once, without Kafka, and read again from its beginning."""

import asyncio

from query_api.service_health import readiness
from tests.integration.query_service.live_service import LiveService, serving, settings_for
from tests.support.waiting import eventually

PATH = "/v1/conversations"


async def test_two_services_write_into_one_conversation(live: LiveService, kafka: str, topic_prefix: str) -> None:
    token = await live.put("weir.md", "# Weir\n\nThe weir at Orsa was built in 1886.")
    await live.search("weir", after=token)
    async with serving(settings_for(kafka, topic_prefix, live.data_dir)) as (other, app):
        await eventually(lambda: readiness(app.state.service).ready)
        begun = (await live.http.post(PATH, json={"title": "Orsa"})).json()["id"]
        assert (await other.get(f"{PATH}/{begun}")).json()["title"] == "Orsa"  # at once
        asked = {"q": "When was the weir built?", "conversation": begun}
        answers = await asyncio.gather(*(http.post("/v1/answers", json=asked) for http in (live.http, other) * 3))
        assert {answer.status_code for answer in answers} == {200}
        await eventually(lambda: app.state.service.saved.reached == live.service.saved.reached)
        shown = [(await http.get(f"{PATH}/{begun}")).json() for http in (live.http, other)]
        assert shown[0] == shown[1]
        assert shown[0]["message_count"] == 12
        assert (await other.delete(f"{PATH}/{begun}")).status_code == 204
        await eventually(lambda: app.state.service.saved.reached == live.service.saved.reached)
        assert (await live.http.get(f"{PATH}/{begun}")).status_code == 404
        assert (await live.http.post("/v1/answers", json=asked)).status_code == 404


async def test_a_conversation_of_ten_thousand_messages(live: LiveService) -> None:
    saved, begun = live.service.saved, (await live.http.post(PATH, json={})).json()["id"]
    for first in range(0, 5_000, 500):
        turns = [f"r_{number}" for number in range(first, first + 500)]
        parts = {f"{turn}.q": {"text": f"Question of {turn}?"} for turn in turns}
        parts |= {f"{turn}.a": {"answer": {"text": "Nothing."}} for turn in turns}
        await saved.put_all("full", "conversation", begun, parts)
    refused = await live.http.post("/v1/answers", json={"q": "One more?", "conversation": begun})
    assert (refused.status_code, "takes no more" in refused.json()["detail"]) == (409, True)
    shown = (await live.http.get(f"{PATH}/{begun}", params={"limit": 1_000})).json()
    assert (shown["message_count"], len(shown["messages"]), shown["next_cursor"] is None) == (10_000, 1_000, False)
    assert (await live.http.delete(f"{PATH}/{begun}")).status_code == 204
    assert (saved.kept_bytes["full"], (await live.http.get(f"{PATH}/{begun}")).status_code) == (0, 404)


async def test_a_service_that_starts_reads_what_was_saved(live: LiveService, kafka: str, topic_prefix: str) -> None:
    begun = [(await live.http.post(PATH, json={"title": f"part {number}"})).json()["id"] for number in range(5)]
    await live.http.delete(f"{PATH}/{begun[0]}")
    await live.http.patch(f"{PATH}/{begun[1]}", json={"title": "first"})
    async with serving(settings_for(kafka, topic_prefix, live.data_dir)) as (later, _):
        listed = (await later.get(PATH)).json()["conversations"]
    assert [each["title"] for each in listed] == ["first", "part 4", "part 3", "part 2"]
