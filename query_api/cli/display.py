"""How answers of the service look on a terminal; plain text where there is none."""

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from schemas.terminal import plain

SNIPPET_CHARACTERS = 240
MIB = 1024 * 1024

JSONObject = dict[str, Any]


class PlainConsole(Console):
    """A Console that shows control characters of any string as escapes, also in tables: text of documents and people
    cannot steer the terminal. rich adds its colours afterwards."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(plain(text), **options)


def plain_text(text: str, style: str = "") -> Text:
    """Text without markup, its control characters as escapes."""
    return Text(plain(text), style=style)


def show_dead_letters(console: Console, page: JSONObject, *, filtered: bool) -> None:
    """Two lines a letter, what to do about each reason, and how to see more. `filtered` says whether only some were
    asked for."""
    advice: dict[str, str] = {}
    for letter in page["dead_letters"]:
        again = f"  [yellow]attempt {letter['attempt']:,}[/yellow]" if letter.get("attempt", 1) > 1 else ""
        state = letter.get("state", "open")
        if state != "open":
            again += f"  [dim]{state}[/dim]"
        elif "advice" in letter:
            advice[letter["reason"]] = f"{letter['reason_title']}. {letter['advice']}"
        console.print(
            f"[bold]{letter['position']:>8}[/bold]  {letter['at'][:19]}Z  [red]{escape(letter['reason'])}[/red]  "
            f"{escape(letter['key'] or '(no key)')}  [dim]({_size(letter)})[/dim]{again}",
            highlight=False,
        )
        console.print(f"          {escape(snippet(letter['message']))}", highlight=False)
    for reason, text in advice.items():
        console.print(f"[red]{escape(reason)}[/red]: {escape(text)}", highlight=False)
    if not page["dead_letters"]:
        console.print(_no_letters(page, filtered=filtered), highlight=False)
    if page["next_cursor"] is not None:
        console.print(f"Older ones: --cursor {page['next_cursor']}", highlight=False, style="dim")


def _no_letters(page: JSONObject, *, filtered: bool) -> str:
    if page["next_cursor"] is not None:
        return "None here."
    return "There are no such dead letters." if filtered else "There are no dead letters."


def show_dead_letter(console: Console, letter: JSONObject) -> None:
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
    for name, text in rows:
        console.print(f"[dim]{name:<9}[/dim] {escape(text)}", highlight=False)
    console.print()
    console.print(escape(letter["preview"]), highlight=False)
    if not letter["preview_is_all"] and not letter["omitted"]:
        console.print("… --raw writes all of it", highlight=False, style="dim")


SKIPPED = {"resolved": "newer", "already_redriven": "before", "refused": "refused"}


def show_redrive(console: Console, state: JSONObject) -> None:
    """A line for each dead letter that was not redriven, in a dry run for each; then how many, and what comes next."""
    dry_run = state["order"]["dry_run"]
    for letter in state["letters"]:
        if letter["outcome"] == "redriven" and not dry_run:
            continue
        mark = SKIPPED.get(letter["outcome"], "redrive")
        console.print(
            f"[bold]{letter['position']:>8}[/bold]  {mark:<8}  [red]{escape(letter['reason'])}[/red]  "
            f"{escape(letter['key'] or '(no key)')}  {escape(letter['message'] or '')}",
            highlight=False,
        )
    judged = sum(state[outcome] for outcome in ("redriven", "resolved", "already_redriven", "refused"))
    if judged > len(state["letters"]):
        console.print(f"          … and {judged - len(state['letters']):,} more", highlight=False, style="dim")
    if state["state"] == "running":
        console.print(f"Begun. GET /v1/dead-letters/redrive/{state['id']} tells how far it is.", highlight=False)
        return
    if state["matched"] or state["message"] is None:
        console.print(_redriven(state, dry_run=dry_run), highlight=False)
    if state["message"] and state["state"] == "done":
        console.print(escape(state["message"]), highlight=False)
    if state["failed_again"]:
        console.print(
            f"{state['failed_again']:,} failed again: 'thalweg dead-letters list' shows why.",
            highlight=False,
            style="yellow",
        )
    if state["token"]:
        console.print(f"token {state['token']}", highlight=False, style="dim")


def _redriven(state: JSONObject, *, dry_run: bool) -> str:
    parts = [f"{state['redriven']:,} {'would be redriven' if dry_run else 'redriven'}"]
    parts += [
        f"{state[outcome]:,} {words}"
        for outcome, words in (
            ("resolved", "replaced since by a newer record"),
            ("already_redriven", "redriven before"),
            ("refused", "cannot be redriven"),
        )
        if state[outcome]
    ]
    return ", ".join(parts) + "."


def _size(letter: JSONObject) -> str:
    if letter["omitted"]:
        return f"{letter['omitted']}, too large to be kept"
    if letter["bytes"] is None:
        return "no value"
    content = letter.get("content_bytes")
    if content in (None, letter["bytes"]):
        return f"{letter['bytes']:,} bytes"
    return f"{content:,} bytes, in an envelope of {letter['bytes']:,}"


def snippet(text: str) -> str:
    """One line of at most SNIPPET_CHARACTERS."""
    flat = " ".join(text.split())
    return flat if len(flat) <= SNIPPET_CHARACTERS else flat[: SNIPPET_CHARACTERS - 1].rstrip() + "…"


def show_collections(console: Console, answer: JSONObject) -> None:
    """A line a collection."""
    table = Table(box=None, pad_edge=False)
    for heading, side in (("collection", "left"), ("documents", "right"), ("chunks", "right"), ("chosen", "left")):
        table.add_column(heading, justify=side, header_style="dim", overflow="fold")  # type: ignore[arg-type]
    for each in answer["collections"]:
        chosen = [
            f"{setting}: " + " ".join(f"{name}={value}" for name, value in each[setting].items() if value is not None)
            for setting in ("chunking", "linking", "extraction")
            if each.get(setting) is not None
        ]
        counts = (f"{each[count]:,}" for count in ("documents", "chunks"))
        table.add_row(escape(each["name"]), *counts, escape("; ".join(chosen)))
    if answer["collections"]:
        console.print(table, highlight=False)
    else:
        console.print("There is no collection yet: 'thalweg load' makes one with its first document.")
    for note in answer["notes"]:
        console.print(escape(note), highlight=False, style="yellow")
