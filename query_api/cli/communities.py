"""`thalweg graph communities`: communities of entities."""

from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from query_api.cli.app import DataDir, Json, Url, show_answer, show_list
from query_api.cli.completion import AllCollections, choice
from schemas.choices import CommunityLevel
from schemas.errors import plain_failures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from query_api.cli.display import PlainConsole


PAGE_LIMIT = 200


@plain_failures()
def show_communities(
    community_id: Annotated[str | None, typer.Argument(help="The id of one, to be shown with its members.")] = None,
    collection: AllCollections = None,
    level: Annotated[
        str | None, choice(get_args(CommunityLevel), help="How fine they are.", show_default="all")
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", "-q", help="Only those with these words in title or members.")
    ] = None,
    cursor: Annotated[str | None, typer.Option(help="The next_cursor of the page before.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Communities, at most; of one, members, 200 at most.")] = 20,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List communities of entities, largest first, or show one with its summary, members and neighbours."""
    if community_id is not None:
        path, params, show = f"/v1/communities/{community_id}", {"limit": min(limit, PAGE_LIMIT)}, _show_one
        show_answer(path, params, show, as_json=as_json, url=url, data_dir=data_dir)
        return
    chosen = {"collection": collection, "level": level, "q": query, "cursor": cursor}
    show_list(
        "/v1/communities",
        chosen,
        "communities",
        _show_list,
        limit=limit,
        page_limit=PAGE_LIMIT,
        as_json=as_json,
        url=url,
        data_dir=data_dir,
    )


def _show_list(console: "PlainConsole", answer: dict[str, Any]) -> None:
    from rich.markup import escape

    if not answer["communities"]:
        console.print("There are no such communities.")
    for community in answer["communities"]:
        for line in _lines(community):
            console.print(escape(line))
    if answer["next_cursor"]:
        console.print(f"There are more: --cursor {answer['next_cursor']}")


def _show_one(console: "PlainConsole", answer: dict[str, Any]) -> None:
    from rich.markup import escape

    for line in _lines(answer):
        console.print(escape(line))
    if answer["parent_community"]:
        console.print(escape(f"  part of {_named(answer['parent_community'])}"))
    for child in answer["children"]:
        console.print(escape(f"  holds {_named(child)}"))
    for member in answer["members"]:
        kind = f" ({member['type']})" if member["type"] else ""
        console.print(escape(f"  - {member['label']}{kind}"))


def _lines(community: dict[str, Any]) -> "Iterator[str]":
    yield f"{community['id']}  {community['collection']}  {community['level']}, {community['size']} entities"
    yield f"  {community['title']}"
    for sentence in community["summary"]:
        yield f"    {sentence['text']} [{sentence['document_id']}]"


def _named(community: dict[str, Any]) -> str:
    return f"{community['title']} ({community['level']}, {community['size']} entities): {community['id']}"
