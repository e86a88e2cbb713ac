"""Two installations for the stories that leave them as they found them; each test file that needs its own starts it."""

from collections.abc import Iterator

import pytest

from tests.support.processes.installation import HASHING, Installation, installation


@pytest.fixture(scope="session")
def thalweg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """With the real model."""
    with installation(tmp_path_factory.mktemp("acceptance") / "data") as running:
        yield running


@pytest.fixture(scope="session")
def hashing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """With feature hashing, for stories that need no meaning."""
    with installation(tmp_path_factory.mktemp("hashing") / "data", **HASHING) as running:
        yield running
