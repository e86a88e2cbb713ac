"""A generation for each test."""

from pathlib import Path

import pytest

from indexer.generation_folders import Generation
from tests.support.fixtures.graph import generation_in


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    return generation_in(tmp_path / "data")
