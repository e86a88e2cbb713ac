"""A worker whose vectors come from an endpoint: started, left alone by it, and started again on other vectors."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from indexer.generation_folders import current_generation, read_manifest
from schemas.errors import Exit
from tests.support.fakes.model_endpoints import BROKEN, Answer, EmbeddingsEndpoint, busy, embeddings_endpoint
from tests.support.processes.worker import client, running_worker
from tests.support.waiting import wait_until

SECRET = "sk-very-secret-0123456789"
END_SECONDS = 60


@pytest.fixture
def endpoint() -> Iterator[EmbeddingsEndpoint]:
    with embeddings_endpoint(key=SECRET) as running:
        yield running


def settings_for(endpoint: EmbeddingsEndpoint, **changed: str) -> dict[str, str]:
    return {
        "THALWEG_EMBEDDING__PROVIDER": "openai",
        "THALWEG_EMBEDDING__BASE_URL": endpoint.url,
        "THALWEG_EMBEDDING__API_KEY": SECRET,
        "THALWEG_EMBEDDING__MODEL": str(endpoint.model),
    } | changed


def test_documents_wait_for_an_embeddings_endpoint_that_is_away(
    endpoint: EmbeddingsEndpoint, kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    endpoint.script = [BROKEN, busy("0.1")]
    with running_worker(kafka, topic_prefix, tmp_path, **settings_for(endpoint)) as worker:
        with client(kafka, topic_prefix) as user:
            assert user.receipt(user.publish("a/one", "The first text.")).outcome == "indexed"
            endpoint.otherwise = Answer(503)
            waiting = user.publish_all((f"a/{number}", f"Text number {number}.") for number in range(5))
            wait_until(lambda: worker.metric("thalweg_retries_total", target="encoder") >= 4, "it waits")
            endpoint.otherwise = Answer()
            assert {receipt.outcome for receipt in user.receipts_of(waiting)} == {"indexed"}
            assert user.read_all(user.names.dead_letters) == []
        assert worker.stop() == Exit.OK
    generation = current_generation(tmp_path)
    assert generation is not None
    manifest = read_manifest(generation)
    assert (manifest.embedding_provider, manifest.embedding_digest) == ("openai", "openai/words/384")
    endpoint.otherwise = Answer(change=lambda rows: [row | {"embedding": row["embedding"][:100]} for row in rows])
    worker.start()
    assert worker.process.wait(END_SECONDS) == Exit.USAGE
    assert "100 numbers" in worker.said()
    assert "have the stores made again" in worker.said()
    assert SECRET not in worker.said()
