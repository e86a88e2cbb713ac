"""The commands that run and prepare things: `thalweg up`, `kafka`, `worker` and `topics`.

Everything heavy is imported inside the command that needs it, so that the others answer at once.
"""

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import Exit, WrongSetting, complain, plain_failures

if TYPE_CHECKING:
    from schemas.settings import ProcessSettings
    from streams.loader.http_publishing import Service

app = typer.Typer(no_args_is_help=True)

DataDir = Annotated[
    Path | None,
    typer.Option(help="The data directory: everything on disk.", show_default="thalweg-data", file_okay=False),
]
KafkaPort = Annotated[
    int | None,
    typer.Option(min=0, max=65535, help="Port for the embedded Kafka; 0 takes a free one.", show_default="9092"),
]
BootstrapServers = Annotated[
    str | None, typer.Option(help="host:port[,host:port…] of a Kafka cluster, instead of what `up` runs.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

_POLL_SECONDS = 0.2


@app.command(epilog="Example: thalweg up --data-dir data --port 8421")
@plain_failures()
def up(
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port of the query service.", show_default="8420")
    ] = None,
    data_dir: DataDir = None,
    kafka_port: KafkaPort = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show the parts' logs.")] = False,
) -> None:
    """Run everything for one machine: Kafka, topics, worker and query service. Ctrl-C ends it.

    Uses the cluster in THALWEG_KAFKA__BOOTSTRAP_SERVERS instead of a Kafka of its own when that is set.
    """
    import asyncio

    from schemas.runtime import Running
    from streams.supervisor.data_directory import make_directory, set_umask
    from streams.supervisor.steps import StartSteps
    from streams.supervisor.supervisor import Supervisor, UpSettings

    _quiet_kafka_client()
    settings = UpSettings.load({"storage": {"data_dir": data_dir}, "service": {"port": port}})

    if warning := set_umask(make_directory(settings.storage.data_dir)):
        complain(warning)

    def ready(running: Running) -> None:
        print(
            f"Thalweg is ready: {running.service_url} (web console and API; Kafka {running.kafka}, "
            f"data {settings.storage.data_dir}). Ctrl-C ends it.",
            flush=True,
        )

    async def run() -> None:
        with closing(StartSteps()) as steps:
            await Supervisor(
                settings,
                environment=os.environ,
                say=complain,
                ready=ready,
                steps=steps,
                show_logs=partial(print, file=sys.stderr, flush=True) if verbose else None,
                kafka_port=kafka_port,
            ).run()

    asyncio.run(run())


@app.command(epilog="Example: thalweg kafka --kafka-port 9093")
@plain_failures()
def kafka(data_dir: DataDir = None, kafka_port: KafkaPort = None) -> None:
    """Run only the embedded Kafka, in the foreground. Ctrl-C ends it."""
    from streams.embedded_kafka.broker import EmbeddedKafka
    from streams.embedded_kafka.jars import JarProgress
    from streams.supervisor.data_directory import make_directory, set_umask
    from streams.supervisor.supervisor import UpSettings, choose_kafka_port

    _quiet_kafka_client()
    settings = UpSettings.load({"storage": {"data_dir": data_dir}})
    data_dir = make_directory(settings.storage.data_dir)
    if warning := set_umask(data_dir):
        complain(warning)
    stopping = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: stopping.set())
    port, note = choose_kafka_port(kafka_port)
    if note:
        complain(note)
    with closing(JarProgress()) as progress:
        broker = EmbeddedKafka(data_dir, port=port, max_record_bytes=settings.kafka.max_record_bytes, progress=progress)
        with broker:
            print(f"Kafka is ready: {broker.bootstrap_servers}. Ctrl-C ends it. In other terminals:", flush=True)
            print(f"export THALWEG_KAFKA__BOOTSTRAP_SERVERS={broker.bootstrap_servers}", flush=True)
            while not stopping.wait(_POLL_SECONDS):
                broker.require_alive()


