"""The commands `thalweg retrievals` and `thalweg analytics`: what was searched and shown, asked of the service."""

from contextlib import closing
from typing import Annotated
from urllib.parse import quote

import typer

from query_api.cli.app import DataDir, Json, Url, print_json, service_client
from schemas.errors import plain_failures

app = typer.Typer()
retrievals_app = typer.Typer(no_args_is_help=True, help="Look at what was searched, and what was found.")
analytics_app = typer.Typer(no_args_is_help=True, help="See how searches are used.")
app.add_typer(retrievals_app, name="retrievals")
app.add_typer(analytics_app, name="analytics")

Collection = Annotated[str | None, typer.Option(help="Of this collection only.")]
Since = Annotated[str | None, typer.Option(help="Only from then on: 15m, 2h, 7d ago, or an RFC 3339 time.")]
Limit = Annotated[int, typer.Option(min=1, max=200, help="How many, at most.")]


@retrievals_app.command("list")
@plain_failures()
def list_retrievals(
    collection: Collection = None,
    since: Since = None,
    limit: Limit = 20,
    cursor: Annotated[str | None, typer.Option(help="Go on after an earlier page.")] = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List searches, newest first: time, seconds, hits, question."""
    from query_api.cli.display import PlainConsole, show_retrievals

    asked = {"collection": collection, "since": since, "limit": limit, "cursor": cursor}
    with closing(service_client(url, data_dir)) as client:
        page = client.get("/v1/retrievals", {name: value for name, value in asked.items() if value is not None})
    if as_json:
        print_json(page)
    else:
        show_retrievals(PlainConsole(soft_wrap=True), page)


@retrievals_app.command("show")
@plain_failures()
def show_retrieval(
    retrieval_id: Annotated[str, typer.Argument(help="The id that a search ends with.")],
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show one search: its snapshot, its hits with each channel's rank and score, and what was said of them."""
    from query_api.cli.display import PlainConsole
    from query_api.cli.display import show_retrieval as show

    with closing(service_client(url, data_dir)) as client:
        retrieval = client.get(f"/v1/retrievals/{quote(retrieval_id, safe='')}")
    if as_json:
        print_json(retrieval)
    else:
        show(PlainConsole(soft_wrap=True), retrieval)


@analytics_app.command()
@plain_failures()
def popular(
    collection: Collection = None,
    since: Since = None,
    limit: Limit = 20,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List the chunks that are hits most often, with their mean rank and what was said of them."""
    from query_api.cli.display import PlainConsole, show_popular

    asked = {"collection": collection, "since": since, "limit": limit}
    with closing(service_client(url, data_dir)) as client:
        answer = client.get(
            "/v1/analytics/popular-chunks", {name: value for name, value in asked.items() if value is not None}
        )
    if as_json:
        print_json(answer)
    else:
        show_popular(PlainConsole(soft_wrap=True), answer)
