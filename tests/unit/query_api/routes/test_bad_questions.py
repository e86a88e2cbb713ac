"""Questions nobody should ask, and some that look so: each gets a right answer, or a 4xx with a sentence."""

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.fakes.service import Running, problem
from tests.unit.query_api.routes.library import library


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with library(tmp_path) as running:
        yield running


ALL = 7
NO_WEIGHTS = {"vector_weight": 0, "keyword_weight": 0, "graph_weight": 0}


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"k": 0}, (422, "`k`")),
        ({"k": -1}, (422, "`k`")),
        ({"k": 10**9}, (422, "`k`")),
        ({"k": 1.5}, (422, "`k`")),
        ({"k": True}, (422, "`k`: give a number; true is none")),
        ({"k": "10"}, ALL),
        ({"wait_seconds": False}, (422, "`wait_seconds`: give a number; false is none")),
        ({"graph_weight": True}, (422, "`graph_weight`: give a number; true is none")),
        ({"k": "9" * 5_000}, (422, "`k`")),
        ({"offset": -1}, (422, "`offset`")),
        ({"offset": 10**9}, (422, "`offset`")),
        ({"q": ""}, (422, "`q`")),
        ({"q": " \t\n"}, (422, "`q`")),
        ({"q": "river " * 17_000}, (422, "`q`")),
        ({"q": ["river"]}, (422, "`q`")),
        ({"q": "\ud800 river"}, (422, "`q`")),
        ({"collection": "x" * 129}, (422, "`collection`")),
        ({"mode": "HYBRID"}, (422, "`mode`")),
        ({"channels": "vector,smell"}, (422, "`channels")),
        ({"channels": [1]}, (422, "`channels")),
        ({"channels": ""}, (422, "`channels")),
        ({"channels": " keyword , structured ", "mode": "hybrid"}, ALL),
        ({"channels": ["keyword,structured", "graph"], "mode": "hybrid"}, ALL),
        ({"channels": [], "mode": "keyword"}, ALL),
        ({"fusion": "magic"}, (422, "`fusion`")),
        ({"vector_weight": float("nan")}, (422, "`vector_weight`")),
        ({"keyword_weight": -0.1}, (422, "`keyword_weight`")),
        ({"graph_weight": float("inf")}, (422, "`graph_weight`")),
        ({"graph_weight": 1_001}, (422, "`graph_weight`")),
        (NO_WEIGHTS | {"fusion": "weighted"}, (422, "All weights are 0; give at least one channel a weight above 0.")),
        (NO_WEIGHTS | {"fusion": "adaptive"}, (422, "All weights are 0; give at least one channel a weight above 0.")),
        ({"vector_weight": 0, "keyword_weight": 0, "fusion": "weighted"}, ALL),
        ({"offset": 7}, 0),
        ({"offset": 10_000}, 0),
        ({"k": 1_000}, ALL),
        ({"q": "river\x00"}, ALL),
        ({"q": "\x00\x01"}, 0),
        ({"q": "?!… — (,)"}, 0),
        ({"q": "🦉🛶"}, 0),
        ({"q": "🛶 river"}, ALL),
        ({"q": "نهر"}, 0),
        ({"q": "\u202eriver\u202c"}, ALL),
        ({"q": "notes/03.md"}, ALL),
        ({"q": "xyz/03.md"}, 0),
        ({"q": "river' OR 1=1 --"}, ALL),
        ({"q": "river AND NOT (high*"}, ALL),
        ({"collection": "no-such"}, 0),
        ({"collection": "a' OR '1'='1"}, 0),
        ({"collection": "a\x00"}, 0),
        ({"collection": ""}, 0),
    ],
    ids=lambda value: repr(value)[:40],
)
async def test_a_question_is_answered_or_refused_with_a_sentence(
    running: Running, params: dict[str, Any], expected: int | tuple[int, str]
) -> None:
    body = {"q": "river", "mode": "keyword", "k": 10} | params
    response = await running.http.post("/v1/search", content=_json(body), headers={"Content-Type": "application/json"})
    if isinstance(expected, tuple):
        told = problem(response)
        assert told["status"] == expected[0]
        assert expected[1] in told["detail"]
        assert len(told["detail"]) < 500
    else:
        assert response.status_code == 200
        assert len(response.json()["hits"]) == expected
        assert response.json()["next_offset"] is None


@pytest.mark.parametrize(
    ("query", "stages"),
    [
        ("channels=keyword,structured", {"keyword", "structured"}),
        ("channels=keyword&channels=structured", {"keyword", "structured"}),
        ("channels=keyword,structured&channels=structured", {"keyword", "structured"}),
        ("channels=keyword&keyword_weight=0.5&fusion=weighted", {"keyword"}),
    ],
)
async def test_channels_stand_with_commas_or_one_by_one(running: Running, query: str, stages: set[str]) -> None:
    answer = (await running.http.get(f"/v1/search?q=river&{query}")).json()
    assert len(answer["hits"]) == ALL
    assert set(answer["timings"]) - {"compare", "texts", "total"} == stages


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("channels=keyword,,structured", "`channels"),
        ("channels=keyword&channels=smell", "`channels"),
        ("vector_weight=nan", "`vector_weight`"),
        ("vector_weight=-1", "`vector_weight`"),
        ("vector_weight=much", "`vector_weight`"),
        ("fusion=weighted&vector_weight=0&keyword_weight=0&graph_weight=0", "All weights are 0; give at least one"),
    ],
)
async def test_channels_and_weights_of_a_url_are_refused_with_a_sentence(
    running: Running, query: str, told: str
) -> None:
    refused = problem(await running.http.get(f"/v1/search?q=river&{query}"))
    assert refused["status"] == 422
    assert told in refused["detail"]


