"""Texts in compressed blocks read as they were."""

import threading

import numpy as np
import pyarrow as pa
import pytest

from query_api.graph.arrays.texts import BLOCK, LEAST_COMPRESSED, Compressed, Plain, texts_of

GIVEN = ("anna", "émile", "", "李")
FAMILY = ("smith", "von neumann", "o'brien\n")
PLACES = ("rome", "new york", "the north", "x\x00y", "oslo", "bergen", "kyiv", "lima")
NAMES = [
    f"{given} {family} of {place} {n}" for n in range(90) for given in GIVEN for family in FAMILY for place in PLACES
]


def test_many_texts_are_compressed_and_read_one_by_one_or_together() -> None:
    texts = texts_of(pa.array(NAMES))
    assert isinstance(texts, Compressed)
    assert texts.nbytes < pa.array(NAMES).nbytes / 2
    rows = np.array([len(NAMES) - 1, 0, BLOCK, BLOCK - 1, 0])
    assert texts.of(rows) == texts.texts(rows).to_pylist() == [NAMES[row] for row in rows.tolist()]
    assert [texts[row] for row in range(len(texts))] == NAMES


@pytest.mark.parametrize("names", [NAMES[: LEAST_COMPRESSED - 1], [""] * LEAST_COMPRESSED, ["a"], []])
def test_few_texts_and_empty_ones_stay_as_they_are(names: list[str]) -> None:
    texts = texts_of(pa.array(names, pa.string()))
    assert isinstance(texts, Plain)
    assert texts.of(np.arange(len(names))) == texts.texts(np.arange(len(names))).to_pylist() == names


def test_several_threads_read_at_once() -> None:
    texts = texts_of(pa.array(NAMES))
    read: dict[int, list[str]] = {}

    def reading(begin: int) -> None:
        read[begin] = texts.of(np.arange(begin, len(NAMES), 4))

    threads = [threading.Thread(target=reading, args=(begin,)) for begin in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read == {begin: NAMES[begin::4] for begin in range(4)}
