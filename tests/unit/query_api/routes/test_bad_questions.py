"""Questions nobody should ask, and some that look so: each gets a right answer, or a 4xx with a sentence."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.query_api.routes.library import library
from tests.unit.query_api.running_service import Running, problem


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    async with library(tmp_path) as running:
        yield running


ALL = 7


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"k": 0}, (422, "`k`")),
        ({"k": -1}, (422, "`k`")),
        ({"k": 10**9}, (422, "`k`")),
        ({"k": 1.5}, (422, "`k`")),
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


async def test_a_collection_without_documents_is_empty_and_the_answer_says_that_it_may_be_misspelt(
    running: Running,
) -> None:
    for collection, noted in (("no-such", True), ("a", False)):
        answer = (await running.get("/v1/search", q="unheard", mode="keyword", collection=collection)).json()
        assert answer["hits"] == []
        assert ["No document is in the collection 'no-such'" in note for note in answer["notes"]] == [True] * noted


def _json(body: dict[str, Any]) -> bytes:
    """ASCII, so that half a surrogate pair can be sent too."""
    return json.dumps(body).encode()
