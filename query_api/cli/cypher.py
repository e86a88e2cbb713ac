"""`thalweg cypher`: the published graph asked in Cypher, in the caller's own process."""

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from query_api.cli.app import DataDir, print_json
from schemas.errors import Failure, WrongSetting, plain_failures
from schemas.terminal import say

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from indexer.generation_folders import Generation
    from indexer.read.cypher import Answer
    from indexer.read.published_graph import PublishedGraph

app = typer.Typer()

ATTEMPTS = 3
BUFFER_DIVISOR = 4  # of the memory that this process may use


@app.command(epilog="Example: thalweg cypher 'MATCH (e:Entity)<-[:MENTIONS]-() RETURN e.name, count(*)' --limit 5")
@plain_failures()
def cypher(
    query: Annotated[str, typer.Argument(help="What to ask; - reads it from standard input.")],
    limit: Annotated[int, typer.Option(min=1, help="Rows, at most.")] = 1_000,
    timeout: Annotated[float, typer.Option(min=0.001, help="Give up after this many seconds.")] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON list with an object a row.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Ask the published graph in Cypher.

    Reads the newest graph that the worker published, and says on standard error which one; needs neither worker nor
    service. Runs with your own rights: LOAD FROM and COPY … TO read and write your files. docs/graph.md has the tables.
    """
    from indexer.generation_folders import current_generation
    from indexer.read.cypher import ask
    from indexer.runtime.resources import usable_memory_bytes
    from query_api.settings import ServiceSettings

    text = _read_query(query)
    folder = ServiceSettings.load({"storage": {"data_dir": data_dir}}).storage.data_dir
    generation = current_generation(folder)
    if generation is None:
        raise Failure(f"There are no stores in {folder} yet: start a worker on it with 'thalweg up', or name another.")
    buffer_bytes = usable_memory_bytes() // BUFFER_DIVISOR
    asked = partial(ask, cypher=text, limit=limit, timeout_seconds=timeout, buffer_bytes=buffer_bytes)
    published, answer = _ask_newest(generation, asked)
    say(_describe(published, generation), error=True)
    if as_json:
        print_json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    else:
        _show_table(answer)
    if answer.total > len(answer.rows):
        say(f"The first {len(answer.rows):,} of {answer.total:,} rows; --limit shows more.", error=True)


def _read_query(query: str) -> str:
    try:
        text = sys.stdin.buffer.read().decode() if query == "-" else query
        text.encode()  # an argument that was not UTF-8 has surrogates
    except UnicodeError as error:
        raise WrongSetting("The query is not UTF-8.") from error
    if not text.strip():
        raise WrongSetting("The query is empty: ask something like 'MATCH (e:Entity) RETURN e.name LIMIT 10'.")
    return text


def _ask_newest(generation: "Generation", ask: "Callable[[Path], Answer]") -> "tuple[PublishedGraph, Answer]":
    """The newest published graph, checked, and its answer. Raises Failure, also where there is none yet."""
    from indexer.read.published_graph import FILE, newest_folder, require_intact, require_this_version

    for _ in range(ATTEMPTS):
        folder = newest_folder(generation.kuzu_dir)
        if folder is None:
            break
        try:
            published = require_intact(folder)
            require_this_version(published)
            return published, ask(folder / FILE)
        except FileNotFoundError:  # a newer one has just taken its place
            continue
        except Failure:
            if (folder / FILE).exists():
                raise
    raise Failure(
        f"No graph of generation {generation.name} is published yet. A worker publishes one some seconds after it has "
        "indexed what there is: load documents, and wait; where none runs, start one with 'thalweg up'."
    )


def _describe(published: "PublishedGraph", generation: "Generation") -> str:
    """Which graph was asked."""
    from indexer.graph.snapshots import latest_snapshot
    from schemas.clock import rfc3339

    newest = latest_snapshot(generation.snapshots_dir)
    behind = 0 if newest is None else newest.graph_position - published.graph_position
    return (
        f"Graph of generation {published.generation} as of {rfc3339(published.snapshot_at_ms)}, "
        f"position {published.graph_position}"
        + (f"; the newest snapshot is {behind:,} positions ahead." if behind > 0 else ", of the newest snapshot.")
    )


def _show_table(answer: "Answer") -> None:
    from query_api.cli.display import print_table

    columns = [[row[number] for row in answer.rows] for number in range(len(answer.columns))]
    numbers = [
        heading
        for heading, column in zip(answer.columns, columns, strict=True)
        if all(isinstance(value, int | float) for value in column)
    ]
    print_table(answer.columns, [[_cell(value) for value in row] for row in answer.rows], numbers=numbers)


def _cell(value: Any) -> str:
    """A string as it is, null as nothing, anything else as in JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
