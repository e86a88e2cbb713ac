"""Waiting for a condition, with a deadline: what tests do instead of sleeping."""

import asyncio
import time
from collections.abc import Callable

Condition = Callable[[], object]


def wait_until(condition: Condition, what: str | Callable[[], str], seconds: float = 60.0) -> None:
    """Look again until it holds, or fail with `what` did not come. Blocks: for conditions outside this process."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds:.0f} s: {what if isinstance(what, str) else what()}")
        time.sleep(0.05)


async def eventually(condition: Condition, seconds: float = 20.0) -> None:
    """Look again until it holds, or raise TimeoutError. For conditions that work on this event loop brings about."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 -- any condition, not only those that set an event
            await asyncio.sleep(0.001)
