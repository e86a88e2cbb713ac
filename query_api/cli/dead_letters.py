"""The commands `thalweg dead-letters …`: list, show, redrive, skip."""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, get_args
from urllib.parse import quote

import typer

from query_api.cli.app import DataDir, Json, Url, print_answer, service_client, show_answer
from query_api.cli.completion import collections, offered
from query_api.cli.lists import Cursor, Limit, Listing
from schemas.consent import Yes, require_consent
from schemas.errors import DeadLetterReason, Exit, Failure, WrongSetting, plain_failures
from schemas.progress_bars import progress_bars

if TYPE_CHECKING:
    from query_api.client import ServiceClient

app = typer.Typer()
commands = typer.Typer(no_args_is_help=True, help="Look at what could not be indexed, or read, and send it again.")
app.add_typer(commands, name="dead-letters")

POLL_SECONDS = 0.2
REASONS = get_args(DeadLetterReason)
MARKS = {"redriven": "redrive", "resolved": "newer", "already_redriven": "before", "refused": "refused"}
SKIPPED = {
    "resolved": "replaced since by a newer record",
    "already_redriven": "redriven before",
    "refused": "cannot be redriven",
}

JSONObject = dict[str, Any]


def _size(letter: JSONObject) -> str:
    if letter["omitted"]:
        return f"{letter['omitted']}, too large to be kept"
    if letter["bytes"] is None:
        return "no value"
    content = letter.get("content_bytes")
    if content in (None, letter["bytes"]):
        return f"{letter['bytes']:,} bytes"
    return f"{content:,} bytes, in an envelope of {letter['bytes']:,}"


def _what(letter: JSONObject) -> str:
    """Key and size, what became of it, then what was wrong."""
    from query_api.cli.display import snippet

    attempt, state = letter.get("attempt", 1), letter.get("state", "open")
    since = (f"  attempt {attempt:,}" if attempt > 1 else "") + ("" if state == "open" else f"  {state}")
    return f"{letter['key'] or '(no key)'}  ({_size(letter)}){since}\n{snippet(letter['message'])}"


def _advice(page: JSONObject) -> Iterator[str]:
    """What to do about each reason of those that are open."""
    open_ones = [each for each in page["dead_letters"] if each.get("state", "open") == "open" and "advice" in each]
    texts = {each["reason"]: f"{each['reason_title']}. {each['advice']}" for each in open_ones}
    return (f"{reason}: {text}" for reason, text in texts.items())


LETTERS = Listing(
    "/v1/dead-letters",
    "dead_letters",
    {
        "position": lambda letter: letter["position"],
        "time": lambda letter: f"{letter['at'][:19]}Z",
        "reason": lambda letter: letter["reason"],
        "document": _what,
    },
    page_limit=1_000,
    after=_advice,
)


