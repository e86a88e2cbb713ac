"""People's edits on a real log: searched, drawn, decided, and there again for a service that starts later."""

from typing import Any

from tests.integration.query_service.live_service import LiveService, serving, settings_for
from tests.support.waiting import eventually

RIVER = "# River\n\nIn Lisbon the gauge was read by Maria Okafor. The levels were checked by Maria Okafro."


async def accepted(live: LiveService, method: str, path: str, body: Any = None) -> dict[str, Any]:
    answer = await live.http.request(method, path, json=body)
    assert answer.status_code == 202, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def listed(live: LiveService, path: str, of: str, **params: Any) -> list[dict[str, Any]]:
    answer = await live.http.get(path, params=params)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()[of]
    return found


async def test_edits_are_there_for_a_service_that_starts_later(live: LiveService) -> None:
    token = await live.put("river.md", RIVER)
    await live.search("river", after=token, wait_seconds=10)
    await accepted(live, "POST", "/v1/nodes", {"id": "petrel", "label": "Team Petrel"})
    edge = {"id": "e1", "source": "petrel", "target": "river.md", "predicate": "measures"}
    last = await accepted(live, "POST", "/v1/edges", edge)
    settings = settings_for(live.kafka, live.service.settings.kafka.topic_prefix, live.data_dir)
    async with serving(settings) as (http, app):
        await eventually(lambda: app.state.service.snapshots.current is not None)
        later = LiveService(http, app, live.names, live.kafka, live.data_dir)
        await later.search("river", after=token, wait_seconds=10)
        (found,) = await listed(later, "/v1/edges", "edges", after=last["token"])
        assert (found["target"], found["missing"]) == ("default/river.md", [])
        graph = (await http.get("/v1/graph", params={"node": "petrel"})).json()
        assert [each["label"] for each in graph["edges"] if each["kind"] == "hand_made"] == ["measures"]
