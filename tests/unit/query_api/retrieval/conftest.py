"""Threads for searches."""

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor

import pytest


@pytest.fixture
def executor() -> Iterator[Executor]:
    with ThreadPoolExecutor(8) as threads:
        yield threads
