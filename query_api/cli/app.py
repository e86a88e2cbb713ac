"""The query service's commands: `thalweg serve`, `search` and `status`; and what commands share.

What takes time to import is imported in the command that needs it.
"""

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.errors import Failure, plain_failures
from schemas.terminal import plain_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from query_api.cli.display import PlainConsole
    from query_api.client import ServiceClient

app = typer.Typer()

DataDir = Annotated[Path | None, typer.Option(help="The data directory.", show_default="thalweg-data", file_okay=False)]
Url = Annotated[str | None, typer.Option(help="The service's address, instead of what runs on the data directory.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command()
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
        given(storage={"data_dir": data_dir}, service={"host": host, "port": port}, kafka={"bootstrap_servers": kafka})
    )
    serve_until_stopped(settings, log_level.upper())


@app.command()
@plain_failures()
def search(
    query: Annotated[str, typer.Argument(help="The question, in plain words.")],
    k: Annotated[int, typer.Option("-k", "--k", min=1, help="Hits.")] = 10,
    mode: Annotated[
        str | None,
        typer.Option(
            help="hybrid, vector, keyword, structured, graph, graph_rerank or global.", show_default="by the question"
        ),
    ] = None,
    collection: Annotated[str | None, typer.Option(help="This collection only.")] = None,
    group: Annotated[str, typer.Option(help="One hit a passage, chunk or document.")] = "passage",
    filters: Annotated[
        list[str] | None,
        typer.Option("--filter", help="Only documents with field=value, a|b, !=, <, <=, >, >=; may be repeated."),
    ] = None,
    decompose: Annotated[
        bool, typer.Option("--decompose", help="Search what is compared, or each sentence or question, by itself too.")
    ] = False,
    names: Annotated[
        list[str] | None,
        typer.Option("--name", help="What the question names, in place of what is read from it; may be repeated."),
    ] = None,
    reranker: Annotated[
        bool | None,
        typer.Option(help="Have the service's re-ranker order the first hits.", show_default="where it has one"),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each hit mentions and states, and what speaks for it.")
    ] = False,
    after: Annotated[str | None, typer.Option(help="A token from a write: show at least that.")] = None,
    wait_seconds: Annotated[float, typer.Option(min=0, max=60, help="How long to wait for --after.")] = 10.0,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Search, and print hits as they stream in, with the path by which the graph found them."""
    from query_api.cli.display import PlainConsole, show_end, show_hit

    parameters = {
        "q": query,
        "k": k,
        "mode": mode,
        "collection": collection,
        "group": group,
        "filter": filters,
        "decompose": decompose or None,
        "names": names,
        "reranker": reranker,
        "explain": explain or None,
        "after": after,
        "wait_seconds": wait_seconds,
    }
    params = {name: value for name, value in parameters.items() if value not in (None, [])}
    with closing(service_client(url, data_dir)) as client:
        if as_json:
            print_json(client.get("/v1/search", params))
            return
        console = PlainConsole(soft_wrap=True)
        meta: dict[str, Any] = {}
        for name, body in client.events("/v1/search", params):
            if name == "meta":
                meta = body
            elif name == "hit":
                show_hit(console, body)
            elif name == "done":
                show_end(console, body, meta)
            elif name == "error":
                raise Failure(f"{body['title']}: {body['detail']}")


@app.command()
@plain_failures()
def status(as_json: Json = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Show how the service is: lag, freshness, stores. Exit code 3 when none is running."""
    from query_api.cli.display import show_status

    show_answer("/v1/status", {}, show_status, as_json=as_json, url=url, data_dir=data_dir)


def given(**blocks: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Blocks of settings with only what the command line gave."""
    found = {name: {key: value for key, value in block.items() if value is not None} for name, block in blocks.items()}
    return {name: block for name, block in found.items() if block}


def show_answer(
    path: str,
    params: dict[str, Any],
    show: "Callable[[PlainConsole, dict[str, Any]], None]",
    *,
    as_json: bool,
    url: str | None,
    data_dir: Path | None,
) -> None:
    """GET the path with the parameters that are given, and print the answer."""
    from query_api.cli.display import PlainConsole

    with closing(service_client(url, data_dir)) as client:
        answer = client.get(path, {name: value for name, value in params.items() if value is not None} or None)
    if as_json:
        print_json(answer)
    else:
        show(PlainConsole(soft_wrap=True), answer)


def service_client(url: str | None, data_dir: Path | None) -> "ServiceClient":
    """A client of the service at `url`, else of the one that runs on the data directory; with the settings' key."""
    from query_api.client import ServiceClient, locate_service
    from query_api.settings import ServiceSettings
    from schemas.runtime import find_running

    settings = ServiceSettings.load(given(storage={"data_dir": data_dir}))
    key = settings.service.api_key
    folder = settings.storage.data_dir
    located = locate_service(url, folder, named="data_dir" in settings.storage.model_fields_set)
    announced = url is None and find_running(folder) is not None
    return ServiceClient(located, None if key is None else key.get_secret_value(), starting=announced)


def print_json(answer: dict[str, Any]) -> None:
    """One JSON object, for programs."""
    print(plain_json(json.dumps(answer, ensure_ascii=False, indent=2)))
