"""The commands `thalweg entities …`: list them, show one."""

from collections.abc import Iterator
from typing import Annotated, Any
from urllib.parse import quote

import typer

from query_api.cli.app import AsOf, DataDir, Json, Url, show_answer
from query_api.cli.completion import AllCollections, OneCollection, entity_types
from query_api.cli.completion import entities as entities_named
from query_api.cli.lists import Cursor, Limit, Listing
from schemas.errors import plain_failures

app = typer.Typer()
entities_app = typer.Typer(no_args_is_help=True, help="Look at the entities that documents name.")
app.add_typer(entities_app, name="entities")


ENTITIES = Listing(
    "/v1/entities",
    "entities",
    {
        "id": lambda entity: entity["id"],
        "type": lambda entity: entity["type"],
        "mentions": lambda entity: f"{entity['mentions']:,}",
        "collection": lambda entity: entity["collection"],
        "name": lambda entity: entity["label"],
    },
    numbers=("mentions",),
    page_limit=1_000,
)
MAX_SHOWN_PREDICATES = 3


@entities_app.command("list", epilog="Example: thalweg entities list --prefix harb --type place")
@plain_failures()
def list_entities(
    prefix: Annotated[str, typer.Option(help="A word of the name begins with this.")] = "",
    query: Annotated[str, typer.Option("--query", "-q", help="What passages say that mention them.")] = "",
    entity_type: Annotated[
        str | None, typer.Option("--type", help="What they are, such as person.", autocompletion=entity_types)
    ] = None,
    collection: AllCollections = None,
    sample: Annotated[int | None, typer.Option(min=0, help="Any of them at random, by this seed.")] = None,
    cursor: Cursor = None,
    limit: Limit = 30,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List entities, the most salient first."""
    params: dict[str, Any] = {"prefix": prefix, "q": query, "type": entity_type, "collection": collection}
    params |= {"sample": sample, "cursor": cursor}
    ENTITIES.show(params, limit=limit, as_json=as_json, url=url, data_dir=data_dir)


@entities_app.command("show", epilog="Example: thalweg entities show Beacon --collection wiki")
@plain_failures()
def show_entity(
    entity: Annotated[str, typer.Argument(help="Its name or id.", autocompletion=entities_named)],
    collection: OneCollection = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="At most this many of each kind.")] = 10,
    since: Annotated[str | None, typer.Option(help="Only what is stated since, or withdrawn: 2h, 7d, a time.")] = None,
    as_of: AsOf = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show an entity: its definition, statements with their sentences, documents, neighbours."""
    path = f"/v1/entities/{quote(entity, safe='')}"
    params: dict[str, Any] = {"collection": collection, "limit": limit, "since": since, "as_of": as_of}
    show_answer(path, params, entity_lines, as_json=as_json, url=url, data_dir=data_dir)


def entity_lines(entity: dict[str, Any]) -> Iterator[str]:
    """Name, type and definition, then what is known of it, by kind; a statement is above its sentence."""
    yield f"{entity['label']} ({entity['type']})  {entity['id']}"
    yield f"{entity['mentions']:,} mentions in {entity['collection']}"
    if definition := entity["definition"]:
        yield f"{definition['text']} [{definition['source']['document_id']}]"
    others = [alias["surface"] for alias in entity["aliases"] if alias["surface"] != entity["label"]]
    if others:
        yield f"also written {', '.join(others)}"
    for name, lines in (
        ("statements", facts_lines(entity["statements"])),
        ("no longer stated", facts_lines(entity["withdrawn"] or [])),
        ("documents", map(_document, entity["documents"])),
        ("neighbours", map(_neighbour, entity["neighbours"])),
        ("in the same documents, never in one chunk", map(_consolidated, entity["consolidated"])),
    ):
        if found := list(lines):
            yield name
            yield from (f"  {line}" for line in found)
    if entity.get("truncated"):
        yield "There is more: --limit shows it."


def facts_lines(statements: list[dict[str, Any]]) -> Iterator[str]:
    """Each fact, and below it a sentence that states it."""
    for each in statements:
        further = "".join(f", {part['role']} {part['entity']['label']}" for part in each["further"])
        fact = f"{each['subject']['label']} ─{each['predicate']}→ {each['object']['label']}"
        yield f"{fact}{further} ({each['strength']:.2g}{', by people' if each['by_people'] else ''})"
        for evidence in each["evidence"][:1]:
            said = evidence["sentence"] or evidence["title"]
            yield f"  {said} [{evidence['collection']}/{evidence['document_id']}]"


def _document(document: dict[str, Any]) -> str:
    about = ", about it" if document["about"] else ""
    return f"{document['document_id']}: {document['title']} ({document['mentions']} mentions{about})"


def _neighbour(neighbour: dict[str, Any]) -> str:
    joined = ", ".join(neighbour["predicates"][:MAX_SHOWN_PREDICATES]) or f"{neighbour['shared_chunks']} chunks"
    return f"{neighbour['entity']['label']} ({joined})"


def _consolidated(related: dict[str, Any]) -> str:
    noun = "document" if related["documents"] == 1 else "documents"
    return f"{related['entity']['label']} (in {related['documents']} {noun})"
