"""The computing thread, and texts the model cannot take."""

from collections.abc import Iterator

import numpy as np
import pytest

from indexer.embedding.hashing import HashingEncoder
from tests.unit.streams.worker_doubles import Bench


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


async def test_each_text_gets_its_vector_in_order(bench: Bench) -> None:
    vectors = await bench.encoding.encode(["one", "two", "three"])
    assert np.array_equal(np.stack(vectors), HashingEncoder().encode(["one", "two", "three"]))
    assert await bench.encoding.encode([]) == []


async def test_only_the_texts_to_blame_fail(bench: Bench) -> None:
    encoded = await bench.encoding.encode(["one", "poison", "two", "more poison", "three"])
    assert [isinstance(result, RuntimeError) for result in encoded] == [False, True, False, True, False]


async def test_while_the_model_fails_for_any_text_nothing_is_blamed_and_it_is_tried_again(bench: Bench) -> None:
    bench.encoder.failures_left = 4
    [vector] = await bench.encoding.encode(["fine"])
    assert not isinstance(vector, Exception)
    assert bench.metrics.registry.get_sample_value("thalweg_retries_total", {"target": "encoder"}) == 2
    assert not bench.progress.waiting_for
