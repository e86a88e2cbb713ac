"""The embedded Kafka: a real Apache Kafka (KRaft, one node) in a child process, for one machine and for tests.

Its data live under `<data dir>/kafka` and its log under `<data dir>/logs/kafka.log`. A restart on the same directory
keeps cluster id and data, whatever the ports, also after a kill.
"""

import base64
import os
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from filelock import FileLock, Timeout

from indexer.runtime.user_cache import user_cache_dir
from kafka_client.sync_clients import answers_metadata
from schemas.environment import without_settings
from schemas.errors import Failure, InUse, NoAccess
from schemas.settings import MIB, KafkaConnection
from streams.child_processes import Child, exit_text, file_size, file_tail
from streams.embedded_kafka.jars import FetchProgress, ensure_jars
from streams.embedded_kafka.java import Java, find_java
from streams.ports import LOOPBACK, answers, free_port, require_free

NODE_ID = 1
LOG_DIR = "log"
_RECORD_OVERHEAD_BYTES = MIB  # batch header, key and headers of a record of the largest size
_REQUEST_HEADROOM_BYTES = 16 * MIB
_HEAP_BYTES = 512 * MIB
_HEAP_RECORDS = 16  # of the largest size that may be under way at once; with larger ones the heap is larger
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


_POLL_SECONDS = 0.05
_ANSWER_SECONDS = 5.0
_STOP_GRACE_SECONDS = 20.0
_FORMAT_TIMEOUT_SECONDS = 120.0
_QUICK_START = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


class BrokerCrashed(Failure):
    """The broker ended unexpectedly; the message holds the end of its log."""


