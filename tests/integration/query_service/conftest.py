"""A service that is ready, and the worker behind it."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from indexer.generations import FIRST
from schemas.topics import TopicNames, topic_specs
from streams.kafka.topic_admin import ensure_topics
from tests.integration.query_service.stage import Stage, make_generation, serving, settings_for, working
from tests.waiting import eventually


@pytest.fixture
async def stage(kafka: str, topic_prefix: str, tmp_path: Path) -> AsyncIterator[Stage]:
    settings = settings_for(kafka, topic_prefix, tmp_path)
    names = TopicNames(topic_prefix)
    await ensure_topics(kafka, topic_specs(settings.kafka, FIRST))
    generation = make_generation(tmp_path)
    async with working(kafka, names, generation), serving(settings) as (http, app):
        stage = Stage(http, app, names, kafka, tmp_path)
        await eventually(lambda: stage.service.readiness().ready)
        yield stage
