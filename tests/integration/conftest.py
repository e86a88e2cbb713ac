"""One worker for the stories that keep to collections of their own."""

from collections.abc import Iterator

import pytest

from tests.support.processes.worker import WorkerProcess, running_worker


@pytest.fixture(scope="session")
def worker(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    data_dir = tmp_path_factory.mktemp("worker") / "data"
    with running_worker(kafka, "stories.", data_dir, THALWEG_WORKER__PUBLISH_GRAPH="true") as running:
        yield running
