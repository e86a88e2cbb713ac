"""The worker leaves the processor to the encoder."""

import gc
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from indexer.runtime.resources import tune_gc
from streams.app import GC_THRESHOLDS, limit_blas_threads


@pytest.fixture(autouse=True)
def undone() -> Iterator[None]:
    threshold = gc.get_threshold()
    with threadpool_limits(limits=2, user_api="blas"):
        yield
    gc.set_threshold(*threshold)
    gc.unfreeze()


def test_small_products_are_not_shared_out_among_threads() -> None:
    limit_blas_threads()
    assert float(np.ones(2) @ np.ones(2)) == 2
    assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} == {1}


def test_what_is_there_at_the_start_is_not_searched_for_garbage_again() -> None:
    tune_gc(GC_THRESHOLDS)
    assert gc.get_threshold() == GC_THRESHOLDS
    assert gc.get_freeze_count() > 0
