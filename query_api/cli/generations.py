"""`thalweg rebuild` and `thalweg generations`: the next generation of the stores, beside the live one."""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from query_api.cli.app import DataDir, Json, Url, print_answer, service_client
from query_api.cli.completion import generations
from query_api.cli.lists import Listing, WholeLimit
from schemas.consent import Yes, require_consent
from schemas.errors import Failure, plain_failures
from schemas.progress_bars import Bar, progress_bars
from schemas.terminal import say

if TYPE_CHECKING:
    from query_api.client import ServiceClient

app = typer.Typer()
generations_app = typer.Typer(no_args_is_help=True, help="See the generations of the stores, switch, drop one.")
app.add_typer(generations_app, name="generations")

POLL_SECONDS = 0.5
ORDER_SECONDS = 60.0  # until a worker has begun
Name = Annotated[
    str, typer.Argument(help="The generation, as `generations list` names it.", autocompletion=generations)
]
Generation = dict[str, Any]


@app.command(epilog="Example: thalweg rebuild --reason 'smaller chunks'")
@plain_failures()
def rebuild(
    reason: Annotated[str, typer.Option(help="Shown with the generation, such as 'new chunk size'.")] = "",
    switch: Annotated[bool, typer.Option("--switch/--no-switch", help="Switch to it when it is complete.")] = True,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Follow it until then; Ctrl-C ends only that.")] = True,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Build all stores again from the log, beside the live ones, by the current settings; then switch to them.

    Searches and writes go on meanwhile, and what is published reaches both. A text that the live generation has a
    vector of, by the same model, is not encoded again. The generation before is kept for switching back.
    """
    with closing(service_client(url, data_dir)) as client:
        require_consent(partial(_rebuild_question, client, switch=switch), yes=yes, unattended=True)
        body = json.dumps({"reason": reason, "switch": switch}).encode()
        name = client.post("/v1/generations", body)["name"]
        generation = _followed(client, name, switch=switch, shown=not as_json) if wait else _get(client, name)
    print_answer(generation, _lines(generation), as_json=as_json)


@generations_app.command("list", epilog="Example: thalweg generations list")
@plain_failures()
def list_generations(
    limit: WholeLimit = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List the generations: which is live, which is being built, with its progress, which are kept."""
    GENERATIONS.show({}, limit=limit, as_json=as_json, url=url, data_dir=data_dir)


@generations_app.command("show", epilog="Example: thalweg generations show g0002-5f3a9c")
@plain_failures()
def show_generation(name: Name, as_json: Json = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Show one generation: what it was made with, its progress, and how it compares with the one before."""
    with closing(service_client(url, data_dir)) as client:
        generation = _get(client, name)
    print_answer(generation, _lines(generation), as_json=as_json)


@generations_app.command("switch", epilog="Example: thalweg generations switch g0001-23bcdd")
@plain_failures()
def switch_generation(
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Also where documents are missing in it.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is live.")] = True,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Make a generation the live one. One that was kept or is behind is brought up to date first."""
    with closing(service_client(url, data_dir)) as client:
        require_consent(
            lambda: f"Switch from {_live(client)['name']} to {name}? The one before is kept, to switch back to.",
            yes=yes,
            unattended=True,
        )
        client.post(f"/v1/generations/{name}/switch", json.dumps({"force": force}).encode())
        generation = (
            _followed(client, name, switch=True, force=force, shown=not as_json) if wait else _get(client, name)
        )
    print_answer(generation, _lines(generation), as_json=as_json)


@generations_app.command("drop", epilog="Example: thalweg generations drop g0002-5f3a9c")
@plain_failures()
def drop_generation(
    name: Name, yes: Yes = False, as_json: Json = False, url: Url = None, data_dir: DataDir = None
) -> None:
    """Drop a generation with its stores; ends its build. The documents stay in the log."""
    with closing(service_client(url, data_dir)) as client:
        require_consent(partial(_drop_question, client, name), yes=yes, unattended=True)
        answer = client.delete(f"/v1/generations/{name}")
        deadline = time.monotonic() + ORDER_SECONDS
        while any(each["name"] == name for each in client.get("/v1/generations")["generations"]):
            if time.monotonic() > deadline:
                raise Failure(f"Generation {name} is still there: is a worker running? See 'thalweg status'.")
            time.sleep(POLL_SECONDS)
    print_answer(answer, [f"Generation {name} is dropped."], as_json=as_json)


def _get(client: "ServiceClient", name: str) -> Generation:
    return client.get(f"/v1/generations/{name}")


def _live(client: "ServiceClient") -> Generation:
    found: Generation = next(each for each in client.get("/v1/generations")["generations"] if each["state"] == "live")
    return found


def _rebuild_question(client: "ServiceClient", *, switch: bool) -> str:
    live = _live(client)
    documents = sum(each["documents"] for each in client.get("/v1/collections")["collections"])
    after = " and switch to them" if switch else ""
    return (
        f"Index all {documents:,} documents again into new stores, about as large as the live ones ({_size(live)})"
        f"{after}? {live['name']} is kept; 'thalweg generations drop' ends a rebuild."
    )


def _drop_question(client: "ServiceClient", name: str) -> str:
    generation = _get(client, name)
    what = "End the build of" if generation["state"] in ("ordered", "building") else "Drop"
    size = f", {_size(generation)}," if generation["bytes"] else ""
    return (
        f"{what} generation {name} and delete its stores{size} for good? The documents stay in the log and in the "
        "live stores."
    )


def _followed(client: "ServiceClient", name: str, *, switch: bool, shown: bool, force: bool = False) -> Generation:
    """The generation when it is live, or ready and there is no automatic switch to it. Raises Failure."""
    deadline = time.monotonic() + ORDER_SECONDS
    try:
        with progress_bars(shown=shown) as bars:
            bar = bars("ordered")
            while True:
                generation = _get(client, name)
                state, problem = generation["state"], generation["problem"]
                _show(bar, generation)
                if state == "live" or (state == "ready" and not switch):
                    return generation
                if state == "failed" or (state == "ready" and problem and not force):
                    raise Failure(f"Generation {name} was not switched to. {problem}")
                if state == "ordered" and time.monotonic() > deadline:
                    raise Failure(
                        f"Generation {name} is ordered, and no worker has begun it: is one running? See 'thalweg "
                        "status'. It is built when one starts."
                    )
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        say(
            f"It continues alone: 'thalweg generations show {name}' shows its progress, 'thalweg generations drop "
            f"{name}' ends it.",
            error=True,
        )
        raise typer.Exit(130) from None


def _show(bar: Bar, generation: Generation) -> None:
    """Records done, with chunks, rate and estimate."""
    progress, name = generation["progress"], generation["state"]
    if progress is None:
        bar.set(0, name=name)
        return
    name += f"  {progress['chunks']:,} chunks, {progress['records_per_second'] or 0:,.0f} records/s"
    if progress["seconds_left"]:
        name += f", about {progress['seconds_left']:,.0f} s left"
    bar.set(progress["records"], progress["of_records"], name)


def _lines(generation: Generation) -> Iterator[str]:
    """One generation, for a person."""
    yield f"{generation['name']}  {generation['state']}  {_size(generation)}".rstrip()
    if generation["reason"]:
        yield f"reason     {generation['reason']}"
    if (made := generation["pipeline"]) is not None:
        yield f"model      {made['embedding_model']} ({made['embedding_provider']}, {made['dimension']} numbers)"
        yield f"chunks     {made['chunk_characters']} characters, in passages of {made['passage_characters']}"
        yield f"extractor  {made['extractor']}"
    if (progress := generation["progress"]) is not None:
        yield f"progress   {_progress_text(progress)}"
    if (comparison := generation["comparison"]) is not None:
        names = ("documents", "passages", "chunks", "entities", "statements")
        pairs = (f"{name} {comparison['earlier'][name]:,} -> {comparison['new'][name]:,}" for name in names)
        yield f"compared   {', '.join(pairs)}"
        for what in ("missing", "unexpected"):
            if comparison[f"{what}_count"]:
                yield f"{what:<10} {comparison[f'{what}_count']:,}: {', '.join(comparison[what])}"
        if (asked := comparison["questions"]) is not None:
            text = (
                f"{asked['overlap']:.0%} of the ten nearest documents are the same, for {asked['questions']} questions"
            )
            yield f"found      {text}" + (f"; least for {', '.join(asked['least'])}" if asked["least"] else "")
    if generation["problem"]:
        yield generation["problem"]


def _details(generation: Generation) -> str:
    """What it was made with, its progress, why it was made and what is wrong."""
    parts = []
    if (made := generation["pipeline"]) is not None:
        parts.append(f"{made['embedding_model']}, chunks of {made['chunk_characters']}")
    if generation["progress"] is not None and generation["state"] in ("building", "behind"):
        parts.append(_progress_text(generation["progress"]))
    return "\n".join(filter(None, [*parts, generation["reason"], generation["problem"]]))


def _size(generation: Generation) -> str:
    return f"{generation['bytes'] / 2**20:,.0f} MiB" if generation["bytes"] else ""


def _progress_text(progress: dict[str, Any]) -> str:
    text = f"{progress['records']:,} of {progress['of_records']:,} records, {progress['chunks']:,} chunks"
    return text + (f", about {progress['seconds_left']:,.0f} s left" if progress["seconds_left"] else "")


GENERATIONS = Listing(
    "/v1/generations",
    "generations",
    {
        "generation": lambda generation: generation["name"],
        "state": lambda generation: generation["state"],
        "size": _size,
        "made with": _details,
    },
    numbers=("size",),
)
