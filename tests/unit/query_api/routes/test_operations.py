"""How the service is: probes, metrics, status, and the description of its interface."""

import time
from pathlib import Path

import pytest

from indexer.errors import EncoderUnavailable
from kafka_client.topic_lag import LagMonitor
from kafka_client.topic_offsets import Span
from query_api.dead_letters.letter_state import Letter, RecordVersion
from query_api.service_health import readiness
from schemas.ids import Position
from schemas.runtime import WorkerState, write_state
from tests.support.fakes.engine import ScriptedEngine, SearchingEngine, Words, make_generation
from tests.support.fakes.service import PAGES, Running, problem, service_over
from tests.support.waiting import eventually


async def test_the_service_is_alive_before_it_is_ready_and_says_what_is_missing(tmp_path: Path) -> None:
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False) as running:
        assert (await running.get("/livez")).text == "alive\n"
        await eventually(lambda: running.service.model.encoder is not None)
        await eventually(lambda: "start the worker" in (running.service.snapshots.problem or ""))
        response = await running.get("/readyz")
        assert response.status_code == 503
        assert "start the worker" in response.json()["reasons"][0]
        search = await running.get("/v1/search", q="river")
        assert problem(search)["title"] == "Not ready"
        assert search.headers["retry-after"]
        assert (await running.get("/v1/status")).json()["generation"] is None
        make_generation(tmp_path)
        await eventually(lambda: readiness(running.service).ready)
        assert (await running.get("/v1/search", q="river")).status_code == 200


async def test_a_model_that_is_not_the_indexes_own_is_told_and_not_searched_with(tmp_path: Path) -> None:
    make_generation(tmp_path, digest="another-model")
    async with service_over(tmp_path, ScriptedEngine(), until_ready=False) as running:
        await eventually(lambda: running.service.snapshots.current and running.service.model.encoder)
        assert "THALWEG_EMBEDDING__MODEL" in (await running.get("/readyz")).json()["reasons"][0]
        assert (await running.get("/v1/search", q="river")).status_code == 503
        assert (await running.get("/v1/search", q="river", mode="keyword")).status_code == 200


