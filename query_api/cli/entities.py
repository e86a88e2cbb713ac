"""The commands `thalweg entities …`: look at them, and what people make of them."""

from typing import Annotated, Any
from urllib.parse import quote

import typer

from query_api.cli.app import AsOf, DataDir, Json, Url, show_answer, show_list
from query_api.cli.completion import AllCollections, OneCollection, entity_types
from query_api.cli.completion import entities as entities_named
from query_api.cli.edits import By, send_edit
from schemas.consent import Yes, require_consent
from schemas.errors import WrongSetting, plain_failures

app = typer.Typer()
PAGE_LIMIT = 1_000
entities_app = typer.Typer(no_args_is_help=True, help="Look at entities; merge, rename, retype and split them.")
app.add_typer(entities_app, name="entities")


@entities_app.callback()
def entities() -> None:
    """Look at entities; merge, rename, retype and split them."""


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


@entities_app.command("paths", epilog="Example: thalweg entities paths Petrel Beacon")
@plain_failures()
def show_paths(
    source: Annotated[str, typer.Argument(help="The name or id of an entity.", autocompletion=entities_named)],
    target: Annotated[str, typer.Argument(help="That of another.", autocompletion=entities_named)],
    collection: OneCollection = None,
    max_steps: Annotated[int, typer.Option(min=1, max=6, help="Steps of a path, at most.")] = 4,
    limit: Annotated[int, typer.Option(min=1, max=20, help="Paths, at most.")] = 3,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show how two entities hang together, each step with its sentence."""
    from query_api.cli import entity_display

    params: dict[str, Any] = {"from": source, "to": target, "collection": collection}
    params |= {"max_steps": max_steps, "limit": limit}
    show_answer("/v1/paths", params, entity_display.show_paths, as_json=as_json, url=url, data_dir=data_dir)


@entities_app.command("merge", epilog="Example: thalweg entities merge Petrel 'Team Petrel' --name 'Team Petrel'")
@plain_failures()
def merge_entities(
    names: Annotated[
        list[str], typer.Argument(help="Names or ids of entities that are one.", autocompletion=entities_named)
    ],
    name: Annotated[str | None, typer.Option(help="How the one is called.", show_default="its commonest name")] = None,
    collection: OneCollection = None,
    by: By = None,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Make entities one; 'thalweg reviews undo' with the printed id takes it back."""
    require_consent(
        lambda: f"Make one entity of {' and '.join(names)}? 'thalweg reviews undo' takes it back.",
        yes=yes,
        unattended=True,
    )
    body = {"entities": names, "name": name, "collection": collection, "by": by}
    send_edit("POST", "/v1/entities/merge", body, as_json=as_json, url=url, data_dir=data_dir)


@entities_app.command("edit", epilog="Example: thalweg entities edit Petrel --type product")
@plain_failures()
def edit_entity(
    entity: Annotated[str, typer.Argument(help="Its name or id.", autocompletion=entities_named)],
    name: Annotated[str | None, typer.Option(help="How it is called.")] = None,
    entity_type: Annotated[
        str | None,
        typer.Option("--type", help="What it is, such as person.", autocompletion=entity_types),
    ] = None,
    split: Annotated[bool, typer.Option("--split", help="Let the name stand by itself.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Back to what the documents say.")] = False,
    collection: OneCollection = None,
    by: By = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Name, type or split an entity, in place of what was said of it before."""
    wanted = {"name": name, "type": entity_type, "split": split or None}
    if reset == any(value is not None for value in wanted.values()):
        raise WrongSetting("Say what is to change by --name, --type or --split; or --reset, alone.")
    path = f"/v1/entities/{quote(entity, safe='')}"
    send_edit("PUT", path, wanted | {"collection": collection, "by": by}, as_json=as_json, url=url, data_dir=data_dir)
