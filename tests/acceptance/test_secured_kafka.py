"""A Kafka as companies run it: TLS, and passwords, certificates or tokens by settings; one broker for all stories."""

import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from aiokafka import TopicPartition
from pydantic import SecretStr

from kafka_client import async_clients, sync_clients
from kafka_client.security import AccessDenied, WrongCertificate, require_answer
from schemas.errors import Exit, Unreachable
from schemas.settings import KafkaConnection
from schemas.topics import TopicSpec
from streams.kafka.topics import ensure_topics
from tests.support.constants import PROGRAM, given
from tests.support.processes.installation import HASHING, installation
from tests.support.processes.secured_kafka import CLIENT_SECRET, KEY_PASSWORD, PASSWORD, SecuredBroker, secured_broker
from tests.support.waiting import wait_until

SECRETS = (PASSWORD, CLIENT_SECRET, KEY_PASSWORD)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with secured_broker(tmp_path_factory.mktemp("secured")) as running:
        yield running


@pytest.fixture(params=["SCRAM-SHA-256", "SCRAM-SHA-512", "PLAIN", "certificate", "token"])
def way_in(request: pytest.FixtureRequest, broker: SecuredBroker) -> KafkaConnection:
    ways = {"certificate": broker.certificates, "token": broker.tokens}
    return ways[request.param]() if request.param in ways else broker.passwords(request.param)


