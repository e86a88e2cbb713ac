"""Texts encoded before their slice's turn: group by group, given up at once when the encoder is needed."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from streams.indexing.ahead import TEXTS_AT_ONCE, EncodedAhead, Vector


class GatedEncoder:
    """Encodes a group each time it is let; remembers the groups it was asked for."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.begun = asyncio.Event()
        self.let = asyncio.Event()
        self.failure: Exception | None = None

    async def encode(self, texts: Sequence[str]) -> Sequence[Vector | Exception]:
        self.asked.append(list(texts))
        self.begun.set()
        await self.let.wait()
        if self.failure is not None:
            raise self.failure
        return [np.full(2, len(text), dtype=np.float32) for text in texts]


TEXTS = {f"hash {number}": f"text {number}" for number in range(TEXTS_AT_ONCE + 5)}


@pytest.fixture
async def encoder() -> GatedEncoder:
    return GatedEncoder()


async def test_stopping_waits_for_the_group_under_way_and_begins_no_other(encoder: GatedEncoder) -> None:
    ahead = EncodedAhead(encoder.encode)
    await ahead.begin(TEXTS)
    await encoder.begun.wait()
    stopping = asyncio.create_task(ahead.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    encoder.let.set()
    await stopping
    assert [len(group) for group in encoder.asked] == [TEXTS_AT_ONCE]
    taken = ahead.take(TEXTS)
    assert list(taken) == list(TEXTS)[:TEXTS_AT_ONCE]
    assert ahead.take(TEXTS) == {}


async def test_what_nobody_took_is_forgotten_when_the_next_texts_begin(encoder: GatedEncoder) -> None:
    encoder.let.set()
    ahead = EncodedAhead(encoder.encode)
    await ahead.begin({"first": "one"})
    await encoder.begun.wait()
    await ahead.begin({"second": "two"})
    await ahead.stop()
    assert "first" not in ahead.take(["first", "second"])


async def test_a_failure_leaves_the_texts_to_their_own_turn(encoder: GatedEncoder) -> None:
    encoder.failure = RuntimeError("the process is ending")
    encoder.let.set()
    ahead = EncodedAhead(encoder.encode)
    await ahead.begin({"first": "one"})
    await encoder.begun.wait()
    await ahead.stop()
    assert ahead.take(["first"]) == {}


async def test_dropping_ends_what_is_under_way(encoder: GatedEncoder) -> None:
    ahead = EncodedAhead(encoder.encode)
    await ahead.begin(TEXTS)
    await encoder.begun.wait()
    ahead.drop()
    encoder.let.set()
    await ahead.stop()
    assert len(encoder.asked) == 1
    assert ahead.take(TEXTS) == {}
