"""`/v1/analytics`: counted over what was recorded."""

from tests.support.fakes.service import PAGES, Running, problem
from tests.support.fakes.usage import made_feedback, made_retrieval

RIVER, MEASURED, FELL = (chunk for chunk, _, _ in PAGES[0].chunks())


async def test_popular_chunks_are_those_still_there_with_their_mean_rank_and_feedback(running: Running) -> None:
    usage = running.engine.reader.usage
    usage.retrievals += [
        made_retrieval(chunk_ids=[MEASURED, RIVER, "gone"], at_ms=1_000),
        made_retrieval(chunk_ids=["gone", RIVER], at_ms=2_000),
        made_retrieval(chunk_ids=[RIVER], at_ms=3_000, first_rank=4),
    ]
    usage.feedback += [
        made_feedback(usage.retrievals[0], RIVER, rating, caller) for rating, caller in ((1, "a"), (-1, "b"))
    ]
    told = (await running.get("/v1/analytics/popular-chunks")).json()
    assert [(each["chunk_id"], each["count"], each["mean_rank"]) for each in told["chunks"]] == [
        (RIVER, 3, 2.6667),
        (MEASURED, 1, 1.0),
    ]
    first = told["chunks"][0]
    assert (first["title"], first["document_id"], first["text"]) == ("River", "notes/river.md", "The river is high.")
    assert first["feedback"] == {"helpful": 1, "unhelpful": 1, "mean_rating": 0.0}
    assert first["last_seen"] == "1970-01-01T00:00:03+00:00"
    assert (await running.get("/v1/analytics/popular-chunks", collection="b")).json()["chunks"] == []
    assert len((await running.get("/v1/analytics/popular-chunks", limit=1)).json()["chunks"]) == 1
    assert (await running.get("/v1/analytics/popular-chunks", since="1h")).json()["chunks"] == []


async def test_a_chunk_tells_how_it_was_used_also_when_it_is_gone(running: Running) -> None:
    usage = running.engine.reader.usage
    usage.retrievals.append(made_retrieval(chunk_ids=["gone", RIVER], at_ms=1_000))
    usage.feedback.append(made_feedback(usage.retrievals[0], RIVER, 0.5, "ada"))
    told = (await running.get(f"/v1/analytics/chunks/{RIVER}")).json()
    assert (told["count"], told["mean_rank"], told["live"]) == (1, 2.0, True)
    assert told["latest_feedback"][0]["caller"] == "ada"
    gone = (await running.get("/v1/analytics/chunks/gone")).json()
    assert (gone["count"], gone["live"]) == (1, False)
    unused = (await running.get(f"/v1/analytics/chunks/{FELL}")).json()
    assert (unused["count"], unused["mean_rank"], unused["last_seen"], unused["live"]) == (0, None, None, True)
    assert problem(await running.get("/v1/analytics/chunks/x' OR 1=1"))["status"] == 404


async def test_what_is_not_counted_is_in_no_analytics_and_still_listed(running: Running) -> None:
    running.engine.reader.usage.retrievals += [
        made_retrieval("evaluated", [RIVER], 1_000, counted=False),
        made_retrieval("asked", [MEASURED], 2_000),
    ]
    told = (await running.get("/v1/analytics/queries")).json()
    assert (told["searches"], [each["query"] for each in told["frequent"]]) == (1, ["asked"])
    popular = (await running.get("/v1/analytics/popular-chunks")).json()["chunks"]
    assert [each["chunk_id"] for each in popular] == [MEASURED]
    assert (await running.get(f"/v1/analytics/chunks/{RIVER}")).json()["count"] == 0
    listed = (await running.get("/v1/retrievals")).json()["retrievals"]
    assert [(each["query"], each["counted"]) for each in listed] == [("asked", True), ("evaluated", False)]
    of_users = (await running.get("/v1/retrievals", counted=True)).json()["retrievals"]
    assert [each["query"] for each in of_users] == ["asked"]


async def test_queries_tell_what_is_asked_in_vain_and_how_long_it_takes(running: Running) -> None:
    usage = running.engine.reader.usage
    usage.retrievals += [
        made_retrieval("The river", ["c"], 1_000, seconds=0.1),
        made_retrieval("the  RIVER", ["c"], 2_000, seconds=0.3, cached=True),
        made_retrieval("the sea", at_ms=3_000, seconds=0.2),
        made_retrieval("the sea", at_ms=4_000, first_rank=11),
        made_retrieval("the sky", at_ms=5_000, outcome="failed"),
        made_retrieval("the moon", ["c"], 6_000, mode="vector", seconds=0.4, collection="b"),
    ]
    told = (await running.get("/v1/analytics/queries")).json()
    assert (told["searches"], told["without_hits"], told["failed"], told["cached"]) == (6, 1, 1, 1)
    assert [(each["query"], each["count"]) for each in told["frequent"]][:2] == [("the  RIVER", 2), ("the sea", 2)]
    assert [(each["query"], each["count"]) for each in told["frequent_without_hits"]] == [("the sea", 1)]
    assert (told["unlikely"], told["frequent_unlikely"]) == (0, [])
    assert told["latency"]["hybrid"]["searches"] == 3
    assert abs(told["latency"]["hybrid"]["p99"] - 0.2) < 0.003
    only = (await running.get("/v1/analytics/queries", collection="b")).json()
    assert list(only["latency"]) == ["vector"]
    assert problem(await running.get("/v1/analytics/queries", since="soon"))["status"] == 422


async def test_queries_tell_what_finds_unlikely_hits_alone(running: Running) -> None:
    usage = running.engine.reader.usage
    usage.retrievals += [
        made_retrieval("zqxv plover", ["c", "d"], 1_000, confidence=0.1),
        made_retrieval("Zqxv  Plover", ["c", "d"], 2_000, confidence=0.11),
        made_retrieval("zqxv plover", ["c", "d"], 3_000, confidence=0.1, first_rank=11),
        made_retrieval("the river", ["c"], 4_000, confidence=0.12),
    ]
    told = (await running.get("/v1/analytics/queries")).json()
    assert (told["searches"], told["without_hits"], told["unlikely"]) == (4, 0, 2)
    assert [(each["query"], each["unlikely"]) for each in told["frequent_unlikely"]] == [("Zqxv  Plover", 2)]
