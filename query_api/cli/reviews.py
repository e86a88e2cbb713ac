"""The commands `thalweg reviews …`: entities that may be one, and what people decided."""

import json
from contextlib import closing
from typing import Annotated, get_args
from urllib.parse import quote

import typer

from query_api.cli.app import DataDir, Json, Url, print_json, service_client, show_list
from query_api.cli.completion import AllCollections, OneCollection, checked, choice, offered
from schemas.choices import ReviewState
from schemas.errors import plain_failures
from schemas.terminal import say

app = typer.Typer()
reviews_app = typer.Typer(no_args_is_help=True, help="See entities that may be one, and decide.")
app.add_typer(reviews_app, name="reviews")

PAGE_LIMIT = 1_000
DECISIONS = ("accept", "reject", "undo")


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


@reviews_app.command("decide", epilog="Example: thalweg reviews decide 8d4d7c6e1f0b4a6c9d2e5f708192a3b4 accept")
@plain_failures()
def decide_review(
    review: Annotated[str, typer.Argument(help="The review, as 'thalweg reviews list' names it.")],
    decision: Annotated[
        str,
        typer.Argument(
            help="That the two are one entity, or different; undo takes a decision, merge or split back.",
            parser=checked(DECISIONS),
            autocompletion=offered(DECISIONS),
            metavar="|".join(DECISIONS),
        ),
    ],
    collection: OneCollection = None,
    by: Annotated[str | None, typer.Option(help="Who says so, as lists are to show it.")] = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Say whether the two of a review are one entity, or take back what was said."""
    body = {"collection": collection, "decision": decision, "by": by}
    content = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
    with closing(service_client(url, data_dir)) as client:
        answer = client.post(f"/v1/reviews/{quote(review, safe='')}", content)
    if as_json:
        print_json(answer)
    else:
        say(f"{answer['id']} in the collection {answer['collection']}: in the log at {answer['position']}.")
