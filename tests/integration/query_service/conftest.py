"""A service that is ready, and the worker behind it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.integration.query_service.stage import Stage, on_stage


@pytest.fixture
async def stage(kafka: str, topic_prefix: str, tmp_path: Path) -> AsyncIterator[Stage]:
    async with on_stage(kafka, topic_prefix, tmp_path) as stage:
        yield stage
