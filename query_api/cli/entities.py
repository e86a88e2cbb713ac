"""The commands `thalweg entities …`: list them, show one."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from query_api.cli.app import AsOf, DataDir, Json, Url, show_answer, show_list
from query_api.cli.completion import AllCollections, OneCollection, entity_types
from query_api.cli.completion import entities as entities_named
from schemas.errors import plain_failures

app = typer.Typer()
PAGE_LIMIT = 1_000
entities_app = typer.Typer(no_args_is_help=True, help="Look at the entities that documents name.")
app.add_typer(entities_app, name="entities")


@entities_app.callback()
def entities() -> None:
    """Look at the entities that documents name."""


@entities_app.command("list", epilog="Example: thalweg entities list --prefix harb --type place")
@plain_failures()
def list_entities(
    prefix: Annotated[str, typer.Option(help="A word of the name begins so.")] = "",
    query: Annotated[str, typer.Option("--query", "-q", help="What passages say that mention them.")] = "",
    entity_type: Annotated[
        str | None, typer.Option("--type", help="What they are, such as person.", autocompletion=entity_types)
    ] = None,
    collection: AllCollections = None,
    sample: Annotated[int | None, typer.Option(min=0, help="Any of them at random, by this seed.")] = None,
    cursor: Annotated[str | None, typer.Option(help="The next_cursor of the page before.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Entities, at most.")] = 30,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List entities, those that are mentioned most first."""
    from query_api.cli import entity_display

    words = {"prefix": prefix, "q": query, "type": entity_type}
    params: dict[str, Any] = words | {"collection": collection, "sample": sample, "cursor": cursor}
    show = entity_display.show_list
    show_list(
        "/v1/entities",
        params,
        "entities",
        show,
        limit=limit,
        page_limit=PAGE_LIMIT,
        as_json=as_json,
        url=url,
        data_dir=data_dir,
    )


@entities_app.command("show", epilog="Example: thalweg entities show Beacon --collection wiki")
@plain_failures()
def show_entity(
    entity: Annotated[str, typer.Argument(help="Its name or id.", autocompletion=entities_named)],
    collection: OneCollection = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Of each kind of thing that is known of it.")] = 10,
    since: Annotated[str | None, typer.Option(help="Only what is stated since, or withdrawn: 2h, 7d, a time.")] = None,
    as_of: AsOf = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show an entity: its definition, statements with their sentences, documents, neighbours."""
    from query_api.cli import entity_display

    path = f"/v1/entities/{quote(entity, safe='')}"
    params: dict[str, Any] = {"collection": collection, "limit": limit, "since": since, "as_of": as_of}
    params = {name: value for name, value in params.items() if value is not None}
    show_answer(path, params, entity_display.show_one, as_json=as_json, url=url, data_dir=data_dir)
