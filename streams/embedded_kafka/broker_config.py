"""The files the embedded Kafka is started with: `server.properties` and its Log4j configuration.

All paths in them are relative to the directory the broker runs in, so no path of the user's needs escaping.
"""

from collections.abc import Mapping

from schemas.settings import MIB
from streams.ports import LOOPBACK

NODE_ID = 1
LOG_DIR = "log"
_RECORD_OVERHEAD_BYTES = MIB  # batch header, key and headers of a record of the largest size
_REQUEST_HEADROOM_BYTES = 16 * MIB
_SESSION_MS = 3000  # a restart after a kill waits until the killed one counts as gone: 5 s instead of Kafka's 12
_HEARTBEAT_MS = 500
_LISTS = ("listeners", "advertised.listeners", "listener.security.protocol.map")


def server_properties(
    port: int, controller_port: int, max_record_bytes: int, further: Mapping[str, str] | None = None
) -> str:
    """One node that is broker and controller, on loopback only, with one replica of everything.

    The voter is fixed by its id; where it listens is not kept in the data, so both ports may change at each start.
    `further` settings are added: further listeners to ours, others in place of ours.
    """
    largest = max_record_bytes + _RECORD_OVERHEAD_BYTES
    settings: dict[str, str | int] = {
        "process.roles": "broker,controller",
        "node.id": NODE_ID,
        "controller.quorum.voters": f"{NODE_ID}@{LOOPBACK}:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{LOOPBACK}:{port},CONTROLLER://{LOOPBACK}:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://{LOOPBACK}:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": LOG_DIR,
        "auto.create.topics.enable": "false",
        "default.replication.factor": 1,
        "min.insync.replicas": 1,
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 8,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 4,
        "group.initial.rebalance.delay.ms": 0,
        "broker.session.timeout.ms": _SESSION_MS,
        "broker.heartbeat.interval.ms": _HEARTBEAT_MS,
        "message.max.bytes": largest,
        "replica.fetch.max.bytes": largest,
        "replica.fetch.response.max.bytes": largest,
        "socket.request.max.bytes": largest + _REQUEST_HEADROOM_BYTES,
        "log.cleaner.dedupe.buffer.size": 16 * MIB,
        "num.network.threads": 2,
        "num.io.threads": 4,
        "background.threads": 2,
    }
    for name, value in (further or {}).items():
        settings[name] = f"{settings[name]},{value}" if name in _LISTS else value
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def log4j_configuration() -> str:
    """Warnings and worse to the file named by the system property `thalweg.log`, 3 files of 10 MiB kept."""
    return """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="ERROR" shutdownHook="disable">
  <Appenders>
    <RollingFile name="file" fileName="${sys:thalweg.log}" filePattern="${sys:thalweg.log}.%i">
      <PatternLayout pattern="%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %-5p %c{1} %m%n"/>
      <Policies><SizeBasedTriggeringPolicy size="10 MB"/></Policies>
      <DefaultRolloverStrategy max="3"/>
    </RollingFile>
  </Appenders>
  <Loggers>
    <Logger name="org.apache.kafka.common.utils.AppInfoParser" level="ERROR"/>
    <Root level="WARN"><AppenderRef ref="file"/></Root>
  </Loggers>
</Configuration>
"""
