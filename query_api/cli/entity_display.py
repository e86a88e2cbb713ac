"""`thalweg entities list`, `show` and `paths`: entities and what documents say of them, for a terminal."""

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import typer
from rich.markup import escape

from query_api.cli.app import DataDir, Json, Url, show_answer
from query_api.cli.completion import collections, entities, entity_types, predicates
from query_api.cli.edits import Collection
from schemas.errors import plain_failures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from query_api.cli.display import PlainConsole

MAX_SHOWN_PREDICATES = 3


@plain_failures()
def list_entities(
    prefix: Annotated[str, typer.Option(help="A word of the name begins so.")] = "",
    query: Annotated[str, typer.Option("--query", "-q", help="What passages say that mention them.")] = "",
    entity_type: Annotated[
        str | None, typer.Option("--type", help="What they are, such as person.", autocompletion=entity_types)
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Of this collection only.", autocompletion=collections)] = None,
    sample: Annotated[int | None, typer.Option(min=0, help="Any of them at random, by this seed.")] = None,
    cursor: Annotated[str | None, typer.Option(help="The next_cursor of the page before.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000)] = 30,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List entities, those that are mentioned most first."""
    chosen = {"prefix": prefix, "q": query, "type": entity_type, "collection": collection, "cursor": cursor}
    chosen |= {"sample": None if sample is None else str(sample)}
    show_answer("/v1/entities", chosen | {"limit": limit}, _show_list, as_json=as_json, url=url, data_dir=data_dir)


@plain_failures()
def show_entity(
    entity: Annotated[str, typer.Argument(help="Its name or id.", autocompletion=entities)],
    collection: Collection = "default",
    limit: Annotated[int, typer.Option(min=1, max=500, help="Of each kind of thing that is known of it.")] = 10,
    since: Annotated[str | None, typer.Option(help="Only what is stated since: 2h or 7d ago, or a time.")] = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show an entity: its definition, statements with their sentences, documents, neighbours."""
    path, params = f"/v1/entities/{quote(entity, safe='')}", {"collection": collection, "limit": limit, "since": since}
    params = {name: value for name, value in params.items() if value is not None}
    show_answer(path, params, _show_one, as_json=as_json, url=url, data_dir=data_dir)


@plain_failures()
def show_paths(
    source: Annotated[str, typer.Argument(help="The name or id of an entity.", autocompletion=entities)],
    target: Annotated[str, typer.Argument(help="That of another.", autocompletion=entities)],
    collection: Collection = "default",
    max_steps: Annotated[int, typer.Option(min=1, max=6)] = 4,
    limit: Annotated[int, typer.Option(min=1, max=20, help="Paths, at most.")] = 3,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show how two entities hang together, each step with its sentence."""
    params = {"from": source, "to": target, "collection": collection, "max_steps": max_steps, "limit": limit}
    show_answer("/v1/paths", params, _show_paths, as_json=as_json, url=url, data_dir=data_dir)


@plain_failures()
def show_statements(
    collection: Annotated[str | None, typer.Option(help="Of this collection only.", autocompletion=collections)] = None,
    predicate: Annotated[
        str | None, typer.Option(help="Only with this one, such as is_a.", autocompletion=predicates)
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="The seed: the same gives the same.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Statements, at most.")] = 100,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show statements at random with their sentences, to judge them by."""
    params = {"collection": collection, "predicate": predicate, "sample": sample, "limit": limit}
    given = {name: value for name, value in params.items() if value is not None}
    show_answer("/v1/statements", given, _show_statements, as_json=as_json, url=url, data_dir=data_dir)


def _show_statements(console: "PlainConsole", answer: dict[str, Any]) -> None:
    if not answer["statements"]:
        console.print("Nothing is stated.")
    for line in _facts(answer["statements"]):
        console.print(escape(line))


def _show_list(console: "PlainConsole", answer: dict[str, Any]) -> None:
    if not answer["entities"]:
        console.print("There are no such entities.")
    for entity in answer["entities"]:
        console.print(escape(_line(entity)))
    if answer["next_cursor"]:
        console.print(f"There are more: --cursor {answer['next_cursor']}")


def _show_one(console: "PlainConsole", answer: dict[str, Any]) -> None:
    for line in _description(answer):
        console.print(escape(line))


def _show_paths(console: "PlainConsole", answer: dict[str, Any]) -> None:
    if not answer["paths"]:
        console.print(
            escape(f"Nothing joins {answer['source']['label']} and {answer['target']['label']} in few steps.")
        )
    for path in answer["paths"]:
        console.print(f"strength {path['strength']}")
        for step in path["steps"]:
            arrow = f"<-{step['predicate']}-" if step["inverse"] else f"-{step['predicate']}->"
            console.print(escape(f"  {step['source']['label']} {arrow} {step['target']['label']}"))
            for line in _evidence([step["evidence"]] if step["evidence"] else []):
                console.print(escape(line))


def _line(entity: dict[str, Any]) -> str:
    return (
        f"{entity['id']}  {entity['collection']}  {entity['label']} ({entity['type']}), {entity['mentions']} mentions"
    )


def _description(answer: dict[str, Any]) -> "Iterator[str]":
    yield _line(answer)
    if answer["definition"]:
        yield f"  {answer['definition']['text']} [{answer['definition']['source']['document_id']}]"
    others = [alias["surface"] for alias in answer["aliases"] if alias["surface"] != answer["label"]]
    if others:
        yield f"  also written {', '.join(others)}"
    yield from _facts(answer["statements"])
    for document in answer["documents"]:
        about = ", about it" if document["about"] else ""
        yield f"  in {document['document_id']}: {document['title']} ({document['mentions']} mentions{about})"
    for neighbour in answer["neighbours"]:
        joined = ", ".join(neighbour["predicates"][:MAX_SHOWN_PREDICATES]) or f"{neighbour['shared_chunks']} chunks"
        yield f"  near {neighbour['entity']['label']} ({joined})"
    for related in answer["consolidated"]:
        noun = "document" if related["documents"] == 1 else "documents"
        yield f"  beside {related['entity']['label']} (in {related['documents']} {noun}, never in one chunk)"


def _facts(statements: list[dict[str, Any]]) -> "Iterator[str]":
    for each in statements:
        further = "".join(f", {part['role']} {part['entity']['label']}" for part in each["further"])
        fact = f"{each['subject']['label']} -{each['predicate']}-> {each['object']['label']}"
        yield f"  {fact}{further} ({each['strength']}{', by people' if each['by_people'] else ''})"
        yield from _evidence(each["evidence"][:1])


def _evidence(evidence: list[dict[str, Any]]) -> "Iterator[str]":
    for each in evidence:
        yield f"      {each['sentence'] or each['title']} [{each['document_id']}]"
