"""The log of what is tested stays out of the test report."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs


@pytest.fixture(autouse=True)
def _quiet_log() -> Iterator[None]:
    with capture_logs():
        yield
