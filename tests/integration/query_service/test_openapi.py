"""What the OpenAPI document says of the service holds: schemathesis makes requests from it, right and wrong ones."""

import asyncio
import sys
from pathlib import Path

import httpx
import pytest

from query_api.service_health import readiness
from schemas.topics import TopicNames, topic_specs
from streams.kafka.topics import ensure_topics
from tests.integration.query_service.live_service import (
    GENERATION,
    LiveService,
    make_generation,
    serving,
    settings_for,
    working,
)
from tests.support.effort import examples
from tests.support.kafka import plaintext
from tests.support.waiting import eventually

SEED = 20261123
EXAMPLES = examples(2, 120)  # for each operation, beside those made of its parameters' bounds
CONFIG = Path(__file__).with_name("schemathesis.toml")


@pytest.mark.timeout(600)  # a minute on two cores that nobody else uses
async def test_requests_made_from_openapi_are_answered_as_documented(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    settings = settings_for(kafka, topic_prefix, tmp_path)
    names = TopicNames(topic_prefix)
    await ensure_topics(plaintext(kafka), topic_specs(settings.kafka, GENERATION))
    generation = make_generation(tmp_path)
    async with serving(settings) as (http, app):
        with working(kafka, names, generation):  # what comes after this document is not indexed
            live = LiveService(http, app, names, kafka, tmp_path)
            await eventually(lambda: readiness(live.service).ready and live.service.log_identity.topic_id)
            token = await live.put("notes/river.md", "# River\n\nThe river is high.")
            assert (await live.search("river", after=token))["hits"]
        told, ended = await schemathesis(http, tmp_path)
    assert ended == 0, told


async def schemathesis(http: httpx.AsyncClient, folder: Path) -> tuple[str, int | None]:
    """What it says, and its exit code."""
    command = [
        sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIG), "run", f"{http.base_url}/openapi.json",
        "--checks", "all", "--phases", "examples,coverage,fuzzing", "--max-examples", str(EXAMPLES),
        "--seed", str(SEED), "--generation-database", "none", "--no-shrink", "--no-color",
        "--continue-on-failure", "--suppress-health-check", "all", "--warnings", "off", "--request-timeout", "20",
    ]  # fmt: skip
    running = await asyncio.create_subprocess_exec(
        *command, cwd=folder, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    told, _ = await running.communicate()
    return told.decode(), running.returncode
