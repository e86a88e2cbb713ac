"""One real Kafka for the whole run: tests keep apart by a topic prefix of their own."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from streams.embedded_kafka.broker import EmbeddedKafka


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The bootstrap servers of one embedded broker."""
    with EmbeddedKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic_prefix() -> str:
    """A prefix nobody else uses, so that no test sees another one's records."""
    return f"test-{uuid4().hex[:12]}."