async def test_vectors_of_another_length_are_told_and_not_searched_with(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine(encoder=Words(dimension=16))
    async with service_over(tmp_path, engine, until_ready=False) as running:
        await eventually(lambda: running.service.snapshots.current and running.service.model.encoder)
        [reason] = (await running.get("/readyz")).json()["reasons"]
        assert "8 numbers each" in reason
        assert "THALWEG_EMBEDDING__DIMENSION" in reason


async def test_an_encoder_that_is_away_is_a_note_until_it_is_back(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine(encoder=Words(failure=EncoderUnavailable("The endpoint cannot be reached.")))
    async with service_over(tmp_path, engine, encoder_retry_seconds=0.01) as running:
        ready = (await running.get("/readyz")).json()
        assert ready["ready"]
        assert ready["notes"][0] == (
            "The endpoint cannot be reached. Searches continue by words and by the graph, without vectors."
        )
        assert (await running.get("/v1/search", q="river")).status_code == 200
        engine.encoder.failure = None
        await eventually(lambda: "endpoint" not in str(readiness(running.service).notes))


async def test_an_endpoint_that_must_first_be_asked_about_its_model_is_asked_again(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine(encoder_failure=EncoderUnavailable("The endpoint cannot be reached."))
    async with service_over(tmp_path, engine, until_ready=False, encoder_retry_seconds=0.01) as running:
        await eventually(lambda: "cannot be reached" in str(readiness(running.service).reasons))
        engine.encoder_failure = None
        await eventually(lambda: readiness(running.service).ready)


async def test_a_model_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine(encoder_failure=OSError("no such model"))
    async with service_over(tmp_path, engine, until_ready=False) as running:
        await eventually(lambda: "no such model" in str(readiness(running.service).reasons))


async def test_metrics_tell_positions_age_and_searches(running: Running) -> None:
    await running.get("/v1/search", q="river")
    text = (await running.get("/metrics")).text
    for line in (
        'thalweg_store_position{partition="0",store="lance",topic="thalweg.documents.v1"} 7.0',
        'thalweg_store_position{partition="0",store="graph_view",topic="thalweg.contributions.g0001.v1"} 3.0',
        'thalweg_search_seconds_count{mode="hybrid",stage="total"} 1.0',
        'thalweg_search_seconds_count{mode="hybrid",stage="vector"} 1.0',
        "thalweg_sse_clients 0.0",
        "thalweg_snapshot_age_seconds ",
        "thalweg_provenance_dropped_total 0.0",
        "thalweg_provenance_buffered 1.0",
        "thalweg_ready 1.0",
        "thalweg_worker_alive 0.0",
        'thalweg_searches_refused_total{reason="overloaded"} 0.0',
        "thalweg_memory_limit_bytes ",
    ):
        assert line in text


async def test_the_status_is_complete(running: Running) -> None:
    status = (await running.get("/v1/status")).json()
    assert status["generation"] == "g0001"
    assert status["positions"] == "0:7"
    assert status["graph_position"] == status["graph_base_position"] == 3
    assert status["counts"]["documents"] == 3
    assert status["counts"]["graph_documents"] == 3
    assert status["memory_bytes"] > 0
    assert status["lag_records"] is None


async def test_a_worker_that_is_in_trouble_and_dead_letters_are_notes_and_in_the_status(
    running: Running, tmp_path: Path
) -> None:
    state = WorkerState(at_ms=time.time_ns() // 1_000_000, phase="failed", last_failure="StoreFailure: torn")
    write_state(tmp_path, state)
    service = running.service
    followed = service.dead_letters
    followed.reasons, followed._is_asked = {"not_json": 3, "too_large": 1}, True
    for number, reason in enumerate(("not_json", "not_json", "too_large")):
        followed.table.take(Letter(Position(0, number), state.at_ms, reason, b"%d" % number, RecordVersion(0, number)))
    await eventually(lambda: service.worker_watch.status().state == "failed")
    readiness = await running.get("/readyz")
    assert readiness.status_code == 200
    ended, letters = readiness.json()["notes"][-2:]
    assert ended.startswith("The worker ended ")
    assert "StoreFailure: torn" in ended
    assert letters.startswith("3 records were refused within a day and are not indexed (Not JSON: 2, Too large: 1)")
    assert readiness.json()["dead_letters_note"] == letters
    assert readiness.json()["dead_letters_open_last_day"] == 3
    status = (await running.get("/v1/status")).json()
    assert (status["worker"]["state"], status["dead_letters_last_day"]) == ("failed", 4)
    assert (status["dead_letters_open"], status["dead_letters_open_by_reason"]) == (3, {"not_json": 2, "too_large": 1})
    assert status["disk_free_bytes"] > 0


async def test_lag_is_null_while_kafka_is_away(running: Running) -> None:
    documents = running.service.topics.documents
    watch = running.service.log_watch = LagMonitor(lambda: None, lambda: {documents: {}})
    watch.see(documents, {0: Span(0, 12)})
    status = (await running.get("/v1/status")).json()
    assert status["lag_records"] == 4
    assert (
        f'thalweg_ingest_lag_records{{partition="0",topic="{documents}"}} 4.0' in (await running.get("/metrics")).text
    )
    watch.problem = "Kafka does not answer"
    status = (await running.get("/v1/status")).json()
    assert status["readiness"]["kafka"] == "unreachable"
    assert status["lag_records"] is status["lag_seconds"] is None
    assert {lag["end"] for lag in status["lag"]} == {lag["records"] for lag in status["lag"]} == {None}
    metrics = (await running.get("/metrics")).text
    assert "\nthalweg_ingest_lag_records{" not in metrics
    assert "\nthalweg_ingest_lag_seconds{" not in metrics


async def test_a_service_that_is_too_far_behind_is_not_ready_and_goes_on_searching(tmp_path: Path) -> None:
    make_generation(tmp_path)
    engine = ScriptedEngine()
    engine.reader.put(*PAGES, p0=(7, -1))
    async with service_over(tmp_path, engine, max_lag_seconds=30) as running:
        now = [100.0]
        documents = running.service.topics.documents
        watch = running.service.log_watch = LagMonitor(lambda: None, lambda: {documents: {}}, lambda: now[0])
        watch.see(documents, {0: Span(0, 12)})
        now[0] += 29
        assert (await running.get("/readyz")).status_code == 200
        now[0] += 2
        response = await running.get("/readyz")
        assert response.status_code == 503
        [reason] = response.json()["reasons"]
        assert reason.startswith("4 records are not searchable yet, the oldest for 31 s, and THALWEG_SERVICE__MAX_LAG")
        assert (await running.get("/v1/search", q="river")).status_code == 200
        engine.reader.put(p0=(11, -1))
        await eventually(lambda: readiness(running.service).ready)
        watch.see(documents, {0: Span(0, 14)})
        now[0] += 31
        assert (await running.get("/readyz")).status_code == 503
        watch.problem = "Kafka does not answer"
        assert (await running.get("/readyz")).status_code == 200


async def test_the_description_of_the_interface_is_complete(running: Running) -> None:
    described = (await running.get("/openapi.json")).json()
    assert set(described["paths"]) == {
        "/v1/search", "/v1/answers", "/v1/research", "/v1/fact-checks",
        "/v1/ground-truth", "/v1/ground-truth/{question}",
        "/v1/dead-letters", "/v1/dead-letters/skip", "/v1/dead-letters/redrive",
        "/v1/dead-letters/redrive/{redrive_id}", "/v1/dead-letters/{position}", "/v1/documents",
        "/v1/documents/{document_id}", "/v1/formats", "/v1/chunks/{chunk_id}",
        "/v1/nodes/{node_id}", "/v1/graph", "/v1/retrievals", "/v1/retrievals/{retrieval_id}",
        "/v1/retrievals/{retrieval_id}/feedback", "/v1/analytics/popular-chunks", "/v1/analytics/chunks/{chunk_id}",
        "/v1/analytics/queries", "/v1/cache", "/livez", "/readyz", "/metrics", "/v1/session-tokens",
        "/v1/stream-tickets", "/v1/status", "/v1/collections/{collection}/linking",
        "/v1/collections/{collection}/relink",
        "/v1/collections/{collection}/relink/{order}", "/v1/collections", "/v1/collections/{collection}/chunking",
        "/v1/evaluations", "/v1/evaluations/{evaluation_id}", "/v1/generations", "/v1/generations/{name}",
        "/v1/generations/{name}/switch", "/v1/backups", "/v1/backups/{name}", "/v1/backups/{name}/verify",
        "/v1/replays", "/v1/replays/{id}", "/v1/entities", "/v1/entities/{entity_id}", "/v1/paths", "/v1/statements",
        "/v1/nodes", "/v1/edges", "/v1/edges/{edge_id}", "/v1/collections/{collection}/graph",
        "/v1/collections/{collection}/extraction", "/v1/collections/{collection}/fields",
        "/v1/collections/{collection}/fields/{field}/values",
        "/v1/communities", "/v1/communities/{community_id}", "/v1/entities/merge", "/v1/reviews",
        "/v1/reviews/{review_id}", "/v1/graph/export", "/v1/chat/completions", "/v1/responses", "/v1/models",
        "/v1/conversations", "/v1/conversations/{conversation}",
        "/v1/cards", "/v1/cards/{study_set}", "/v1/cards/{study_set}/results",
        "/v1/quizzes", "/v1/quizzes/{study_set}", "/v1/quizzes/{study_set}/results",
        "/v1/concept-maps", "/v1/concept-maps/{study_set}",
        "/v1/learning-paths", "/v1/learning-paths/{study_set}",
    }  # fmt: skip
    answer = described["paths"]["/v1/search"]["get"]["responses"]["200"]["content"]
    assert set(answer) >= {"application/json", "text/event-stream"}
    assert "event: hit" in answer["text/event-stream"]["example"]


@pytest.mark.parametrize("asked", [{"mode": "keyword"}, {"mode": "structured"}, {"channels": "keyword,structured"}])
async def test_searches_that_need_no_vector_are_answered_before_the_model_is_there(
    tmp_path: Path, asked: dict[str, str]
) -> None:
    make_generation(tmp_path)
    engine = SearchingEngine(encoder_failure=EncoderUnavailable("The endpoint cannot be reached."))
    engine.reader.put(*PAGES, p0=(7, 3))
    async with service_over(tmp_path, engine, until_ready=False, encoder_retry_seconds=0.01) as running:
        await eventually(lambda: running.service.snapshots.current is not None)
        answer = (await running.get("/v1/search", q="river", **asked)).json()
        assert answer["failed_channels"] == {}
        assert answer["hits"] or asked.get("mode") == "structured"
        for mode in ("hybrid", "vector", "graph"):
            refused = await running.get("/v1/search", q="river", mode=mode)
            assert (refused.status_code, bool(refused.headers["retry-after"])) == (503, True)
            assert "`mode=keyword`" in problem(refused)["detail"]
        assert not readiness(running.service).ready
