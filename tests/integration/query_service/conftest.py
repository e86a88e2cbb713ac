"""A service that is ready, and the worker behind it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.query_service.live_service import LiveService, live_service


@pytest.fixture
async def live(kafka: str, topic_prefix: str, tmp_path: Path) -> AsyncIterator[LiveService]:
    async with live_service(kafka, topic_prefix, tmp_path) as live:
        yield live
