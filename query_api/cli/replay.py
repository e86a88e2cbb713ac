"""`thalweg replay`: a part of the log applied again to the stores."""

import json
from contextlib import closing
from typing import Annotated, Any

import typer

from query_api.cli.app import DataDir, Json, Url, print_answer, service_client
from query_api.cli.orders import follow_order
from schemas.errors import Exit, WrongSetting, plain_failures

app = typer.Typer()


@app.command(epilog="Example: thalweg replay --since 2h --dry-run")
@plain_failures()
def replay(
    first: Annotated[str | None, typer.Option("--from", help="From these positions on, such as 0:17,3:1042.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Up to these positions, included.")] = None,
    since: Annotated[str | None, typer.Option(help="Records since then: 15m, 2h, 7d, or 2026-11-22T04:00:00Z.")] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="Only of this partition.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count what would change, and write nothing.")] = False,
    wait: Annotated[bool, typer.Option(help="Wait until it is done.")] = True,
    patience: Annotated[float, typer.Option(min=0, help="Give up after this many seconds without progress.")] = 120.0,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Apply a part of the documents topic again: every document with a record in it is brought to what the log says.

    Changes nothing where all is well, and repairs what was lost. Searches and writes go on.
    """
    chosen = {"from": first, "to": last, "since": since, "partition": partition}
    given: dict[str, Any] = {name: value for name, value in chosen.items() if value is not None}
    if not given:
        raise WrongSetting("Say which records: --from, --to, --since or --partition. 'thalweg rebuild' applies all.")
    with closing(service_client(url, data_dir)) as client:
        answer: dict[str, Any] = client.post("/v1/replays", json.dumps(given | {"dry_run": dry_run}).encode())
        if wait:
            path = f"/v1/replays/{answer['id']}"
            answer |= follow_order(client, path, "replay", patience, shown=not as_json)
    ordered = f"Ordered as {answer['id']}, in the log at {answer['position']}."
    print_answer(answer, [_summary(answer) if wait else ordered], as_json=as_json)
    if wait and answer["failed"]:
        raise typer.Exit(Exit.FAILED)


def _summary(done: dict[str, Any]) -> str:
    """What became of the documents, in a sentence."""
    again, changed = ("would be applied again", "would change") if done["dry_run"] else ("applied again", "changed")
    same = done["documents"] - done["changed"] - done["kept"] - done["failed"]
    parts = [f"{done['records']:,} records of {done['of']:,} documents {again}"]
    parts += [f"{same:,} unchanged", f"{done['changed']:,} {changed}"]
    if done["kept"]:
        parts.append(f"{done['kept']:,} left as they are, since the log no longer holds what they came from")
    if done["failed"]:
        parts.append(f"{done['failed']:,} could not be made again, and stay: see the worker's log")
    return ", ".join(parts) + "."