@pytest.mark.asyncio(loop_scope="module")
async def test_both_libraries_are_let_in_and_write_and_read(
    way_in: KafkaConnection, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    name = f"test-{uuid4().hex}"
    place = TopicPartition(name, 0)
    await ensure_topics(way_in, [TopicSpec(name, 1, {})])

    producer = await async_clients.open_producer(way_in)
    await producer.send_and_wait(name, b"from aiokafka")
    await producer.stop()
    await asyncio.to_thread(write_blocking, way_in, name, b"from kafka-python")

    consumer = await async_clients.open_consumer(way_in, auto_offset_reset="earliest")
    read = [record.value async for record in async_clients.read_range(consumer, place, 0, 2)]
    await consumer.stop()

    assert read == [b"from aiokafka", b"from kafka-python"]
    assert await asyncio.to_thread(read_blocking, way_in, place, 2) == read
    assert not any(secret in caplog.text for secret in SECRETS)


def write_blocking(connection: KafkaConnection, topic: str, value: bytes) -> None:
    with closing(sync_clients.open_producer(connection)) as producer:
        producer.send(topic, value).get(30)


def read_blocking(connection: KafkaConnection, place: TopicPartition, count: int) -> list[bytes]:
    with closing(sync_clients.open_consumer(connection, auto_offset_reset="earliest")) as consumer:
        consumer.assign([place])
        return [record.value for record in islice(consumer, count)]


def changed(connection: KafkaConnection, **settings: Any) -> KafkaConnection:
    return KafkaConnection.model_validate(connection.model_dump() | settings)


async def refusal(connection: KafkaConnection) -> str:
    """What the clients of both libraries say."""
    with pytest.raises(AccessDenied) as blocking:
        await asyncio.to_thread(sync_clients.AdminClient, connection)
    with pytest.raises(AccessDenied) as waiting:
        await async_clients.open_consumer(connection)
    assert str(blocking.value) == str(waiting.value)
    assert waiting.value.exit_code == Exit.NO_ACCESS
    assert not any(secret in str(waiting.value) for secret in SECRETS)
    return str(waiting.value)


@pytest.mark.asyncio(loop_scope="module")
async def test_refused_client_gets_the_reason(broker: SecuredBroker) -> None:
    wrong_password = await refusal(changed(broker.passwords(), sasl_password="guessed"))
    assert "does not let 'alice' (SCRAM-SHA-512) in: Authentication failed" in wrong_password
    assert "invalid credentials" in wrong_password

    untrusted = await refusal(changed(broker.passwords(), ssl_cafile=broker.stranger_file))
    assert "is not trusted: unable to get local issuer certificate. Name the authority" in untrusted

    port = broker.ports["PASSWORDS"]
    other_name = changed(broker.passwords(), bootstrap_servers=f"localhost:{port}")
    assert "Hostname mismatch, certificate is not valid for 'localhost'" in await refusal(other_name)
    unchecked = changed(other_name, ssl_check_hostname=False)
    assert await asyncio.to_thread(sync_clients.answers_metadata, unchecked, seconds=20)

    nobody = changed(broker.certificates(), ssl_certfile=None, ssl_keyfile=None, ssl_password=None)
    assert "does not agree on TLS with a client without certificate" in await refusal(nobody)

    unknown_client = await refusal(changed(broker.tokens(), sasl_oauthbearer_client_secret="guessed"))
    assert "'thalweg-client' (OAUTHBEARER) in: the token endpoint" in unknown_client
    assert "answers with 401" in unknown_client

    not_offered = changed(
        broker.tokens(), bootstrap_servers=f"127.0.0.1:{port}", security_protocol="SASL_SSL", ssl_cafile=broker.ca_file
    )
    assert "in: it does not offer this mechanism" in await refusal(not_offered)


def test_listener_of_another_protocol_is_reported_unreachable(broker: SecuredBroker) -> None:
    away = changed(broker.tokens(), sasl_oauthbearer_token_endpoint_url="http://127.0.0.1:9/token")
    with pytest.raises(Unreachable, match=r"The token endpoint http://127.0.0.1:9/token does not answer"):
        require_answer(away, "Wait.")
    in_the_clear = KafkaConnection(bootstrap_servers=f"127.0.0.1:{broker.ports['PASSWORDS']}")
    with pytest.raises(Unreachable, match="THALWEG_KAFKA__SECURITY_PROTOCOL is PLAINTEXT, which may not be"):
        require_answer(in_the_clear, "Wait.")
    without_tls = changed(broker.certificates(), bootstrap_servers=broker.inside)
    with pytest.raises(Unreachable, match="THALWEG_KAFKA__SECURITY_PROTOCOL is SSL, which may not be"):
        require_answer(without_tls, "Wait.")


def test_wrong_certificate_file_is_named_before_any_connection(broker: SecuredBroker) -> None:
    nowhere = {"bootstrap_servers": "127.0.0.1:9"}
    with pytest.raises(WrongCertificate, match=r"SSL_CAFILE: .*client.key holds no certificates in PEM"):
        sync_clients.AdminClient(changed(broker.certificates(), ssl_cafile=broker.key_file, **nowhere))
    with pytest.raises(WrongCertificate, match=r"client.pem cannot be used with its key"):
        sync_clients.AdminClient(changed(broker.certificates(), ssl_password="guessed", **nowhere))


def environment(connection: KafkaConnection) -> dict[str, str]:
    """The settings of a connection as a person exports them."""
    given = connection.model_dump(exclude_defaults=True)
    plain = {name: value.get_secret_value() if isinstance(value, SecretStr) else value for name, value in given.items()}
    return {f"THALWEG_KAFKA__{name.upper()}": str(value) for name, value in plain.items()}


def test_everything_runs_on_a_cluster_with_tls_and_a_password(broker: SecuredBroker, tmp_path: Path) -> None:
    secured = environment(broker.passwords())
    document = tmp_path / "bees.md"
    document.write_text("# Bees\n\nThe waggle dance tells the hive where flowers are.")
    quick = given({"query_api.service_context.CANARY_SECONDS": 2})
    with installation(tmp_path / "data", PROGRAM, **HASHING, **quick, **secured) as thalweg:
        wait_until(
            lambda: thalweg.run_json("status")["freshness"], "freshness to be measured before there is a document", 60
        )
        assert set(thalweg.run_json("status")["counts"].values()) == {0}
        assert thalweg.run_json("collections", "list") == {"collections": [], "notes": []}
        loaded = thalweg.run_json("load", str(document))
        assert loaded["outcomes"] == {"indexed": 1}
        found = thalweg.search(q="waggle dance", after=loaded["token"], wait_seconds=60)
        assert [hit["document_id"] for hit in found["hits"]] == [found["hits"][0]["document_id"]]
        written = httpx.put(f"{thalweg.url}/v1/documents/wasps", json={"content": "Wasps build of paper."}, timeout=30)
        assert written.status_code == 202, written.text
        token = written.json()["token"]
        assert thalweg.search(q="paper", mode="keyword", after=token, wait_seconds=60)["hits"]
        deleted = thalweg.run_json("delete", found["hits"][0]["document_id"])
        assert deleted["outcomes"] == {"deleted": 1}
        assert not thalweg.search(q="waggle", mode="keyword", after=deleted["token"], wait_seconds=60)["hits"]
        topics = thalweg.run_json("topics")
        assert {topic["outcome"] for topic in topics} == {"exists"}
        thalweg.environment["THALWEG_KAFKA__SASL_PASSWORD"] = "guessed"
        refused = thalweg.run("load", str(document), check=False)
        assert refused.returncode == Exit.NO_ACCESS
        assert refused.stderr.strip().count("\n") == 0
        assert "does not let 'alice' (SCRAM-SHA-512) in" in refused.stderr
        said = (thalweg.run("status").stdout, json.dumps(thalweg.run_json("status")))
    logs = "".join(file.read_text() for file in tmp_path.rglob("*.log") if file.is_file())
    assert "following topic" in logs
    assert not any(secret in text for secret in SECRETS for text in (logs, *said))


@pytest.mark.parametrize("command", [("up", "--port", "0"), ("delete", "a")])
def test_a_wrong_password_ends_a_command_with_one_sentence(
    broker: SecuredBroker, tmp_path: Path, command: tuple[str, ...]
) -> None:
    guessed = environment(changed(broker.passwords(), sasl_password="guessed"))
    done = subprocess.run(
        [sys.executable, "-m", "thalweg", *command, "--data-dir", str(tmp_path / "data")],
        env=os.environ | {"THALWEG_EMBEDDING__PROVIDER": "hashing"} | guessed,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == Exit.NO_ACCESS, done.stderr
    assert (done.stdout + done.stderr).count("does not let 'alice' (SCRAM-SHA-512) in") == 1
