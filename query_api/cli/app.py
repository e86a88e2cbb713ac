"""The query service's commands `thalweg serve`, `status` and `mcp`; and what commands share.

What takes time to import is imported in the command that needs it.
"""

import json
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import plain_failures
from schemas.terminal import plain_json, say

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from query_api.client import ServiceClient

app = typer.Typer()

DataDir = Annotated[Path | None, typer.Option(help="The data directory.", show_default="thalweg-data", file_okay=False)]
Url = Annotated[str | None, typer.Option(help="The service's address, instead of what runs on the data directory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AsOf = Annotated[
    str | None, typer.Option(help="As a kept snapshot has it: 2h or 7d ago, a time, or the token of a write.")
]


@app.command(epilog="Example: thalweg serve --data-dir /srv/thalweg --port 8421")
@plain_failures(stderr_is_log=True)
def serve(
    data_dir: DataDir = None,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on; any but loopback needs a key.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.", show_default="8420")
    ] = None,
    kafka: Annotated[
        str | None, typer.Option("--bootstrap-servers", help="host:port[,…] of Kafka, instead of what runs here.")
    ] = None,
    log_level: Annotated[str, typer.Option(help="DEBUG, INFO, WARNING or ERROR.")] = "INFO",
) -> None:
    """Run the query service: search, documents, graph and status over HTTP."""
    from query_api.cli.server import serve as serve_until_stopped
    from query_api.settings import ServiceSettings

    settings = ServiceSettings.load(
        {
            "storage": {"data_dir": data_dir},
            "service": {"host": host, "port": port},
            "kafka": {"bootstrap_servers": kafka},
        }
    )
    serve_until_stopped(settings, log_level.upper())


@app.command(epilog="Example: thalweg status --watch --interval 2")
@plain_failures()
def status(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Refresh it in place until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, max=3_600, help="Seconds between, with --watch.")] = 1.0,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show how the service is: lag, freshness, stores. Exit code 3 when none is running.

    With --watch also lag by partition and records a second; where standard output is not a terminal it is a line
    each time, with --json one JSON object a line. It continues when the service restarts.
    """
    if watch:
        from query_api.cli.watch import PATIENCE_SECONDS
        from query_api.cli.watch import watch as watch_status

        patience = max(interval, PATIENCE_SECONDS)
        connect = partial(service_client, url, data_dir, patience_seconds=patience)
        watch_status(connect, interval_seconds=interval, as_json=as_json)
        return
    with closing(service_client(url, data_dir)) as client:
        answer = client.get("/v1/status")
    if as_json:
        print_json(answer)
        return
    from query_api.cli.display import PlainConsole, show_status

    show_status(PlainConsole(soft_wrap=True), answer)


@app.command(epilog="Example: thalweg mcp --url http://127.0.0.1:8420")
@plain_failures()
def mcp(url: Url = None, data_dir: DataDir = None) -> None:
    """Give an assistant the service's tools by the Model Context Protocol, over standard input and output.

    The assistant starts it and ends it. What it asks is asked of the service's /mcp, with the key of the settings.
    """
    from query_api.mcp.proxy import serve_stdio

    with closing(service_client(url, data_dir)) as client:
        serve_stdio(client)


def show_answer(
    path: str,
    params: dict[str, Any],
    lines: "Callable[[dict[str, Any]], Iterable[str]]",
    *,
    as_json: bool,
    url: str | None,
    data_dir: Path | None,
) -> None:
    """GET the path with the parameters that are given, and print the lines of the answer."""
    with closing(service_client(url, data_dir)) as client:
        answer = client.get(path, {name: value for name, value in params.items() if value is not None} or None)
    print_answer(answer, lines(answer), as_json=as_json)


def service_client(
    url: str | None, data_dir: Path | None, *, key: str | None = None, patience_seconds: float | None = None
) -> "ServiceClient":
    """A client of the service at `url`, else of the one that runs on the data directory; with `key`, or the settings'.

    With `patience_seconds` an answer is to come at once, or not at all.
    """
    from query_api.client import ServiceClient, locate_service
    from query_api.settings import ServiceSettings

    settings = ServiceSettings.load({"storage": {"data_dir": data_dir}})
    own_key = settings.service.api_key
    folder = settings.storage.data_dir
    address, installation = locate_service(url, folder, named="data_dir" in settings.storage.model_fields_set)
    secret = key or (None if own_key is None else own_key.get_secret_value())
    if patience_seconds is not None:
        return ServiceClient(
            address, secret, installation=installation, silence_seconds=patience_seconds, busy_seconds=0
        )
    return ServiceClient(address, secret, installation=installation, starting=bool(installation))


def print_answer(answer: object, lines: "Iterable[str]", *, as_json: bool) -> None:
    """For programs, or the lines for a person."""
    if as_json:
        print_json(answer)
    else:
        say("\n".join(lines))


def print_json(answer: object) -> None:
    """One JSON object, or a list of some, for programs."""
    print(plain_json(json.dumps(answer, ensure_ascii=False, indent=2)))
