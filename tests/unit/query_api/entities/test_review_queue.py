"""Candidate pairs kept up to date, as entities come, change and go."""

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from indexer.errors import EncoderUnavailable
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


class OneMeaning:
    """An encoder to which all names mean the same, while it is there."""

    def __init__(self) -> None:
        self.is_there = True
        self.asked: list[str] = []

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not self.is_there:
            raise EncoderUnavailable("away")
        self.asked += texts
        return np.tile(np.array([1, 0], dtype=np.float32), (len(texts), 1))


async def test_names_are_compared_by_meaning_while_there_is_an_encoder() -> None:
    def catalogue(*names: str) -> NamedEntities:
        return NamedEntities(NamedEntity(name, "a", name, "product", 1) for name in names)

    encoder = OneMeaning()
    reviews = Reviews(lambda _: catalogue(), lambda: encoder)
    assert len((await reviews.candidates(catalogue("Postgres", "Pgsql"), "a")).pairs) == 1
    assert len((await reviews.candidates(catalogue("Postgres", "Pgsql", "Elephant"), "a")).pairs) == 3
    assert sorted(encoder.asked) == ["Elephant", "Pgsql", "Postgres"]
    encoder.is_there = False
    assert len((await reviews.candidates(catalogue("Postgres", "Pgsql", "Gazelle"), "a")).pairs) == 1
    await reviews.stop()
