"""`thalweg up`: Kafka, the topics, the worker and the query service, in one terminal, until they are stopped."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from indexer.embedding.model_files import PACKAGED_MODEL, needs_packaged_model, packaged_model
from indexer.errors import DamagedStore, IncompatibleGeneration, OtherFormat
from indexer.generation_folders import current_manifest
from schemas.environment import CONFIG_FILE_VARIABLE, without_settings
from schemas.errors import WrongSetting
from schemas.runtime import Running, announce, reachable, withdraw
from schemas.settings_file import find_file
from schemas.topics import topic_specs
from streams.embedded_kafka.broker import EmbeddedKafka
from streams.kafka.topics import ensure_topics
from streams.ports import free_port, is_free, require_free
from streams.settings import WorkerSettings
from streams.supervisor import data_directory
from streams.supervisor.parts import KafkaPart, Part, PartRunner, ProcessPart, Say, follow, keep_trimmed
from streams.supervisor.steps import StartSteps

DEFAULT_KAFKA_PORT = 9092
DEFAULT_SERVICE_PORT = 8420
_WORKER_GRACE_SECONDS = 30.0
_SERVICE_GRACE_SECONDS = 15.0
_SLOW_START_SECONDS = 60.0
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

RunningPart = tuple[PartRunner, asyncio.Task[None]]


class ServiceAddress(BaseModel):
    """Where the query service listens; its other settings are its own."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    host: str = Field(default="127.0.0.1", description="Address the query service listens on.")
    port: int = Field(default=DEFAULT_SERVICE_PORT, ge=0, le=65_535, description="Its port; 0 takes a free one.")

    @property
    def reachable_host(self) -> str:
        """The address under which this machine reaches it."""
        return reachable(self.host)


class UpSettings(WorkerSettings):
    """Read once at the start of `up`, `kafka` and `topics`."""

    service: ServiceAddress = ServiceAddress()


class StoppedEarly(Exception):
    """The user ended `up` while Kafka's jars or the model were still being downloaded."""


