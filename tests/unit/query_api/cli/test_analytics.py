"""`thalweg retrievals` and `thalweg analytics`: what a person sees of what the service tells."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from query_api.cli import analytics, app
from schemas.errors import Exit

SUMMARY = {
    "retrieval_id": "r_1", "at": "2026-11-22T04:00:00+00:00", "query": "Who wrote [it]?", "collection": None,
    "mode": "hybrid", "hits": 3, "seconds": 0.017, "outcome": "cancelled", "cached": True,
}  # fmt: skip
HIT = {
    "rank": 1, "chunk_id": "c1", "passage_id": "p1", "document_id": "[b]river.md", "collection": "a", "score": 0.75,
    "confidence": 0.83,
    "scores": {"vector": 0.5, "graph": 0.25}, "ranks": {"vector": 2}, "path": [], "source": {},
}  # fmt: skip
DETAIL = {
    **SUMMARY, "at_ms": 1, "parameters": {"k": 10}, "snapshot": {"positions": "0:7", "generation": "g0001"},
    "hits": [HIT], "stages": {}, "failed_channels": {"vector": "no answer within 2 s"}, "traceparent": None,
    "feedback": [
        {"retrieval_id": "r_1", "chunk_id": "c1", "rating": -1.0, "comment": "Too old.", "caller": "ada", "at": "now"}
    ],
}  # fmt: skip
POPULAR = {
    "since": None, "approximate": False,
    "chunks": [{
        "chunk_id": "c1", "count": 12, "mean_rank": 1.5, "last_seen": "now", "document_id": "river.md",
        "collection": "a", "title": "River", "text": "The river is high.",
        "feedback": {"helpful": 2, "unhelpful": 1, "mean_rating": 0.3},
    }],
}  # fmt: skip


class UsageClient:
    """A service that knows one retrieval."""

    def __init__(self) -> None:
        self.asked: tuple[str, Any] = ("", None)

    def get(self, path: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        self.asked = (path, params)
        if path == "/v1/retrievals":
            return {"retrievals": [SUMMARY], "next_cursor": "abc"}
        return POPULAR if path.startswith("/v1/analytics") else DETAIL

    def close(self) -> None:
        return


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> UsageClient:
    made = UsageClient()
    monkeypatch.setattr(app, "service_client", lambda url, data_dir: made)
    return made


def shown(*arguments: str) -> str:
    result = CliRunner().invoke(analytics.app, list(arguments))
    assert result.exit_code == Exit.OK, result.output
    return result.output


def test_retrievals_are_listed_and_shown(client: UsageClient) -> None:
    listed = shown("retrievals", "list", "--since", "2h", "--collection", "a", "--limit", "1")
    assert client.asked == ("/v1/retrievals", {"since": "2h", "collection": "a", "limit": 1})
    for word in (
        "2026-11-22T04:00:00Z",
        "r_1",
        "17 ms",
        "3 hits",
        "Who wrote [it]?",
        "cached",
        "cancelled",
        "--cursor abc",
    ):
        assert word in listed
    one = shown("retrievals", "show", "r_1/x")
    assert client.asked[0] == "/v1/retrievals/r_1%2Fx"
    for word in (
        "0:7 (g0001)",
        "a/[b]river.md",
        "83% sure",
        "vector 0.5 (rank 2)",
        "graph 0.25",
        "within 2 s",
        "-1 by ada",
        "Too old.",
    ):
        assert word in one


def test_popular_chunks_are_listed(client: UsageClient) -> None:
    listed = shown("analytics", "popular", "--limit", "5")
    assert client.asked == ("/v1/analytics/popular-chunks", {"limit": 5})
    assert all(word in listed for word in ("12", "River", "mean rank 1.5", "2 helpful, 1 not", "The river is high."))


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (("retrievals", "list", "--limit", "1"), {"retrievals": [SUMMARY], "next_cursor": "abc"}),
        (("retrievals", "show", "r_1"), DETAIL),
        (("analytics", "popular"), POPULAR),
    ],
)
def test_json_is_the_services_answer(client: UsageClient, arguments: tuple[str, ...], answer: dict[str, Any]) -> None:
    assert json.loads(shown(*arguments, "--json")) == answer
