"""One worker for the stories that keep to collections of their own."""

from collections.abc import Iterator

import pytest

from tests.support.processes.worker import WorkerProcess, running_worker


@pytest.fixture(scope="session")
def worker(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    with running_worker(kafka, "stories.", tmp_path_factory.mktemp("worker") / "data") as running:
        yield running
