"""One real Kùzu database for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.generations import Generation
from indexer.write.kuzu import GraphWriter
from tests.support.fixtures.graph import generation_in


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    return generation_in(tmp_path / "data")


@pytest.fixture
def writer(generation: Generation) -> Iterator[GraphWriter]:
    writer = GraphWriter.open(generation)
    yield writer
    writer.close()
