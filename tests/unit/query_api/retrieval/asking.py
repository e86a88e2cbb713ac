"""A small world of documents, and a search of it whose parts are gathered."""

from collections.abc import AsyncIterator
from concurrent.futures import Executor
from typing import Any

from query_api.index.search_snapshot import Snapshot
from query_api.retrieval.pipeline import search
from query_api.retrieval.search_context import SearchSettings
from schemas.frames import Done, Stage
from schemas.hits import Hit
from schemas.search import SearchRequest
from tests.support.fakes.text_stores import PATIENT, InMemoryText, Page, WordCounts

PAGES = [
    Page(
        "alpha",
        "Alpha Film",
        [["Alpha Film is a film of 1950.", "It was directed by Jane Doe, who also wrote it."]],
        ["Jane Doe", "Alpha Film"],
    ),
    Page(
        "jane",
        "Jane Doe",
        [["Jane Doe was a painter before she made pictures.", "She was born in Lisbon."]],
        ["Jane Doe", "Lisbon"],
    ),
    Page("lisbon", "Lisbon", [["Lisbon lies on the river Tagus."]], ["Lisbon", "Tagus"]),
    Page("beta", "Beta Film", [["Beta Film is a film of 1951 about trains."]], ["Beta Film"]),
    Page("secret", "Jane Doe", [["Jane Doe of another collection keeps bees."]], ["Jane Doe"], collection="private"),
]
QUESTION = "Where was the director of Alpha Film born?"
SIDE_BY_SIDE = [
    Page("one", "Railways", [["A film about trains."]]),
    Page("two", "Harbours", [["A film about ships."]]),
]


class Answer:
    """The parts of one search."""

    def __init__(self) -> None:
        self.parts: list[Any] = []

    async def filled(self, parts: AsyncIterator[Any]) -> "Answer":
        self.parts = [part async for part in parts]
        return self

    @property
    def hits(self) -> list[Hit]:
        return [part for part in self.parts if isinstance(part, Hit)]

    @property
    def stages(self) -> dict[str, Stage]:
        return {part.name: part for part in self.parts if isinstance(part, Stage)}

    @property
    def done(self) -> Done:
        assert isinstance(self.parts[-1], Done)
        return self.parts[-1]

    @property
    def titles(self) -> list[str]:
        return [hit.title for hit in self.hits]


async def ask(
    made: tuple[Snapshot, InMemoryText, WordCounts],
    executor: Executor,
    q: str = QUESTION,
    settings: SearchSettings | None = None,
    **request: Any,
) -> Answer:
    snapshot, _, encoder = made
    parts = search(
        SearchRequest(q=q, **request), "r1", snapshot, encoder, executor, settings or SearchSettings(budgets=PATIENT)
    )
    return await Answer().filled(parts)
