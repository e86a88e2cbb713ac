"""The commands `thalweg entities …`: look at them, and what people make of them."""

from typing import Annotated
from urllib.parse import quote

import typer

from query_api.cli.app import DataDir, Json, Url
from query_api.cli.completion import entities as entities_named
from query_api.cli.completion import entity_types
from query_api.cli.edits import By, Collection, send_edit
from query_api.cli.entity_display import list_entities, show_entity, show_paths
from schemas.errors import WrongSetting, plain_failures

app = typer.Typer()
entities_app = typer.Typer(no_args_is_help=True, help="Look at entities; merge, rename, retype and split them.")
app.add_typer(entities_app, name="entities")


@entities_app.callback()
def entities() -> None:
    """Look at entities; merge, rename, retype and split them."""


entities_app.command("list", epilog="Example: thalweg entities list --prefix harb --type place")(list_entities)
entities_app.command("show", epilog="Example: thalweg entities show Beacon --collection wiki")(show_entity)
entities_app.command("paths", epilog="Example: thalweg entities paths Petrel Beacon")(show_paths)


@entities_app.command("merge", epilog="Example: thalweg entities merge Petrel 'Team Petrel' --name 'Team Petrel'")
@plain_failures()
def merge_entities(
    names: Annotated[
        list[str], typer.Argument(help="Names or ids of entities that are one.", autocompletion=entities_named)
    ],
    name: Annotated[str | None, typer.Option(help="How the one is called.", show_default="its commonest name")] = None,
    collection: Collection = "default",
    by: By = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Make entities one; 'thalweg reviews undo' with the printed id takes it back."""
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
    collection: Collection = "default",
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
