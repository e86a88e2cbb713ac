"""One installation for the stories that leave it as they found it."""

from collections.abc import Iterator

import pytest

from tests.support.processes.installation import Installation, installation


@pytest.fixture(scope="session")
def thalweg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One installation with the real model, shared by the stories that leave it as they found it."""
    with installation(tmp_path_factory.mktemp("acceptance") / "data") as running:
        yield running
