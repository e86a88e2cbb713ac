"""Pages, the cache, and use, on the whole installation: what was shown is recorded, rated, and counted."""

from typing import Any

import httpx

from tests.support.processes.installation import Installation
from tests.support.waiting import wait_until

QUESTION: dict[str, Any] = {"q": "the mill by the weir", "collection": "mills", "k": 2}


def write(thalweg: Installation, number: int) -> str:
    """A note about a mill; returns the write's token."""
    answer = httpx.put(
        f"{thalweg.url}/v1/documents/{number}.md",
        params={"collection": "mills"},
        content=f"# Mill {number}\n\nThe mill by the weir has number {number}.".encode(),
        headers={"content-type": "text/markdown"},
        timeout=30,
    )
    token: str = answer.json()["token"]
    return token


def test_feedback_through_the_log_is_counted(thalweg: Installation) -> None:
    thalweg.search(q="mill", after=write(thalweg, 20))
    first, second = (thalweg.search(**QUESTION) for _ in range(2))
    assert (first["cached"], second["cached"]) == (False, True)
    path = f"{thalweg.url}/v1/retrievals/{second['retrieval_id']}"
    for rating in ("unhelpful", "helpful"):
        given = httpx.post(f"{path}/feedback", json={"rank": 1, "rating": rating, "caller": "ada"}, timeout=30)
        assert given.status_code == 202
    wait_until(
        lambda: [said["rating"] for said in httpx.get(path).json()["feedback"]] == [1], "the later word counts", 30
    )
    chunk = second["hits"][0]["chunk_id"]
    used = f"{thalweg.url}/v1/analytics/chunks/{chunk}"
    wait_until(lambda: httpx.get(used).json()["count"] == 3, "all three retrievals are counted", 30)
    assert httpx.get(used).json()["feedback"] == {"helpful": 1, "unhelpful": 0, "mean_rating": 1.0}
    popular = thalweg.run_json("api", "GET", "/v1/analytics/popular-chunks", "--query", "collection=mills")
    assert chunk in [each["chunk_id"] for each in popular["chunks"]]
    listed = thalweg.run_json("api", "GET", "/v1/retrievals", "--query", "collection=mills")
    assert second["retrieval_id"] in [each["retrieval_id"] for each in listed["retrievals"]]
    thalweg.run("delete", "20.md", "--collection", "mills")
