"""The log as the service sees it: its end, its partitions, its topics, and its absence."""

import asyncio
from pathlib import Path

from query_api.service_health import readiness
from schemas.topics import TopicNames, topic_specs
from streams.kafka.topics import ensure_topics
from tests.integration.query_service.live_service import LiveService, live_service, serving, settings_for
from tests.support.kafka import plaintext
from tests.support.waiting import eventually

IMPATIENT = {"query_api.service_context.WRITE_SECONDS": 1, "query_api.service_context.FLUSH_SECONDS": 0}


async def test_linking_choice_changes_searches_until_it_is_reset(live: LiveService) -> None:
    await live.put("weirs.md", "# Weirs\n\nWho built the old weir of stone beside the mill on the river?")
    token = await live.put("dams.md", "# Dams\n\nThe old weir of stone beside the mill on the river.")
    await live.search("weir", after=token)

    async def steps() -> set[str]:
        answer = await live.search("Who built the weir?", mode="graph", graph_method="expansion", edges="similar_to")
        return {step["edge"] for hit in answer["hits"] for step in hit["path"]}

    async def eventually_steps(edges: set[str]) -> None:
        found: set[str] = set()
        async with asyncio.timeout(20):
            while found != edges:
                found = await steps()

    await eventually_steps({"matches"})
    choice = {"max_across": 3, "similar_above": 0.2}
    assert (await live.http.put("/v1/collections/default/linking", json=choice)).status_code == 202
    await eventually_steps({"matches", "similar_text"})
    assert (await live.http.delete("/v1/collections/default/linking")).status_code == 202
    await eventually_steps({"matches"})


async def test_a_token_of_a_partition_that_is_not_there_is_refused(live: LiveService) -> None:
    await eventually(lambda: live.service.log_watch.partition_count(live.names.documents) == 2)
    response = await live.http.get("/v1/search", params={"q": "x", "after": "7:1"})
    assert response.status_code == 400
    assert "0 to 1" in response.json()["detail"]


async def test_service_started_later_catches_up_from_tables_and_topic(
    live: LiveService, kafka: str, topic_prefix: str
) -> None:
    token = ",".join(
        [await live.put(f"{number}.md", f"# Pier {number}\n\nBeacon {number} stands there.") for number in range(5)]
    )
    await live.search("beacon", after=token)
    await live.http.post("/v1/nodes", json={"id": "petrel", "label": "Team Petrel"})
    edge = {"id": "e1", "source": "petrel", "target": "0.md", "predicate": "measures"}
    last = (await live.http.post("/v1/edges", json=edge)).json()["token"]
    settings = settings_for(kafka, topic_prefix, live.data_dir)
    async with serving(settings) as (http, app):
        later = LiveService(http, app, live.names, kafka, live.data_dir)
        await eventually(lambda: readiness(later.service).ready)
        answer = await later.search("beacon", after=f"{token},{last}", k=5)
        assert len(answer["hits"]) == 5
        assert answer["snapshot"]["graph_position"] == 13
        (found,) = (await http.get("/v1/edges", params={"after": last})).json()["edges"]
        assert (found["target"], found["missing"]) == ("default/0.md", [])
        graph = (await http.get("/v1/graph", params={"node": "petrel"})).json()
        assert [each["label"] for each in graph["edges"] if each["kind"] == "hand_made"] == ["measures"]


async def test_searches_go_on_without_kafka_and_writes_say_so(kafka: str, topic_prefix: str, tmp_path: Path) -> None:
    async with live_service(kafka, topic_prefix, tmp_path) as live:
        token = await live.put("a.md", "# Quay\n\nThe quay is empty.")
        await live.search("quay", after=token)
    nowhere = settings_for("127.0.0.1:1", topic_prefix, tmp_path)
    async with serving(nowhere, IMPATIENT) as (http, app):
        live = LiveService(http, app, TopicNames(topic_prefix), kafka, tmp_path)
        await eventually(lambda: readiness(live.service).ready)
        assert (await live.search("quay", mode="keyword"))["hits"][0]["document_id"] == "a.md"
        response = await http.put("/v1/documents/b.md", content="x", headers={"Content-Type": "text/plain"})
        assert response.status_code == 503
        assert (await http.get("/readyz")).json()["kafka"] == "unreachable"
        assert live.service.provenance.dropped == 0
        assert len(live.service.provenance) == 1


async def test_missing_topics_are_reported_until_they_are_created(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    settings = settings_for(kafka, topic_prefix, tmp_path)
    async with serving(settings, IMPATIENT) as (http, app):
        live = LiveService(http, app, TopicNames(topic_prefix), kafka, tmp_path)
        await eventually(lambda: live.service.log_watch.reachable)
        assert "thalweg topics --create" in str((await http.get("/readyz")).json()["notes"])
        response = await http.put("/v1/documents/a", content="x", headers={"Content-Type": "text/plain"})
        assert response.status_code == 503
        await ensure_topics(plaintext(kafka), topic_specs(settings.kafka))
        await eventually(lambda: live.service.log_watch.missing is None)
        await eventually(lambda: live.service.snapshots.receipts_tail.problem is None)
        assert await live.put("a", "x")
