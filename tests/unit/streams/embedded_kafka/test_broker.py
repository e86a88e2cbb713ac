"""What the embedded Kafka is told."""

import xml.etree.ElementTree as ET

from schemas.settings import MIB
from streams.embedded_kafka.broker import log4j_configuration, server_properties


def settings(port: int = 9092, controller_port: int = 9093, max_record_bytes: int = 64 * MIB) -> dict[str, str]:
    lines = server_properties(port, controller_port, max_record_bytes).splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_it_listens_on_loopback_only() -> None:
    told = settings(19092, 19093)

    assert told["listeners"] == "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093"
    assert told["advertised.listeners"] == "PLAINTEXT://127.0.0.1:19092"
    assert told["controller.quorum.voters"] == "1@127.0.0.1:19093"


def test_one_replica_of_everything_and_no_topic_by_accident() -> None:
    told = settings()

    assert {value for name, value in told.items() if name.endswith("replication.factor")} == {"1"}
    assert told["auto.create.topics.enable"] == "false"
    assert told["group.initial.rebalance.delay.ms"] == "0"


def test_the_largest_record_passes_every_limit() -> None:
    told = settings(max_record_bytes=64 * MIB)

    for limit in ("message.max.bytes", "replica.fetch.max.bytes", "socket.request.max.bytes"):
        assert int(told[limit]) > 64 * MIB


def test_paths_are_relative_so_nothing_needs_escaping() -> None:
    assert settings()["log.dirs"] == "log"


def test_the_log_configuration_is_well_formed_and_rotates() -> None:
    root = ET.fromstring(log4j_configuration())

    appender = root.find("Appenders/RollingFile")
    assert appender is not None
    assert appender.get("fileName") == "${sys:thalweg.log}"
    assert appender.find("Policies/SizeBasedTriggeringPolicy") is not None