@commands.command("list", epilog="Example: thalweg dead-letters list --open --collection notes")
@plain_failures()
def list_dead_letters(
    reason: Annotated[
        str | None, typer.Option(help="Only with this reason, such as not_json.", autocompletion=offered(REASONS))
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Only of this collection.", autocompletion=collections)] = None,
    document: Annotated[str | None, typer.Option(help="Only of documents with this id.")] = None,
    only_open: Annotated[
        bool, typer.Option("--open", help="Only those that nothing has replaced: what they name is missing, or old.")
    ] = False,
    since: Annotated[str | None, typer.Option(help="Only since then: 15m, 2h, 7d ago, or an RFC 3339 time.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List dead letters, newest first: position, time, reason, key, what was wrong, and what became of it since."""
    state = "open" if only_open else None
    params = {"reason": reason, "document": document, "state": state, "since": since, "cursor": cursor}
    if collection is not None:  # a dead letter need not be of any
        params["collection"] = collection
    LETTERS.show(params, limit=limit, as_json=as_json, url=url, data_dir=data_dir)


@commands.command("show", epilog="Example: thalweg dead-letters show 3:17")
@plain_failures()
def show_dead_letter(
    position: Annotated[str, typer.Argument(help="<partition>:<offset>, as `dead-letters list` prints it.")],
    raw: Annotated[
        bool, typer.Option("--raw", help="Write the original bytes, as they came, and nothing else.")
    ] = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show one dead letter: where it came from, what was wrong, and its original bytes, escaped."""
    path = f"/v1/dead-letters/{quote(position, safe=':')}"
    if not raw:
        show_answer(path, {}, letter_lines, as_json=as_json, url=url, data_dir=data_dir)
        return
    with closing(service_client(url, data_dir)) as client:
        sys.stdout.buffer.write(client.get_bytes(path, {"raw": True}))
        sys.stdout.buffer.flush()


@commands.command("redrive", epilog="Example: thalweg dead-letters redrive --reason too_large --dry-run")
@plain_failures()
def redrive(
    positions: Annotated[
        list[str] | None, typer.Argument(help="<partition>:<offset>, as `dead-letters list` prints them.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every dead letter that is kept.")] = False,
    reason: Annotated[
        list[str] | None,
        typer.Option(
            help="Only with this reason, such as too_large; may be repeated.", autocompletion=offered(REASONS)
        ),
    ] = None,
    collection: Annotated[str | None, typer.Option(help="Only of this collection.", autocompletion=collections)] = None,
    since: Annotated[str | None, typer.Option(help="Only since then: 15m, 2h, 7d ago, or an RFC 3339 time.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only report what would be done.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Wait until the worker has read what was redriven.")
    ] = True,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Send the records of dead letters again, once what was wrong is repaired.

    A dead letter is redriven once; if its record fails again, that is a new dead letter. Where a newer record of the
    document was indexed or deleted since, nothing is sent. Run again, it sends nothing twice. Exits with 1 where a dead
    letter cannot be redriven, or is one again.
    """
    if everything and positions:
        raise WrongSetting("Give positions or --all, not both: positions redrive only these.")
    chosen = {"all": everything, "ids": positions, "reason": reason, "collection": collection, "since": since}
    chosen = {name: value for name, value in chosen.items() if value}
    if not chosen:
        raise WrongSetting(
            "Say which dead letters: positions (`thalweg dead-letters list` prints them), --reason, --collection, "
            "--since, or --all. With --dry-run nothing is sent."
        )
    with closing(service_client(url, data_dir)) as client:
        if not (positions or dry_run):
            require_consent(partial(_redrive_question, client, chosen), yes=yes, unattended=True)
        order = chosen | ({"dry_run": True} if dry_run else {})
        state = client.post("/v1/dead-letters/redrive", json.dumps(order).encode())
        if wait:
            state = _followed(client, state, quiet=as_json)
    print_answer(state, redrive_lines(state), as_json=as_json)
    if state["state"] == "failed":
        raise Failure(state["message"])
    if state["refused"] or state["failed_again"]:
        raise typer.Exit(Exit.FAILED)


def _redrive_question(client: "ServiceClient", chosen: JSONObject) -> str:
    filters = {name: chosen[name] for name in ("collection", "since") if name in chosen}
    reasons = [{"reason": reason} for reason in chosen.get("reason", ())] or [{}]
    pages = [client.get("/v1/dead-letters", filters | {"state": "open", "limit": 1} | each) for each in reasons]
    known = all(page["open"] is not None for page in pages)
    records = f"{sum(page['open'] for page in pages):,} records that are" if known else "all that is"
    return f"Send {records} not indexed again? What is still wrong with them makes new dead letters."


STAGES = {"reading": "looking at dead letters", "redriving": "redriving", "following": "waiting for the worker"}


def _followed(client: "ServiceClient", state: JSONObject, *, quiet: bool) -> JSONObject:
    """The state once it has ended, with a bar meanwhile."""
    with progress_bars(shown=not quiet) as bars:
        bar = bars(STAGES["reading"])
        while True:
            state = client.get(f"/v1/dead-letters/redrive/{state['id']}")
            is_reading = state["stage"] not in ("redriving", "following")
            done, total = (
                (state["looked_at"], state["to_look_at"]) if is_reading else (_dealt_with(state), state["matched"])
            )
            bar.set(done, total or None, STAGES.get(state["stage"], "done"))
            if state["state"] != "running":
                return state
            time.sleep(POLL_SECONDS)


@commands.command("skip", epilog="Example: thalweg dead-letters skip thalweg.documents.v1 3:17")
@plain_failures()
def skip_batch(
    topic: Annotated[str, typer.Argument(help="The topic, as `thalweg status` names it.")],
    position: Annotated[str, typer.Argument(help="<partition>:<offset> of the batch.")],
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Skip a batch that cannot be read. It is lost to the index; a dead letter records it."""
    from schemas.errors import MalformedToken
    from schemas.ids import parse_positions

    try:
        ((partition, offset),) = parse_positions(position).items()
    except (MalformedToken, ValueError) as error:
        raise WrongSetting(f"{position[:40]!r} is not '<partition>:<offset>', such as '3:17'.") from error
    require_consent(
        lambda: f"Skip the batch at {position} of {topic}? Its records are lost to the index; this cannot be undone.",
        yes=yes,
        unattended=True,
    )
    order = {"topic": topic, "partition": partition, "offset": offset}
    with closing(service_client(url, data_dir)) as client:
        answer = client.post("/v1/dead-letters/skip", json.dumps(order).encode())
    sentence = (
        f"Offsets {answer['first']} to {answer['last']} of {answer['topic']} partition {answer['partition']} are "
        "skipped; what follows is read within seconds. Send their documents again, if you know them."
    )
    print_answer(answer, [sentence], as_json=as_json)


def letter_lines(letter: JSONObject) -> Iterator[str]:
    """All that is known of it, then the beginning of its bytes."""
    source = letter["source"]
    rows = [
        ("key", letter["key"] or "(no key)"),
        ("record", f"{source['topic']} {source['partition']}:{source['offset']}" if source else "unknown"),
        ("reason", f"{letter['reason']}, at the stage {letter['stage']}"),
        ("message", letter["message"]),
        *([("advice", f"{letter['reason_title']}. {letter['advice']}")] if letter.get("advice") else []),
        *([("since", f"{letter['state']}: {letter['state_message']}")] if letter.get("state_message") else []),
        ("time", letter["at"]),
        ("size", _size(letter)),
        *(
            (
                f"before {each['number']}",
                f"{each['reason']}, at the stage {each['stage']}, {each['at']}, {each['letter']}",
            )
            for each in letter.get("earlier_attempts", ())
        ),
        *(("header", f"{name}: {text}") for name, text in letter["headers"].items()),
    ]
    yield from (f"{name:<9} {text}" for name, text in rows)
    yield ""
    yield letter["preview"]
    if not letter["preview_is_all"] and not letter["omitted"]:
        yield "… --raw writes all of it"


def redrive_lines(state: JSONObject) -> Iterator[str]:
    """A line for each dead letter that was not redriven, in a dry run for each; then how many, and what comes next."""
    dry_run = state["order"]["dry_run"]
    for letter in state["letters"]:
        if letter["outcome"] != "redriven" or dry_run:
            mark, key = MARKS[letter["outcome"]], letter["key"] or "(no key)"
            yield f"{letter['position']:>8}  {mark:<8}  {letter['reason']}  {key}  {letter['message'] or ''}".rstrip()
    if (more := _dealt_with(state) - len(state["letters"])) > 0:
        yield f"          … and {more:,} more"
    if state["state"] == "running":
        yield f"Begun. 'thalweg api GET /v1/dead-letters/redrive/{state['id']}' shows its progress."
        return
    if state["matched"] or state["message"] is None:
        counted = [f"{state[outcome]:,} {words}" for outcome, words in SKIPPED.items() if state[outcome]]
        yield ", ".join([f"{state['redriven']:,} {'would be redriven' if dry_run else 'redriven'}", *counted]) + "."
    if state["message"] and state["state"] == "done":
        yield state["message"]
    if state["failed_again"]:
        yield f"{state['failed_again']:,} failed again: 'thalweg dead-letters list' shows why."
    if state["token"]:
        yield f"token {state['token']}"


def _dealt_with(state: JSONObject) -> int:
    return sum(state[outcome] for outcome in MARKS)
