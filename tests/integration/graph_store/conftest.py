"""One real Kùzu database for each test; each snapshot of it is also merged, and compared."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.generations import Generation
from indexer.write.kuzu import GraphWriter
from tests.support.compared_graph import ComparedGraphWriter
from tests.support.fixtures.graph import generation_in


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    return generation_in(tmp_path / "data")


@pytest.fixture
def writer(generation: Generation) -> Iterator[GraphWriter]:
    writer = ComparedGraphWriter.open(generation)
    yield writer
    writer.close()
