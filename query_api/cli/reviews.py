"""The commands `thalweg reviews …`: entities that may be one, and what people decided."""

from typing import Annotated, get_args
from urllib.parse import quote

import typer

from query_api.cli.app import DataDir, Json, Url, show_list
from query_api.cli.completion import AllCollections, OneCollection, choice
from query_api.cli.edits import By, send_edit
from schemas.choices import ReviewState
from schemas.errors import plain_failures

app = typer.Typer()
reviews_app = typer.Typer(no_args_is_help=True, help="See entities that may be one, and decide.")
app.add_typer(reviews_app, name="reviews")

PAGE_LIMIT = 1_000
Id = Annotated[str, typer.Argument(help="The review, as 'thalweg reviews list' names it.")]


@reviews_app.callback()
def reviews() -> None:
    """See entities that may be one, and decide."""


@reviews_app.command("list", epilog="Example: thalweg reviews list --min-score 0.8")
@plain_failures()
def list_reviews(
    collection: AllCollections = None,
    state: Annotated[
        str, choice((*get_args(ReviewState), "decided", "all"), help="Those that wait for you, or were decided.")
    ] = "open",
    min_score: Annotated[float, typer.Option(min=0, max=1, help="Leave out open ones with a lower score.")] = 0.0,
    limit: Annotated[int, typer.Option(min=1, help="Reviews, at most.")] = 50,
    cursor: Annotated[str | None, typer.Option(help="What the list before named for more.")] = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List pairs of entities that may be one, the likeliest first, or what was decided."""
    from query_api.cli.graph_display import show_reviews

    params = {"collection": collection, "state": state, "min_score": min_score, "cursor": cursor}
    show_list(
        "/v1/reviews",
        params,
        "reviews",
        show_reviews,
        limit=limit,
        page_limit=PAGE_LIMIT,
        as_json=as_json,
        url=url,
        data_dir=data_dir,
    )


@reviews_app.command("accept", epilog="Example: thalweg reviews accept r_17 --by ann")
@plain_failures()
def accept_review(
    review: Id,
    collection: OneCollection = None,
    by: By = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Say that the two are one entity."""
    _decide("accept", review, collection, by, as_json=as_json, url=url, data_dir=data_dir)


@reviews_app.command("reject", epilog="Example: thalweg reviews reject r_17 --by ann")
@plain_failures()
def reject_review(
    review: Id,
    collection: OneCollection = None,
    by: By = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Say that the two are different."""
    _decide("reject", review, collection, by, as_json=as_json, url=url, data_dir=data_dir)


@reviews_app.command("undo", epilog="Example: thalweg reviews undo r_17")
@plain_failures()
def undo_review(
    review: Id,
    collection: OneCollection = None,
    by: By = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Take back a decision, a merge or a split."""
    _decide("undo", review, collection, by, as_json=as_json, url=url, data_dir=data_dir)


def _decide(
    decision: str, review: str, collection: str | None, by: str | None, *, as_json: bool, url: Url, data_dir: DataDir
) -> None:
    path = f"/v1/reviews/{quote(review, safe='')}"
    body = {"collection": collection, "decision": decision, "by": by}
    send_edit("POST", path, body, as_json=as_json, url=url, data_dir=data_dir)
