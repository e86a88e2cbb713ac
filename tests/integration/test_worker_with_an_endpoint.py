"""A worker whose vectors come from an endpoint: started, left alone by it, and started again on other vectors."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.generations import current_generation, read_manifest
from schemas.errors import Exit
from tests.support.fakes.model_endpoints import BROKEN, Answer, EmbeddingsEndpoint, busy, embeddings_endpoint
from tests.support.processes.worker import client, running_worker, wait_for

SECRET = "sk-very-secret-0123456789"


@pytest.fixture
def endpoint() -> Iterator[EmbeddingsEndpoint]:
    with embeddings_endpoint(key=SECRET) as running:
        yield running


def settings_for(endpoint: EmbeddingsEndpoint, **changed: str) -> dict[str, str]:
    return {
        "THALWEG_EMBEDDING__PROVIDER": "openai",
        "THALWEG_EMBEDDING__BASE_URL": endpoint.url,
        "THALWEG_EMBEDDING__API_KEY": SECRET,
        "THALWEG_EMBEDDING__MODEL": endpoint.model,
    } | changed


async def test_an_endpoint_may_be_away_at_the_start_and_later_and_no_document_pays_for_it(
    endpoint: EmbeddingsEndpoint, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    endpoint.script = [BROKEN, busy("0.1")]
    with running_worker(kafka, topic_prefix, tmp_path, **settings_for(endpoint)) as worker:
        async with client(kafka, topic_prefix) as user:
            assert (await user.receipt(await user.publish("a/one", "The first text."))).outcome == "indexed"
            endpoint.otherwise = Answer(503)
            waiting = await user.publish_all((f"a/{number}", f"Text number {number}.") for number in range(5))
            await wait_for(lambda: worker.metric("thalweg_retries_total", target="encoder") >= 4, "it waits")
            endpoint.otherwise = Answer()
            assert {receipt.outcome for receipt in await user.receipts_of(waiting)} == {"indexed"}
            assert await user.read_all(user.names.dead_letters) == []
        assert worker.stop() == Exit.OK
        assert SECRET not in worker.said()
    generation = current_generation(tmp_path)
    assert generation is not None
    manifest = read_manifest(generation)
    assert (manifest.embedding_provider, manifest.embedding_digest) == ("openai", "openai/words/384")
    endpoint.otherwise = Answer(change=lambda rows: [row | {"embedding": row["embedding"][:100]} for row in rows])
    code, said = _ended(kafka, topic_prefix, tmp_path, settings_for(endpoint))
    assert code == Exit.USAGE
    assert "100 numbers" in said
    assert "have the stores made anew" in said


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"THALWEG_EMBEDDING__API_KEY": "sk-another"}, "THALWEG_EMBEDDING__API_KEY"),
        ({"THALWEG_EMBEDDING__MODEL": "unknown"}, "THALWEG_EMBEDDING__MODEL"),
        ({"THALWEG_EMBEDDING__BASE_URL": ""}, "THALWEG_EMBEDDING__BASE_URL"),
        ({"THALWEG_EMBEDDING__DIMENSION": "385", "THALWEG_EMBEDDING__PROVIDER": "hashing"}, "__DIMENSION"),
    ],
)
def test_what_only_a_person_can_mend_stops_the_worker_at_its_start(
    endpoint: EmbeddingsEndpoint, tmp_path: Path, changed: dict[str, str], says: str
) -> None:
    code, said = _ended("127.0.0.1:9", "t.", tmp_path, settings_for(endpoint, **changed))
    assert code == Exit.USAGE
    assert says in said
    assert "Traceback" not in said
    assert SECRET not in said
    assert "sk-another" not in said


def test_an_address_where_something_else_answers_stops_the_worker_too(
    endpoint: EmbeddingsEndpoint, tmp_path: Path
) -> None:
    endpoint.otherwise = Answer(instead=b"<html>It works!</html>")
    code, said = _ended("127.0.0.1:9", "t.", tmp_path, settings_for(endpoint))
    assert code == Exit.USAGE
    assert "something else than vectors" in said


def _ended(kafka: str, prefix: str, data_dir: Path, settings: dict[str, str]) -> tuple[int, str]:
    """The exit code of a worker that does not stay, and what it said."""
    environment = {
        "THALWEG_KAFKA__BOOTSTRAP_SERVERS": kafka,
        "THALWEG_KAFKA__TOPIC_PREFIX": prefix,
        "THALWEG_STORAGE__DATA_DIR": str(data_dir),
        **settings,
    }
    ended = subprocess.run(
        [sys.executable, "-m", "thalweg", "worker"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stderr
