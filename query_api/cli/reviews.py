"""The commands `thalweg reviews …`: entities that may be one, statements that contradict each other, decisions."""

import json
from contextlib import closing
from typing import Annotated, Any, get_args
from urllib.parse import quote

import typer

from query_api.cli.app import DataDir, Json, Url, print_answer, service_client
from query_api.cli.completion import AllCollections, OneCollection, checked, choice, offered
from query_api.cli.entities import facts_lines
from query_api.cli.lists import Cursor, Limit, Listing
from schemas.choices import ReviewKind, ReviewState
from schemas.errors import plain_failures

app = typer.Typer()
reviews_app = typer.Typer(no_args_is_help=True, help="See what may be one or contradicts each other, and decide.")
app.add_typer(reviews_app, name="reviews")

DECISIONS = ("accept", "reject", "undo")


def _state(review: dict[str, Any]) -> str:
    """What is known of the decision."""
    said = [review["state"], *([] if review["kind"] == "duplicate" else [review["kind"]])]
    if review["score"] is not None:
        said.append(f"{review['score']:.2f}")
    if review["by"]:
        said.append(f"by {review['by']}")
    if review["overruled"]:
        said.append("overruled")
    return ", ".join(said)


def _entities(review: dict[str, Any]) -> str:
    """The entities, then why, and what is stated."""
    kinds = [f" ({each['type']})" if each["type"] else "" for each in review["entities"]]
    names = [each["name"] or each["id"] for each in review["entities"]]
    who = " / ".join(name + kind for name, kind in zip(names, kinds, strict=True))
    why = review["reason"] or (f"as {review['name']}" if review["name"] else "")
    return "\n".join([who, *filter(None, [why]), *facts_lines(review["statements"])])


REVIEWS = Listing(
    "/v1/reviews",
    "reviews",
    {
        "id": lambda review: review["id"],
        "collection": lambda review: review["collection"],
        "state": _state,
        "entities": _entities,
    },
    page_limit=1_000,
)


@reviews_app.command("list", epilog="Example: thalweg reviews list --min-score 0.8")
@plain_failures()
def list_reviews(
    collection: AllCollections = None,
    state: Annotated[
        str, choice((*get_args(ReviewState), "decided", "all"), help="Those that wait for you, or were decided.")
    ] = "open",
    kind: Annotated[str | None, choice(get_args(ReviewKind), help="Only this kind.")] = None,
    min_score: Annotated[float, typer.Option(min=0, max=1, help="Leave out open ones with a lower score.")] = 0.0,
    limit: Limit = 50,
    cursor: Cursor = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List what may be one and what contradicts each other, the likeliest first, or what was decided."""
    params = {"collection": collection, "state": state, "kind": kind, "min_score": min_score, "cursor": cursor}
    REVIEWS.show(params, limit=limit, as_json=as_json, url=url, data_dir=data_dir)


@reviews_app.command("decide", epilog="Example: thalweg reviews decide 8d4d7c6e1f0b4a6c9d2e5f708192a3b4 accept")
@plain_failures()
def decide_review(
    review: Annotated[str, typer.Argument(help="The review, as 'thalweg reviews list' names it.")],
    decision: Annotated[
        str,
        typer.Argument(
            help="accept: the two are one, or the statements contradict each other; reject: they are two, or both "
            "hold; undo takes a decision, merge or split back.",
            parser=checked(DECISIONS),
            autocompletion=offered(DECISIONS),
            metavar="|".join(DECISIONS),
        ),
    ],
    collection: OneCollection = None,
    by: Annotated[str | None, typer.Option(help="Your name, shown in lists.")] = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Say whether the two of a review are one entity, or its statements contradict; or take back what was said."""
    body = {"collection": collection, "decision": decision, "by": by}
    content = json.dumps({name: value for name, value in body.items() if value is not None}).encode()
    with closing(service_client(url, data_dir)) as client:
        answer = client.post(f"/v1/reviews/{quote(review, safe='')}", content)
    sentence = f"{answer['id']} in the collection {answer['collection']}: in the log at {answer['position']}."
    print_answer(answer, [sentence], as_json=as_json)
