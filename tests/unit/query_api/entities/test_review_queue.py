"""Candidate pairs kept up to date, as entities come, change and go."""

import asyncio

from indexer.resolution.candidates import NamedEntity
from query_api.entities.review_queue import Reviews
from tests.support.fakes.catalogue import NamedEntities


async def test_only_what_changed_is_looked_at_again() -> None:
    def catalogue(*names: str) -> NamedEntities:
        return NamedEntities(NamedEntity(name, "a", name, "person", 1) for name in names)

    reviews = Reviews(lambda _: catalogue())
    first = catalogue("Maria Okafor", "M. Okafor")
    pairs = (await reviews.candidates(first, "a")).pairs
    assert len(pairs) == 1
    found = await asyncio.gather(*(reviews.candidates(catalogue("Maria Okafor", "Peter Rey"), "a") for _ in range(3)))
    assert [len(each.pairs) for each in found] == [0, 0, 0]
    assert len((await reviews.candidates(catalogue("Maria Okafor", "Peter Rey", "P. Rey"), "a")).pairs) == 1
    await reviews.stop()
