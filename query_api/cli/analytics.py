"""The commands `thalweg retrievals` and `thalweg analytics`: what was searched, and which chunks are popular."""

from typing import Annotated
from urllib.parse import quote

import typer

from query_api.cli.app import DataDir, Json, Url, show_answer, show_list
from query_api.cli.completion import collections
from schemas.errors import plain_failures

app = typer.Typer()
retrievals_app = typer.Typer(no_args_is_help=True, help="Look at what was searched, and what was found.")
analytics_app = typer.Typer(no_args_is_help=True, help="See how searches are used.")
app.add_typer(retrievals_app, name="retrievals")
app.add_typer(analytics_app, name="analytics")

Collection = Annotated[str | None, typer.Option(help="Of this collection only.", autocompletion=collections)]
Since = Annotated[str | None, typer.Option(help="Only from then on: 15m, 2h, 7d ago, or an RFC 3339 time.")]
PAGE_LIMIT = 200
Limit = Annotated[int, typer.Option(min=1, max=PAGE_LIMIT, help="How many, at most.")]


@retrievals_app.command("list", epilog="Example: thalweg retrievals list --since 2h --limit 5")
@plain_failures()
def list_retrievals(
    collection: Collection = None,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, at most.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="Go on after an earlier page.")] = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List searches, newest first: time, seconds, hits, question."""
    from query_api.cli.display import show_retrievals

    params = {"collection": collection, "since": since, "cursor": cursor}
    show_list(
        "/v1/retrievals",
        params,
        "retrievals",
        show_retrievals,
        limit=limit,
        page_limit=PAGE_LIMIT,
        as_json=as_json,
        url=url,
        data_dir=data_dir,
    )


@retrievals_app.command("show", epilog="Example: thalweg retrievals show r_01a2147edab989265658dba4cb64")
@plain_failures()
def show_retrieval(
    retrieval_id: Annotated[str, typer.Argument(help="The id that a search ends with.")],
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show one search: its snapshot, its hits with each channel's rank and score, and feedback on them."""
    from query_api.cli.display import show_retrieval as show

    path = f"/v1/retrievals/{quote(retrieval_id, safe='')}"
    show_answer(path, {}, show, as_json=as_json, url=url, data_dir=data_dir)


@analytics_app.command(epilog="Example: thalweg analytics popular --since 7d")
@plain_failures()
def popular(
    collection: Collection = None,
    since: Since = None,
    limit: Limit = 20,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List the chunks that are hits most often, with their mean rank and feedback."""
    from query_api.cli.display import show_popular

    params = {"collection": collection, "since": since, "limit": limit}
    show_answer("/v1/analytics/popular-chunks", params, show_popular, as_json=as_json, url=url, data_dir=data_dir)
