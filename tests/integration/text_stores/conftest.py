"""One set of real LanceDB tables for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.generation_folders import Generation
from indexer.write.lance_writer import LanceWriter
from tests.support.fixtures.text_rows import DIMENSION, generation_in


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    return generation_in(tmp_path)


@pytest.fixture
def writer(generation: Generation) -> Iterator[LanceWriter]:
    writer = LanceWriter.open(generation, DIMENSION)
    yield writer
    writer.close()
