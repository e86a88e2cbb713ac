"""The commands `thalweg collections linking` and `thalweg relink`: how chunks are linked, and linking again."""

import time
from collections.abc import Callable
from contextlib import closing
from typing import Annotated, Any

import typer

from query_api.cli.app import DataDir, Json, Url, print_json, service_client
from query_api.cli.collections import collection_path, collections_app, say_if_empty, setting_of
from schemas.errors import Failure, plain_failures
from schemas.terminal import plain, say

app = typer.Typer()

POLL_SECONDS = 0.5
RULES = (
    "next_chunk", "next_chunk_raise", "similar_above", "similar", "related_above", "related", "max_related",
    "similar_across", "max_across",
)  # fmt: skip


@collections_app.command("linking")
@plain_failures()
def collection_linking(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    next_chunk: Annotated[float | None, typer.Option(help="Weight of the edge to the next chunk.")] = None,
    next_chunk_raise: Annotated[float | None, typer.Option(help="How much cosine 1 raises it, as a share.")] = None,
    similar_above: Annotated[float | None, typer.Option(help="Cosine above which neighbours are similar.")] = None,
    similar: Annotated[float | None, typer.Option(help="Weight of similar_to, times the cosine.")] = None,
    related_above: Annotated[float | None, typer.Option(help="Cosine above which others are related.")] = None,
    related: Annotated[float | None, typer.Option(help="Weight of related_to, times the cosine.")] = None,
    max_related: Annotated[int | None, typer.Option(help="Related chunks of a chunk, at most.")] = None,
    similar_across: Annotated[float | None, typer.Option(help="Weight of similar passages elsewhere.")] = None,
    max_across: Annotated[int | None, typer.Option(help="Similar passages of other documents, at most.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to the defaults.")] = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show how a collection's chunks are linked, or choose it: what is not given is the default. It counts for
    documents indexed from then on, and with `thalweg relink` for all."""
    within = (next_chunk, next_chunk_raise, similar_above, similar, related_above, related, max_related)
    values = (*within, similar_across, max_across)
    asked = dict(zip(RULES, values, strict=True))
    answer, changed = setting_of(collection, "linking", asked, reset=reset, url=url, data_dir=data_dir)
    if as_json:
        print_json(answer)
    elif changed:
        say(f"In the log at {answer['position']}. 'thalweg relink {collection}' applies it to what is stored.")
    else:
        for name in RULES:
            origin = "default" if answer["chosen"].get(name) is None else f"chosen at {answer['position']}"
            print(f"{name:<18} {answer[name]!s:<10} {origin}")
    if not as_json:
        say_if_empty(collection, answer)


@app.command()
@plain_failures()
def relink(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    wait: Annotated[bool, typer.Option(help="Wait until it is done.")] = True,
    patience: Annotated[float, typer.Option(min=0, help="Give up after so many seconds without progress.")] = 120.0,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Link a collection's stored documents by its rules of now, without embedding anything again."""
    from rich.progress import Progress

    from query_api.cli.console import PlainConsole

    path = collection_path(collection, "relink")
    with closing(service_client(url, data_dir)) as client:
        order = client.post(path, b"{}")
        answer: dict[str, Any] = order
        if wait:
            with Progress(console=PlainConsole(stderr=True), disable=as_json) as progress:
                task = progress.add_task(plain(f"relink: {collection}"), total=None)

                def show(state: dict[str, Any]) -> None:
                    progress.update(task, total=state["of"] or None, completed=state["documents"])

                answer = order | follow(lambda: client.get(f"{path}/{order['id']}"), show, patience)
    if as_json:
        print_json(answer)
    elif wait:
        print(summary_of(answer))
    else:
        print(f"Ordered as {order['id']}, in the log at {order['position']}.")


def summary_of(done: dict[str, Any]) -> str:
    """What became of the documents, in a sentence."""
    same = done["of"] - done["changed"] - done["skipped"]
    told = [f"{done['changed']:,} of {done['of']:,} documents linked anew"]
    if same > 0:
        told.append(f"{same:,} had these links already")
    if done["skipped"]:
        told.append(f"{done['skipped']:,} left as they are (replaced meanwhile, or too large with new links)")
    return ", ".join(told) + "."


def follow(
    ask: Callable[[], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
    patience_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    now_seconds: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """The state when it is done. Raises Failure where nothing moves for so long."""
    last, since = None, now_seconds()
    while True:
        state = ask()
        show(state)
        if state["state"] == "done":
            return state
        if state != last:
            last, since = state, now_seconds()
        elif now_seconds() - since > patience_seconds:
            raise Failure(
                f"Nothing was linked for {patience_seconds:g} s. The order stays in the log: a worker that runs "
                "carries it out. See 'thalweg status'."
            )
        sleep(POLL_SECONDS)
