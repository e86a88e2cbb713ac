"""A service with a small library, searched in earnest by its words, whose documents a test changes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.fakes.engine import SearchingEngine, make_generation
from tests.support.fakes.service import Running, service_over
from tests.support.fakes.text_stores import Page
from tests.support.waiting import eventually

KEY, READ_KEY = "the-key-for-everything", "the-key-that-only-reads"


def note(number: int, text: str = "The river is high.", collection: str = "a") -> Page:
    return Page(f"notes/{number:02}.md", f"Note {number}", [[text]], collection=collection)


@asynccontextmanager
async def library(data_dir: Path, notes: int = 7, **block: Any) -> AsyncIterator[Running]:
    """So many notes about the river."""
    make_generation(data_dir)
    engine = SearchingEngine()
    engine.reader.put(*(note(number) for number in range(notes)), p0=(7, -1))
    async with service_over(data_dir, engine, **block) as running:
        yield running


async def change(running: Running, *pages: Page, offset: int) -> None:
    """Documents change, and searches show it."""
    running.engine.reader.put(*pages, p0=(offset, -1))
    await eventually(
        lambda: (
            running.service.snapshots.current and running.service.snapshots.current.text.positions[0].offset == offset
        )
    )


async def found(running: Running, **params: Any) -> dict[str, Any]:
    response = await running.get("/v1/search", **({"q": "river", "mode": "keyword", "k": 3} | params))
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer
