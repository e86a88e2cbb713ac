"""The commands `thalweg collections …`: list, settings, delete."""

from contextlib import closing
from dataclasses import asdict
from typing import Annotated, Any

import typer

from query_api.cli.app import DataDir, Json, Url, print_json, service_client
from query_api.cli.collection_settings import Collection, collection_path
from query_api.cli.collection_settings import commands as setting_commands
from query_api.cli.lists import Listing, WholeLimit
from schemas.consent import Yes, require_consent
from schemas.errors import plain_failures
from schemas.terminal import say

app = typer.Typer()
collections_app = typer.Typer(
    no_args_is_help=True, help="See the collections, choose how they are indexed, delete one."
)
collections_app.add_typer(setting_commands)
app.add_typer(collections_app, name="collections")


def _chosen(collection: dict[str, Any]) -> str:
    return "; ".join(
        f"{setting}: " + " ".join(f"{name}={value}" for name, value in collection[setting].items() if value is not None)
        for setting in ("chunking", "linking", "extraction")
        if collection.get(setting) is not None
    )


COLLECTIONS = Listing(
    "/v1/collections",
    "collections",
    {
        "collection": lambda collection: collection["name"],
        "documents": lambda collection: f"{collection['documents']:,}",
        "chunks": lambda collection: f"{collection['chunks']:,}",
        "chosen": _chosen,
    },
    numbers=("documents", "chunks"),
    hint=" 'thalweg load' makes one with its first document.",
)


@collections_app.command("list", epilog="Example: thalweg collections list")
@plain_failures()
def list_collections(
    limit: WholeLimit = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List the collections: how many documents and chunks each holds, and what was chosen for it."""
    COLLECTIONS.show({}, limit=limit, as_json=as_json, url=url, data_dir=data_dir)


@collections_app.command("delete", epilog="Example: thalweg collections delete drafts --yes")
@plain_failures()
def delete_collection(
    collection: Collection,
    yes: Yes = False,
    wait: Annotated[bool, typer.Option(help="Wait until both stores show it.")] = True,
    patience: Annotated[float, typer.Option(min=0, help="Give up after this many seconds without progress.")] = 120.0,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Delete all documents of a collection, such as one that `evaluate` made, from both stores."""
    from query_api.cli import collection_deletion as deletion
    from schemas.progress_bars import progress_bars

    collection_path(collection, "any")
    with closing(service_client(url, data_dir)) as client:
        ids = deletion.documents_of(client, collection)
        require_consent(
            lambda: (
                f"Delete all {len(ids):,} documents of the collection {collection!r}? Only sending them again brings "
                "them back."
            ),
            yes=yes,
        )
        with progress_bars(shown=not as_json) as bars:
            tokens = deletion.publish_tombstones(client, collection, ids, bars("published", len(ids)).advance)
            if wait:
                gone = bars("deleted", len(ids)).advance
                deletion.follow_tombstones(client, collection, tokens, gone, timeout_seconds=patience)
        left = deletion.still_listed(client, collection, ids) if wait else None
        deleted = deletion.CollectionDeleted(collection, len(ids), left, deletion.token_of(tokens))
        if as_json:
            print_json(asdict(deleted))
            return
        there = client.get("/v1/collections")["collections"]
    for sentence in deletion.summary_of(deleted, next((each for each in there if each["name"] == collection), {})):
        say(sentence)
    print(f"token {deleted.token}")
