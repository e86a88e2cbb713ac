"""Values of arguments and options: completed at the Tab key, and refused with the nearest where they are wrong.

What only the service knows is asked of it, with little patience: without an answer nothing is offered.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Annotated, Any

import typer

from query_api.cli import app as commands
from schemas.errors import Failure

PATIENCE_SECONDS = 0.5
MAX_OFFERED = 50
STATEMENTS_READ = 500
SHELL = "_THALWEG_COMPLETE"
"""The variable by which a shell's script asks for completions."""

Complete = Callable[[typer.Context, str], list[str]]


def choice(values: Sequence[str], *flags: str, several: bool = False, **more: Any) -> Any:
    """A typer.Option whose value is one of these, or with `several` some of them with commas between."""
    check, complete = checked(tuple(values), several=several), offered(values, several=several)
    return typer.Option(*flags, parser=check, autocompletion=complete, **{"metavar": "|".join(values), **more})


def offered(values: Sequence[str], *, several: bool = False) -> Callable[[str], list[str]]:
    """Completes these values, with `several` the last one of some with commas between."""

    def complete(incomplete: str) -> list[str]:
        done, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        return [f"{done}{comma}{value}" for value in values if value.startswith(last)]

    return complete


def nearest(text: str, values: Sequence[str]) -> str:
    """What is wrong with a value, the values there are, and the one that is most like it."""
    from difflib import get_close_matches

    similar = get_close_matches(text.lower(), values, n=1)
    hint = f" Did you mean {similar[0]!r}?" if similar else ""
    return f"{text[:80]!r} is not one of {', '.join(values)}.{hint}"


def collections(context: typer.Context, incomplete: str) -> list[str]:
    """Names of collections."""
    return _from_service(context, incomplete, "/v1/collections", "name")


AllCollections = Annotated[
    str | None,
    typer.Option("--collection", help="Of this collection only.", autocompletion=collections, show_default="all"),
]
OneCollection = Annotated[
    str | None,
    typer.Option(
        "--collection", help="The collection.", autocompletion=collections, show_default="the only one that holds it"
    ),
]


def generations(context: typer.Context, incomplete: str) -> list[str]:
    """Names of generations."""
    return _from_service(context, incomplete, "/v1/generations", "name")


def routes(context: typer.Context, incomplete: str) -> list[str]:
    """Paths of the service's routes."""
    return _from_service(context, incomplete, "/openapi.json", "paths")


def entities(context: typer.Context, incomplete: str) -> list[str]:
    """Names of entities that begin so, the most salient first."""
    params = {"prefix": incomplete, "limit": MAX_OFFERED, "collection": context.params.get("collection")}
    return _from_service(context, incomplete, "/v1/entities", "label", params)


def entity_types(incomplete: str) -> list[str]:
    """The types that documents' entities have; people may give others."""
    from schemas.graph_delta import ENTITY_TYPES

    return [name for name in ENTITY_TYPES if name.startswith(incomplete)]


def predicates(context: typer.Context, incomplete: str) -> list[str]:
    """Predicates of statements, as a sample of them has it; with commas between, the last one."""
    done, _, last = incomplete.rpartition(",")
    params = {"limit": STATEMENTS_READ, "collection": context.params.get("collection")}
    found = _from_service(context, last, "/v1/statements", "predicate", params)
    return [f"{done},{each}" if done else each for each in found]


def edges(kinds: Sequence[str]) -> Complete:
    """Kinds of edges, and predicates."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        return offered(kinds, several=True)(incomplete) + predicates(context, incomplete)

    return complete


def _from_service(
    context: typer.Context, incomplete: str, path: str, field: str, params: Mapping[str, Any] | None = None
) -> list[str]:
    """The field of each member of the list that the last part of the path names; `paths` are a service's own."""
    given = {name: value for name, value in (params or {}).items() if value is not None}
    url, data_dir = context.params.get("url"), context.params.get("data_dir")
    try:
        with closing(commands.service_client(url, data_dir, patience_seconds=PATIENCE_SECONDS)) as client:
            answer = client.get(path, given)
        members = answer["paths"] if field == "paths" else [each[field] for each in answer[path.rpartition("/")[2]]]
        found = dict.fromkeys(map(str, members))
    except (Failure, KeyError, TypeError):  # no service, an older one, or none of Thalweg's
        return []
    matching = [name for name in found if name.startswith(incomplete)][:MAX_OFFERED]
    return [_quoted(name) for name in matching] if os.environ.get(SHELL) == "complete_bash" else matching


def _quoted(name: str) -> str:
    """As bash is to insert it, which the script leaves to us; other shells quote automatically."""
    return re.sub(r"([^\w.,:/@%+=-])", r"\\\1", name)


def checked(values: tuple[str, ...], *, several: bool = False) -> Callable[[str], str]:
    """Refuses what is none of these values, or with `several` not some of them with commas between."""

    def check(text: str) -> str:
        wrong = next((each for each in (text.split(",") if several else [text]) if each.strip() not in values), None)
        if wrong is not None:
            raise typer.BadParameter(nearest(wrong.strip(), values))
        return text

    return check