@dataclass(eq=False)
class Supervisor:
    """Brings the parts up in order, keeps them running, and ends them in reverse order.

    `environment` is handed to the parts; `say` prints messages, `steps` what a start does, `show_logs` the parts' log
    lines. `ready` is called once, when everything answers. `kafka_port` is that of the embedded Kafka, 0 for a free
    one. The parts are started as `command` with `worker` or `serve`.
    """

    settings: UpSettings
    _: KW_ONLY
    environment: Mapping[str, str]
    say: Say
    ready: Callable[[Running], None]
    steps: StartSteps = field(default_factory=StartSteps)
    show_logs: Callable[[str], None] | None = None
    kafka_port: int | None = None
    command: Sequence[str] = (sys.executable, "-m", "thalweg")
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _parts: list[Part] = field(default_factory=list)

    async def run(self) -> None:
        """Returns after SIGINT, SIGTERM or SIGHUP, when all parts have ended; a second signal ends them by force.

        Raises Failure when a part cannot be brought up; the others have then been ended too.
        """
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, self._on_signal)
        work = asyncio.create_task(self._start_and_watch(), name="parts")
        stop = asyncio.create_task(self._stopping.wait(), name="stop")
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self.steps.close()
                self.say("Ending …")
                work.cancel()
            with suppress(asyncio.CancelledError, StoppedEarly):
                await work
        finally:
            self._stopping.set()
            self.steps.close()
            stop.cancel()
            for number in _STOP_SIGNALS:
                loop.remove_signal_handler(number)

    def _on_signal(self) -> None:
        if self._stopping.is_set():
            self.say("Ending by force.")
            for part in reversed(self._parts):
                part.kill()
        self._stopping.set()

    async def _start_and_watch(self) -> None:
        data_dir = data_directory.make_directory(self.settings.storage.data_dir)
        async with AsyncExitStack() as stack:
            stack.enter_context(data_directory.locked(data_dir, data_directory.UP_LOCK, "'thalweg up'"))
            data_directory.require_free(data_dir, data_directory.WORKER_LOCK, "worker")
            logs = data_directory.make_directory(data_dir / "logs")
            service_port = self.settings.service.port or free_port()
            require_free(service_port, "--port")
            running_parts: list[RunningPart] = []
            bootstrap_servers = self.settings.kafka.bootstrap_servers
            if bootstrap_servers is None:
                protocol = self.settings.kafka.security_protocol
                if protocol != "PLAINTEXT":
                    raise WrongSetting(
                        f"THALWEG_KAFKA__SECURITY_PROTOCOL is {protocol}, and the embedded Kafka speaks PLAINTEXT: "
                        "name your cluster in THALWEG_KAFKA__BOOTSTRAP_SERVERS."
                    )
                kafka = self._embedded_kafka(data_dir)
                self.steps.show("Starting Kafka")
                began = time.monotonic()
                running_parts.append(await stack.enter_async_context(self._running(KafkaPart(kafka))))
                await self._all_ready(running_parts, began)
                bootstrap_servers = kafka.bootstrap_servers
            await asyncio.to_thread(self._download_model, data_dir)
            with self.steps.step("Looking at the topics", "The topics are there"):
                await self._make_topics(bootstrap_servers)
            service_url = f"http://{self.settings.service.reachable_host}:{service_port}"
            running = Running(pid=os.getpid(), kafka=bootstrap_servers, service_url=service_url)
            stack.callback(withdraw, data_dir)
            announce(data_dir, running)  # before a part reports that it is ready: who waits for that finds the file
            parts = self._process_parts(data_dir, logs, bootstrap_servers, service_port, service_url)
            self.steps.show("Starting the worker and the query service")
            began = time.monotonic()
            process_parts = [await stack.enter_async_context(self._running(part)) for part in parts]
            await self._all_ready(process_parts, began, beside=running_parts)
            running_parts += process_parts
            self.steps.close()
            self.ready(running)
            async with _background(keep_trimmed([part.log_file for part in self._parts])):
                await _first_to_end([task for _, task in running_parts])

    def _embedded_kafka(self, data_dir: Path) -> EmbeddedKafka:
        port, note = choose_kafka_port(self.kafka_port)
        if note:
            self.say(note)
        return EmbeddedKafka(
            data_dir,
            port=port,
            max_record_bytes=self.settings.kafka.max_record_bytes,
            progress=self._report_fetch,
        )

    def _report_fetch(self, here: int, in_all: int) -> None:
        if self._stopping.is_set():
            raise StoppedEarly
        self.steps.fetched(here, in_all)

    def _download_model(self, data_dir: Path) -> None:
        """Here rather than in the parts, which would wait for each other unseen."""
        try:
            stored = current_manifest(data_dir)
        except (DamagedStore, IncompatibleGeneration, OtherFormat):  # the worker says what to do
            return
        if not needs_packaged_model(self.settings.embedding, stored.embedding_provider if stored else None):
            return
        began: float | None = None

        def report() -> None:
            nonlocal began
            if self._stopping.is_set():
                raise StoppedEarly
            if began is None:
                began = time.monotonic()
                self.say(f"Downloading the model {PACKAGED_MODEL} (once, about 84 MB) …")
                self.steps.show("Downloading the model")

        packaged_model(report)
        if began is not None:
            self.steps.say_done("The model is here", time.monotonic() - began)

    async def _make_topics(self, bootstrap_servers: str) -> None:
        kafka = self.settings.kafka
        for report in await ensure_topics(kafka.at(bootstrap_servers), topic_specs(kafka)):
            if report.differences:
                self.say(f"The topic {report.sentence()}. It is used as it is.")

    def _process_parts(
        self, data_dir: Path, logs: Path, bootstrap_servers: str, service_port: int, service_url: str
    ) -> list[ProcessPart]:
        metrics_port = self.settings.worker.metrics_port or free_port()
        environment = {
            **self.environment,
            "PYTHONUNBUFFERED": "1",
            **self._settings_file(data_dir),
            "THALWEG_KAFKA__BOOTSTRAP_SERVERS": bootstrap_servers,
            "THALWEG_STORAGE__DATA_DIR": str(data_dir),
            "THALWEG_WORKER__METRICS_PORT": str(metrics_port),
            "THALWEG_SERVICE__HOST": self.settings.service.host,
            "THALWEG_SERVICE__PORT": str(service_port),
        }
        return [
            ProcessPart(
                "The worker",
                [*self.command, "worker"],
                environment=without_settings(environment, WorkerSettings.model_fields),
                ready_url=f"http://{reachable(self.settings.worker.metrics_host)}:{metrics_port}/readyz",
                log_file=logs / "worker.log",
                grace_seconds=_WORKER_GRACE_SECONDS,
            ),
            ProcessPart(
                "The query service",
                [*self.command, "serve"],
                environment=environment,
                ready_url=f"{service_url}/readyz",
                log_file=logs / "service.log",
                grace_seconds=_SERVICE_GRACE_SECONDS,
            ),
        ]

    def _settings_file(self, data_dir: Path) -> dict[str, str]:
        """The parts read the file that was found here, wherever that was."""
        file = find_file(data_dir)
        return {} if file is None else {CONFIG_FILE_VARIABLE: str(file.absolute())}

    @asynccontextmanager
    async def _running(self, part: Part) -> AsyncIterator[RunningPart]:
        self._parts.append(part)
        async with AsyncExitStack() as stack:
            if self.show_logs is not None:
                await stack.enter_async_context(_background(follow(part.log_file, part.name, self.show_logs)))
            stack.push_async_callback(part.stop)
            runner = PartRunner(part, self.say)
            task = await stack.enter_async_context(_background(runner.run()))
            yield runner, task

    async def _all_ready(
        self, running_parts: Sequence[RunningPart], began: float, beside: Sequence[RunningPart] = ()
    ) -> None:
        """Each is said when it is ready, with the seconds since `began`. Raises what ends one of them, or of those
        `beside` them."""

        async def ready(runner: PartRunner) -> None:
            await runner.ready.wait()
            self.steps.say_done(f"{runner.part.name} has started", time.monotonic() - began)

        async def each_ready() -> None:
            await asyncio.gather(*(ready(runner) for runner, _ in running_parts))

        slow = asyncio.get_running_loop().call_later(_SLOW_START_SECONDS, self._say_who_is_slow, running_parts)
        try:
            async with _background(each_ready()) as all_ready:
                await _first_to_end([all_ready, *(task for _, task in (*running_parts, *beside))])
        finally:
            slow.cancel()

    def _say_who_is_slow(self, running_parts: Sequence[RunningPart]) -> None:
        for runner, _ in running_parts:
            if not runner.ready.is_set():
                self.say(f"Still waiting for {runner.part.name}. Its log: {runner.part.log_file}")


@asynccontextmanager
async def _background(work: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(work)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _first_to_end(waited: Sequence[asyncio.Future[Any]]) -> None:
    """Returns, or raises what it raised, when one of them is done."""
    done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
    for one in done:
        one.result()


def choose_kafka_port(asked: int | None) -> tuple[int, str | None]:
    """The port for the embedded broker, and a message about it.

    A port that was asked for is taken as it is (0: a free one); else it is 9092, or a free one when that is taken.
    """
    if asked is not None:
        return asked or free_port(), None
    if is_free(DEFAULT_KAFKA_PORT):
        return DEFAULT_KAFKA_PORT, None
    port = free_port()
    return port, f"Port {DEFAULT_KAFKA_PORT} is in use, so Kafka takes port {port}. Choose one with --kafka-port."
