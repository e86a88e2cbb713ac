"""Before their slice's turn texts are looked up, each once, and encoded group by group until the encoder is needed."""

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from streams.indexing import prefetch
from streams.indexing.prefetch import TEXTS_AT_ONCE, EncodedAhead, KnownVectors, Vector


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
    encoding = EncodedAhead(encoder.encode)
    await encoding.begin(TEXTS)
    await encoder.begun.wait()
    stopping = asyncio.create_task(encoding.stop())
    await asyncio.sleep(0)
    assert not stopping.done()
    encoder.let.set()
    await stopping
    assert [len(group) for group in encoder.asked] == [TEXTS_AT_ONCE]
    taken = encoding.take(TEXTS)
    assert list(taken) == list(TEXTS)[:TEXTS_AT_ONCE]
    assert encoding.take(TEXTS) == {}


async def test_what_nobody_took_is_forgotten_when_the_next_texts_begin(encoder: GatedEncoder) -> None:
    encoder.let.set()
    encoding = EncodedAhead(encoder.encode)
    await encoding.begin({"first": "one"})
    await encoder.begun.wait()
    await encoding.begin({"second": "two"})
    await encoding.stop()
    assert "first" not in encoding.take(["first", "second"])


async def test_a_failure_leaves_the_texts_to_their_own_turn(encoder: GatedEncoder) -> None:
    encoder.failure = RuntimeError("the process is ending")
    encoder.let.set()
    encoding = EncodedAhead(encoder.encode)
    await encoding.begin({"first": "one"})
    await encoder.begun.wait()
    await encoding.stop()
    assert encoding.take(["first"]) == {}


async def test_dropping_ends_what_is_under_way(encoder: GatedEncoder) -> None:
    encoding = EncodedAhead(encoder.encode)
    await encoding.begin(TEXTS)
    await encoder.begun.wait()
    encoding.drop()
    encoder.let.set()
    await encoding.stop()
    assert len(encoder.asked) == 1
    assert encoding.take(TEXTS) == {}


class CountedStore:
    """Stored vectors by hash; remembers what it was asked for."""

    def __init__(self, *stored: str) -> None:
        self.stored = {digest: vector(digest) for digest in stored}
        self.asked: list[list[str]] = []

    async def look_up(self, hashes: list[str]) -> dict[str, Vector]:
        self.asked.append(hashes)
        return {digest: self.stored[digest] for digest in hashes if digest in self.stored}


def vector(digest: str) -> Vector:
    return np.full(2, float(ord(digest)), dtype=np.float32)


async def test_what_was_looked_up_ahead_is_not_looked_up_again_whether_it_was_there_or_not() -> None:
    store = CountedStore("a")
    known = KnownVectors(store.look_up)
    await known.look_ahead(["a", "b"])
    assert list(await known.of(["a", "b"])) == ["a"]
    assert store.asked == [["a", "b"]]


async def test_what_nobody_foresaw_is_looked_up_in_its_turn() -> None:
    store = CountedStore("a", "c")
    known = KnownVectors(store.look_up)
    await known.look_ahead(["a", "b"])
    assert sorted(await known.of(["a", "b", "c", "d"])) == ["a", "c"]
    assert store.asked == [["a", "b"], ["c", "d"]]


async def test_texts_of_the_slice_before_have_vectors_though_the_store_did_not_know_them_yet() -> None:
    known = KnownVectors(CountedStore().look_up)
    await known.look_ahead(["a", "b"])
    known.made({"a": vector("a"), "b": ValueError("the model cannot take it")})
    assert list(await known.of(["a", "b"])) == ["a"]


async def test_vectors_are_kept_for_one_slice() -> None:
    store = CountedStore()
    known = KnownVectors(store.look_up)
    known.made({"a": vector("a")})
    known.made({"b": vector("b")})
    assert list(await known.of(["a", "b"])) == ["b"]
    assert store.asked == [["a"]]


async def test_what_was_looked_up_ahead_in_vain_is_forgotten() -> None:
    store = CountedStore()
    known = KnownVectors(store.look_up)
    await known.look_ahead(["a"])
    known.forget_ahead()
    store.stored["a"] = vector("a")
    assert list(await known.of(["a"])) == ["a"]


async def test_of_a_very_large_slice_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch, "MOST_KEPT", 2)
    store = CountedStore()
    known = KnownVectors(store.look_up)
    await known.look_ahead(["a", "b", "c"])
    await known.look_ahead(["d"])
    known.made({digest: vector(digest) for digest in "abc"})
    assert known.at_hand("a") is None
    assert await known.of(["d"]) == {}
    assert store.asked == [["d"], ["d"]]