class EmbeddedKafka:
    """One broker on one data directory. Its calls block: an event loop runs them in a thread.

    The broker ends with this process, however that ends (on macOS: not when it is killed).
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        port: int = 0,
        java_home: str | None = None,
        max_record_bytes: int = 64 * MIB,
        progress: FetchProgress | None = None,
        properties: Mapping[str, str] | None = None,
        format_options: Sequence[str] = (),
    ) -> None:
        """`port` on 127.0.0.1, 0 for a free one; `java_home` is that of Java 17 or newer, JAVA_HOME unless it is given.
        `max_record_bytes` is the largest record any topic may allow; `progress` is called as the jars come in.

        `properties` are further ones for the broker, such as listeners; `format_options` go to `kafka-storage format`.
        """
        self._asked_port = port
        self._java_home = java_home or os.environ.get("JAVA_HOME")
        self._max_record_bytes = max_record_bytes
        self._progress = progress
        self._properties = properties or {}
        self._format_options = format_options
        self._home = data_dir.absolute() / "kafka"
        self._logs = data_dir.absolute() / "logs"
        self._lock = FileLock(self._home / "broker.lock", thread_local=False)
        self._child: Child | None = None
        self._lifecycle = threading.Lock()
        self._log_start = 0
        self.port = 0

    @property
    def bootstrap_servers(self) -> str:
        """`host:port`; known after `start`."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the Java process. Raises RuntimeError before `start`."""
        return self._running_child().pid

    @property
    def log_file(self) -> Path:
        return self._logs / "kafka.log"

    def start(self) -> None:
        """Starts the broker, formatting its storage the first time, and returns before it is ready.

        May be called again after a crash: the port stays the same.
        Raises InUse (port or data directory), NoAccess, NoJava, Unreachable (jars), BrokerCrashed (while formatting).
        """
        with self._lifecycle:
            jars = ensure_jars(user_cache_dir(os.environ, "kafka"), self._progress)
            java = find_java(Path(self._java_home) if self._java_home else None)
            self._take_directory()
            try:
                self.port = self.port or self._asked_port or free_port()
                require_free(self.port, "--kafka-port")
                self._write_configuration()
                self._format(java, jars)
                self._log_start = file_size(self.log_file)
                self._child = Child(
                    [*self._java_command(java, jars), "kafka.Kafka", "server.properties"],
                    output=self._logs / "kafka.out",
                    cwd=self._home,
                    env=_java_environment(),
                    append=False,
                )
            except BaseException:
                self._lock.release(force=True)
                raise

    def is_ready(self) -> bool:
        """Whether the broker answers a metadata request now."""
        connection = KafkaConnection(bootstrap_servers=self.bootstrap_servers)
        return answers(self.port) and answers_metadata(connection, seconds=_ANSWER_SECONDS)

    def wait_ready(self, timeout_seconds: float = 60.0) -> None:
        """Returns when the broker answers a metadata request.

        Raises BrokerCrashed when it has ended, and TimeoutError when it is still not ready (it is left running).
        """
        deadline = time.monotonic() + timeout_seconds
        while True:
            self.require_alive()
            if self.is_ready():
                return
            if time.monotonic() > deadline:
                raise TimeoutError(f"Kafka was not ready after {timeout_seconds:.0f} s. Its log is {self.log_file}.")
            time.sleep(_POLL_SECONDS)

    def poll(self) -> int | None:
        """The exit code (negative: the signal that ended it), or None while it runs."""
        return self._running_child().poll()

    def require_alive(self) -> None:
        """Raises BrokerCrashed, with the end of the log, when the broker has ended."""
        code = self.poll()
        if code is not None:
            raise BrokerCrashed(f"Kafka ended unexpectedly ({exit_text(code)}).\n{self.log_tail()}")

    def log_tail(self, lines: int = 15) -> str:
        """The end of what the broker said since its start, and where all of it is."""
        said = [file_tail(self.log_file, lines, start=self._log_start), self._running_child().output_tail(lines)]
        return "\n".join(["The end of its log:", *filter(None, said), f"(all of it: {self.log_file})"])

    def stop(self) -> None:
        """Ends the broker cleanly, or by force after 20 s. May be called again, and after a crash."""
        with self._lifecycle:
            if self._child is not None:
                self._child.stop(_STOP_GRACE_SECONDS)
            self._lock.release(force=True)

    def kill(self) -> None:
        """Ends the broker at once, as a crash would. No record that was confirmed is lost."""
        if self._child is not None:
            self._child.kill()

    def __enter__(self) -> Self:
        self.start()
        try:
            self.wait_ready()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _running_child(self) -> Child:
        if self._child is None:
            raise RuntimeError("The broker was not started.")
        return self._child

    def _take_directory(self) -> None:
        try:
            for folder in (self._home, self._logs):
                folder.mkdir(parents=True, exist_ok=True)
            if not self._lock.is_locked:
                self._lock.acquire(timeout=0)
        except Timeout as error:
            raise InUse(
                f"Another process runs Kafka on {self._home}. Stop it, or choose another directory with --data-dir."
            ) from error
        except PermissionError as error:
            raise NoAccess(
                f"No permission to write in {self._home.parent}. Choose another directory with --data-dir."
            ) from error

    def _write_configuration(self) -> None:
        controller_port = free_port()
        while controller_port == self.port:
            controller_port = free_port()
        properties = server_properties(self.port, controller_port, self._max_record_bytes, self._properties)
        (self._home / "server.properties").write_text(properties, encoding="ascii")
        (self._home / "log4j2.xml").write_text(log4j_configuration(), encoding="ascii")

    def _java_command(self, java: Java, jars: list[Path]) -> list[str]:
        return [
            str(java.executable),
            *_QUICK_START,
            f"-Xmx{max(_HEAP_BYTES, _HEAP_RECORDS * self._max_record_bytes) // MIB}m",
            "-Djava.awt.headless=true",
            "-Dlog4j2.configurationFile=log4j2.xml",
            f"-Dthalweg.log={os.path.relpath(self.log_file, self._home)}",
            "-cp",
            os.pathsep.join(map(str, jars)),
        ]

    def _format(self, java: Java, jars: list[Path]) -> None:
        if (self._home / LOG_DIR / "meta.properties").exists():
            return
        tool = ["kafka.tools.StorageTool", "format", "--ignore-formatted", "-t", new_cluster_id()]
        answer = subprocess.run(
            [*self._java_command(java, jars), *tool, "-c", "server.properties", *self._format_options],
            cwd=self._home,
            env=_java_environment(),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_FORMAT_TIMEOUT_SECONDS,
            check=False,
        )
        if answer.returncode != 0:
            raise BrokerCrashed(f"Kafka could not format {self._home}.\n{answer.stdout}{answer.stderr}".rstrip())


def _java_environment() -> dict[str, str]:
    return {
        **without_settings(os.environ),
        "LC_ALL": "C.UTF-8",
    }  # else Java cannot open names outside ASCII where LANG is C


def new_cluster_id() -> str:
    """A random id as Kafka writes them: 22 characters of URL-safe base64 that do not begin with a hyphen."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text