@app.command(epilog="Example: thalweg worker --data-dir /srv/thalweg")
@plain_failures(stderr_is_log=True)
def worker(
    data_dir: DataDir = None,
    bootstrap_servers: BootstrapServers = None,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port for /metrics and /readyz.", show_default="a free one")
    ] = None,
    metrics_host: Annotated[str | None, typer.Option(help="Address for these.", show_default="127.0.0.1")] = None,
    build: Annotated[str | None, typer.Option(hidden=True, help="The generation to build beside the live one.")] = None,
) -> None:
    """Run one worker: documents from the topics into the stores."""
    from streams.loader.loader import bootstrap_servers as find_servers
    from streams.settings import WorkerSettings
    from streams.supervisor.data_directory import WORKER_LOCK, make_directory, require_free

    blocks: dict[str, dict[str, Any]] = {
        "storage": {"data_dir": data_dir},
        "kafka": {"bootstrap_servers": bootstrap_servers},
        "worker": {"metrics_port": metrics_port, "metrics_host": metrics_host},
    }
    settings = WorkerSettings.load(blocks)
    settings = WorkerSettings.load({**blocks, "kafka": {"bootstrap_servers": find_servers(settings)}})
    data_dir = make_directory(settings.storage.data_dir)
    if build is None:
        require_free(data_dir, WORKER_LOCK, "worker")  # before what takes seconds
    from streams.app import run_worker  # Faust, both stores and the model

    raise SystemExit(run_worker(settings, build))


@app.command(epilog="Example: thalweg topics --create")
@plain_failures()
def topics(
    create: Annotated[bool, typer.Option("--create", help="Make those that are missing; change none.")] = False,
    data_dir: DataDir = None,
    bootstrap_servers: BootstrapServers = None,
    as_json: Json = False,
) -> None:
    """Show the topics, what is missing, and what is not as the settings ask. Exits with 1 when one is missing."""
    import asyncio

    from indexer.generation_folders import current_generation
    from schemas.topics import topic_specs
    from streams.kafka.stores_log import own_documents_topic
    from streams.kafka.topics import ensure_topics, inspect_topics
    from streams.loader.loader import bootstrap_servers as find_servers
    from streams.settings import WorkerSettings

    _quiet_kafka_client()
    settings = WorkerSettings.load(
        {"storage": {"data_dir": data_dir}, "kafka": {"bootstrap_servers": bootstrap_servers}}
    )
    generation = current_generation(settings.storage.data_dir)
    specs = topic_specs(settings.kafka, generation.name if generation else None)
    look = ensure_topics if create else inspect_topics
    connection = settings.kafka.at(find_servers(settings))
    if create:
        asyncio.run(own_documents_topic(connection, settings.kafka, settings.storage.data_dir))
    reports = asyncio.run(look(connection, specs))
    if as_json:
        print(json.dumps([asdict(report) for report in reports]))
    else:
        for report in reports:
            print(report.sentence())
    if any(report.outcome == "missing" for report in reports):
        raise typer.Exit(Exit.FAILED)


def _quiet_kafka_client() -> None:
    """Its failures reach the person as exceptions; the same as log lines would only be in the way."""
    for client in ("aiokafka", "kafka"):
        logging.getLogger(client).setLevel(logging.CRITICAL)


@dataclass(frozen=True)
class Joined:
    """What commands here need of the query service: neither process imports the other, so `thalweg.py` hands it down.

    `service_client` opens a client of the service at an address, or of the one on the data directory of the command
    line, with the key that the settings name. `service_settings` imports the class of its settings."""

    service_client: "Callable[[str | None, Path | None], Service]"
    service_settings: "Callable[[], type[ProcessSettings]]"


def joined(context: typer.Context) -> Joined:
    """What was handed down. Raises WrongSetting where nothing was: the command runs without `thalweg`."""
    if not isinstance(context.obj, Joined):
        raise WrongSetting("This needs the command 'thalweg' itself.")
    return context.obj
