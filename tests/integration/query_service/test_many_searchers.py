"""Several searchers at once: copies of the service take part, unseen, and no answer is older for it."""

import asyncio
from typing import Any

from tests.integration.query_service.live_service import EVENTS, LiveService, frames_of
from tests.support.waiting import eventually

SUBJECTS = ["gauge", "ferry", "lock", "weir", "bridge", "mill"]


async def crowd(live: LiveService, seconds: float = 30.0) -> None:
    """Searchers who ask until a copy of the process takes part."""
    async with asyncio.timeout(seconds):
        while not live.service.searches.workers:
            await asyncio.gather(*(live.search(f"the {each}", cache=False) for each in SUBJECTS))


async def together(live: LiveService) -> list[list[dict[str, Any]]]:
    """The hits of all questions, asked three times each at once."""
    answers = await asyncio.gather(*(live.search(f"the {each}", cache=False) for each in SUBJECTS * 3))
    return [answer["hits"] for answer in answers]


async def streamed(live: LiveService, question: str) -> list[dict[str, Any]]:
    async with live.http.stream(
        "GET", "/v1/search", params={"q": question, "cache": False}, headers=EVENTS
    ) as response:
        return [body async for name, _, body in frames_of(response) if name == "hit"]


async def test_answers_of_forked_processes_are_equal_and_never_older(live: LiveService) -> None:
    tokens = [await live.put(f"{each}.md", f"# {each.title()}\n\nThe {each} is by the river.") for each in SUBJECTS]
    alone = [(await live.search(f"the {each}", after=",".join(tokens), cache=False))["hits"] for each in SUBJECTS]
    await crowd(live)
    before = live.service.searches.forked

    assert await together(live) == alone * 3
    assert live.service.searches.forked > before
    assert await asyncio.gather(*(streamed(live, f"the {each}") for each in SUBJECTS)) == alone

    token = await live.put("gauge.md", "# Gauge\n\nThe gauge was washed away.")
    answers = await asyncio.gather(*(live.search("the gauge", after=token, cache=False) for _ in range(12)))
    assert {answer["hits"][0]["text"] for answer in answers} == {"The gauge was washed away."}

    await eventually(lambda: not live.service.searches.workers, 30)  # a snapshot that is gone is not kept for copies