async def test_what_is_wrong_with_a_request_as_a_whole_is_blamed_on_no_parameter(running: Running) -> None:
    weights = "fusion=weighted&vector_weight=0&keyword_weight=0&graph_weight=0"
    refused = problem(await running.http.get(f"/v1/search?q=river&{weights}"))
    assert refused["detail"] == "All weights are 0; give at least one channel a weight above 0."


async def test_a_collection_without_documents_is_empty_and_the_answer_says_that_it_may_be_misspelt(
    running: Running,
) -> None:
    for collection, noted in (("no-such", True), ("a", False)):
        answer = (await running.get("/v1/search", q="unheard", mode="keyword", collection=collection)).json()
        assert answer["hits"] == []
        assert ["No document is in the collection 'no-such'" in note for note in answer["notes"]] == [True] * noted


async def test_names_that_the_graph_does_not_know_are_noted(running: Running) -> None:
    for names, noted in ((["Atlantis", "Mu"], "'Atlantis', 'Mu'"), ([""], None), (None, None)):
        body = {"q": "river", "names": names, "channels": "keyword,graph"}
        answer = (await running.http.post("/v1/search", json=body)).json()
        assert answer["hits"]
        assert [noted in note for note in answer["notes"]] == ([True] if noted else [])


async def test_a_floor_of_confidence_that_nothing_reaches_says_so_and_how_near_the_best_came(running: Running) -> None:
    asked = {"q": "river", "mode": "keyword", "min_confidence": 1}
    for cached in (False, True):
        answer = (await running.get("/v1/search", **asked)).json()
        assert (answer["hits"], answer["cached"]) == ([], cached)
        best = answer["best_confidence"]
        assert 0 < best < 1
        [note] = answer["notes"]
        assert note.startswith("Nothing is at least 100 % likely to be relevant; the best was ")
        assert float(note.split()[-2]) == pytest.approx(100 * best, abs=0.1)
    events = await running.http.get("/v1/search", params=asked, headers={"Accept": "text/event-stream"})
    done = json.loads(events.text.split("event: done")[1].split("data: ")[1].splitlines()[0])
    assert (done["best_confidence"], done["notes"]) == (best, [note])
    low = (await running.get("/v1/search", **asked | {"min_confidence": 0})).json()
    assert (len(low["hits"]), low["best_confidence"], low["notes"]) == (ALL, best, [])
    assert (await running.get("/v1/search", q="river", mode="keyword")).json()["best_confidence"] is None


async def test_a_floor_of_confidence_where_none_is_known_says_that_it_left_nothing_out(running: Running) -> None:
    running.engine.calibration = None
    answer = (await running.get("/v1/search", q="river", mode="keyword", min_confidence=0.5)).json()
    assert len(answer["hits"]) == ALL
    assert {hit["confidence"] for hit in answer["hits"]} == {None}
    [note] = answer["notes"]
    assert "`min_confidence` left none out" in note
    assert (await running.get("/v1/search", q="river", mode="keyword")).json()["notes"] == []


def _json(body: dict[str, Any]) -> bytes:
    """ASCII, so that half a surrogate pair can be sent too."""
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    "path",
    [
        "/v1/documents", "/v1/documents/ada", "/v1/documents/ada/status", "/v1/formats", "/v1/chunks/x", "/v1/nodes/x",
        "/v1/graph?node=x", "/v1/collections", "/v1/collections/a/linking", "/v1/collections/a/chunking",
        "/v1/collections/a/extraction",
        "/v1/dead-letters", "/v1/dead-letters/0:1", "/v1/retrievals", "/v1/retrievals/r_1", "/v1/analytics/queries",
        "/v1/analytics/popular-chunks", "/v1/analytics/chunks/x", "/v1/cache", "/v1/status", "/v1/evaluations",
        "/v1/evaluations/e_1", "/v1/search?q=x",
    ],
)  # fmt: skip
async def test_every_read_refuses_a_parameter_that_it_does_not_know(running: Running, path: str) -> None:
    asked = f"{path}{'&' if '?' in path else '?'}colection=a"
    told = problem(await running.http.get(asked))
    assert (told["status"], told["detail"]) == (
        422,
        f"There is no parameter 'colection'; /docs lists those of {path.partition('?')[0]}.",
    )


async def test_probes_may_be_asked_with_anything(running: Running) -> None:
    for path in ("/livez", "/readyz", "/metrics"):
        assert (await running.get(path, now=1)).status_code == 200


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"[" * 1_500, "The body is nested too deeply to be read: send fewer levels."),
        (b'{"q": "\xff"}', "The body cannot be read as UTF-8, which JSON is in: send that."),
    ],
)
async def test_a_body_that_cannot_be_read_at_all_is_refused_with_what_to_do(
    running: Running, body: bytes, says: str
) -> None:
    answer = await running.http.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert (problem(answer)["status"], problem(answer)["detail"]) == (400, says)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"q": "x", "filter": [' + b",".join([b"{}"] * 80_000) + b"]}", 413),
        (b'{"q": "x", "edges": [' + b",".join([b"1"] * 1_900) + b"]}", 422),
        (b"{" + b",".join(b'"a%d": 0' % number for number in range(1_900)) + b"}", 422),
        (b"[" * 200_000, 413),
        (b'{"q": "x", "channels": "' + b"," * 200_000 + b'"}', 422),
    ],
    ids=["objects", "wrong members", "unknown fields", "nested", "commas"],
)
async def test_a_body_of_very_many_mistakes_is_refused_shortly(running: Running, body: bytes, status: int) -> None:
    before = time.process_time()
    answer = await running.http.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert problem(answer)["status"] == status
    assert len(answer.content) < 2_500
    assert time.process_time() - before < 2  # it took some 100 times that of the smallest
