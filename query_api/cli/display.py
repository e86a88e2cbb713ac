"""How answers of the service look on a terminal; plain text where there is none."""

import re
from collections.abc import Iterator
from itertools import pairwise
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


def show_hit(console: Console, hit: JSONObject) -> None:
    """Rank, title, section, address, how likely it is relevant, score by channel, what answers, what was asked of its
    fields, which parts of the question found it, what was left out for it, and how the graph came to it."""
    section = " › ".join(heading for heading in hit["section"] if heading != hit["title"])
    scores = "  ".join(f"{channel} {score:.3g}" for channel, score in hit["scores"].items())
    sure = "" if hit.get("confidence") is None else f"{hit['confidence']:.0%} sure   "
    sure = "unlikely   " if hit.get("unlikely") else sure
    title = escape(hit["title"])
    if section:
        title += f" [dim]› {escape(section)}[/dim]"
    console.print(f"[bold]{hit['rank']:>3}  {title}[/bold]", highlight=False)
    console.print(
        f"     [dim]{escape(hit['collection'])}/{escape(hit['document_id'])}   "
        f"{sure}score {hit['score']:.4g}   ({escape(scores)})[/dim]",
        highlight=False,
    )
    if hit.get("uri"):
        console.print(f"     [dim]{escape(hit['uri'])}[/dim]", highlight=False)
    console.print(f"     {marked_text(hit)}", highlight=False)
    if hit.get("matches"):
        console.print(f"     [cyan]has {escape(', '.join(hit['matches']))}[/cyan]", highlight=False)
    if community := hit.get("community"):
        console.print(
            f"     [cyan]of {escape(community['title'])} ({community['size']} entities)[/cyan]", highlight=False
        )
    if hit.get("parts"):
        found = ", ".join(f"“{part}” at {rank}" for part, rank in hit["parts"].items())
        console.print(f"     [dim]for {escape(found)}[/dim]", highlight=False)
    if hit.get("duplicates"):
        others = ", ".join(f"{each['collection']}/{each['document_id']}" for each in hit["duplicates"])
        console.print(f"     [dim]also in {escape(others)}[/dim]", highlight=False)
    for step in hit["path"]:
        console.print(f"     [cyan]{escape(step_text(step))}[/cyan]", highlight=False)
        if step.get("evidence"):
            console.print(f"         [dim]“{escape(snippet(step['evidence']))}”[/dim]", highlight=False)
    for line in explained_lines(hit):
        console.print(f"     [dim]{escape(line)}[/dim]", highlight=False)
    console.print()


def explained_lines(hit: JSONObject) -> Iterator[str]:
    """Of a hit with `explain`: what its chunk mentions, what it states, and the factors."""
    if hit.get("entities"):
        yield "mentions " + ", ".join(f"{each['label']} ({each['type']})" for each in hit["entities"])
    for fact in hit.get("statements") or ():
        yield f"states {fact['subject']} ─{fact['predicate']}→ {fact['object']}"
    if factors := hit.get("factors"):
        yield "factors " + ", ".join(f"{name} {value:.2f}" for name, value in factors.items())


def step_text(step: JSONObject) -> str:
    """A step of a path; one that is no edge of the graph is not drawn as if it were."""
    if step.get("inverse"):
        return f"{step['from']} ←{step['edge']}─ {step['to']}"
    if step.get("by") != "words":
        return f"{step['from']} ─{step['edge']}→ {step['to']}"
    return f"{step['from']}, then {step['to']}, by words (no link)"


def show_end(console: Console, done: JSONObject, meta: JSONObject) -> None:
    """The last line: how many, how long, from which state."""
    snapshot = meta["snapshot"]
    total = done["timings"]["total"]
    noun = "hit" if done["hits"] == 1 else "hits"
    console.print(
        f"{done['hits']} {noun} in {total * 1000:.0f} ms, as of {snapshot['positions'] or 'an empty log'} "
        f"({snapshot['generation']}). Retrieval {done['retrieval_id']}",
        highlight=False,
        style="dim",
    )
    if period := (meta.get("understanding") or {}).get("period"):
        console.print(escape(period_text(period)), highlight=False, style="dim")
    for channel, reason in done["failed_channels"].items():
        what = "re-ranker" if channel == "rerank" else f"{channel} channel"
        console.print(f"Without the {what}: {escape(reason)}", highlight=False, style="yellow")
    for note in done.get("notes", []):
        console.print(escape(note), highlight=False, style="yellow")


def period_text(period: JSONObject) -> str:
    """What a time in the question let through."""
    if not period["documents"]:
        return f"No document is from “{period['words']}”: all were searched."
    dated = " or ".join([*period["fields"], "arrival"])
    noun = "document" if period["documents"] == 1 else "documents"
    return f"Only {period['documents']} {noun} from “{period['words']}”, by {dated}."


def show_status(console: Console, status: JSONObject) -> None:
    """The service's state as a table of a dozen lines."""
    readiness = status["readiness"]
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column()
    table.add_row("service", "ready" if readiness["ready"] else "not ready: " + " ".join(readiness["reasons"]))
    table.add_row("kafka", f"{readiness['kafka']} ({status['kafka_servers'] or 'none known'})")
    table.add_row("generation", status["generation"] or "none yet")
    table.add_row("worker", escape(worker_text(status["worker"])))
    table.add_row("lag", lag_text(status))
    if fresh := status.get("freshness"):
        ago = fresh["measured_seconds_ago"]
        table.add_row("fresh", f"searchable {fresh['seconds']:.2f} s after it was written, measured {ago:,.0f} s ago")
    table.add_row("searchable up to", status["positions"] or "nothing yet")
    if status["graph_position"] is not None:
        table.add_row("graph", f"position {status['graph_position']}, snapshot at {status['graph_base_position']}")
    counts = {name: count for name, count in status["counts"].items() if name != "misplaced"}
    table.add_row("holds", ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "nothing yet")
    if misplaced := status["counts"].get("misplaced"):
        table.add_row("misplaced", f"{misplaced:,} documents are not only where Kafka's default partitioner puts them")
    table.add_row("provenance", f"{status['provenance_buffered']} waiting, {status['provenance_dropped']} dropped")
    letters = status["dead_letters_last_day"]
    reasons = status.get("dead_letters_by_reason") or {}
    named = "".join(f"\n{count:,} {escape(reason)}" for reason, count in reasons.items())
    table.add_row("dead letters", "unknown" if letters is None else f"{letters:,} within a day{named}")
    table.add_row("memory", f"{status['memory_bytes'] / MIB:,.0f} MiB")
    table.add_row("running for", f"{status['uptime_seconds']:,.0f} s, version {status['version']}")
    console.print(table, highlight=False)
    for note in readiness["notes"]:
        console.print(escape(note), highlight=False, style="yellow")


def show_dead_letters(console: Console, page: JSONObject, *, filtered: bool) -> None:
    """Two lines a letter, and how to see more. `filtered` says whether only some were asked for."""
    for letter in page["dead_letters"]:
        again = f"  [yellow]attempt {letter['attempt']:,}[/yellow]" if letter.get("attempt", 1) > 1 else ""
        console.print(
            f"[bold]{letter['position']:>8}[/bold]  {letter['at'][:19]}Z  [red]{escape(letter['reason'])}[/red]  "
            f"{escape(letter['key'] or '(no key)')}  [dim]({_size(letter)})[/dim]{again}",
            highlight=False,
        )
        console.print(f"          {escape(snippet(letter['message']))}", highlight=False)
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


def worker_text(worker: JSONObject) -> str:
    """In a few words; what there is to do about it is in the notes."""
    crashes = worker["crashes_in_ten_minutes"]
    text = str(worker["state"]).replace("_", " ")
    if worker["state"] not in ("running", "never_seen"):
        text += f", heard of {worker['heard_seconds_ago']:,.0f} s ago"
    if worker["waiting_for"] and worker["state"] in ("starting", "running"):
        text += f", waits for {', '.join(worker['waiting_for'])}"
    text += f", {crashes} crashes in ten minutes" if crashes else ""
    is_up = worker["state"] in ("starting", "running") and worker.get("metrics_url")
    return text + (f", metrics at {worker['metrics_url']}" if is_up else "")


def lag_text(status: JSONObject) -> str:
    records = status["lag_records"]
    if records is None:
        known = status.get("lag_known_seconds_ago")
        return "unknown" if known is None else f"unknown: Kafka last answered {known:,.0f} s ago"
    if records == 0:
        return "none"
    return f"{records:,} records, the oldest for {status['lag_seconds']:.1f} s"


def marked_text(hit: JSONObject) -> str:
    """Markup for one line of some SNIPPET_CHARACTERS of a hit's text, its answer among them: words of the question are
    bold, the text around the answer is dim."""
    text, answer = hit["text"], hit.get("answer")
    first, last = _around(text, answer)
    bold = [(span["start"], span["end"]) for span in hit.get("highlights", ())]
    bounds = {first, last, *((answer["start"], answer["end"]) if answer else ()), *(at for span in bold for at in span)}
    cuts = sorted(at for at in bounds if first <= at <= last)
    pieces = ["… "] if first else []
    for begin, end in pairwise(cuts):
        piece = escape(re.sub(r"\s+", " ", text[begin:end]))
        if (begin, end) in bold:
            piece = f"[bold]{piece}[/bold]"
        is_beside = answer and not answer["start"] <= begin < answer["end"]
        pieces.append(f"[dim]{piece}[/dim]" if is_beside else piece)
    return "".join(pieces) + (" …" if last < len(text) else "")


def _around(text: str, answer: JSONObject | None) -> tuple[int, int]:
    """What is shown of a text: all of a short one, else as much as has room with the answer, up to a blank. An answer
    is whole unless it is longer than two snippets."""
    if len(text) <= SNIPPET_CHARACTERS:
        return 0, len(text)
    begin, end = (answer["start"], answer["end"]) if answer else (0, 0)
    first = 0 if end <= SNIPPET_CHARACTERS else begin
    last = max(first + SNIPPET_CHARACTERS, min(end, first + 2 * SNIPPET_CHARACTERS))
    if last >= len(text) or last == end:
        return first, min(last, len(text))
    blank = max(text.rfind(sign, min(end, last), last) for sign in " \n")
    return first, last if blank < 0 else blank


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


def show_retrievals(console: Console, page: JSONObject) -> None:
    """A line a search, and how to see more."""
    for each in page["retrievals"]:
        marks = "".join(f"  [yellow]{escape(mark)}[/yellow]" for mark in _marks(each))
        console.print(
            f"{escape(each['at'][:19])}Z  [bold]{escape(each['retrieval_id'])}[/bold]  "
            f"{each['seconds'] * 1000:6.0f} ms  {each['hits']:>4} hits  {escape(snippet(each['query']))}{marks}",
            highlight=False,
        )
    if not page["retrievals"]:
        console.print("No such retrieval.", highlight=False)
    if page["next_cursor"] is not None:
        console.print(f"Older ones: --cursor {page['next_cursor']}", highlight=False, style="dim")


def show_retrieval(console: Console, retrieval: JSONObject) -> None:
    """Query and snapshot, then two lines a hit, then feedback."""
    snapshot = retrieval["snapshot"]
    rows = [
        ("question", retrieval["query"]),
        ("time", f"{retrieval['at']}, {retrieval['seconds'] * 1000:.0f} ms"),
        ("asked", ", ".join(f"{name} {value}" for name, value in _asked(retrieval).items())),
        ("as of", f"{snapshot.get('positions') or 'an empty log'} ({snapshot.get('generation', 'unknown')})"),
        ("outcome", ", ".join([retrieval["outcome"], *(["cached"] if retrieval["cached"] else [])])),
        *(("without", f"{channel}: {reason}") for channel, reason in retrieval["failed_channels"].items()),
    ]
    for name, text in rows:
        console.print(f"[dim]{name:<8}[/dim] {escape(text)}", highlight=False)
    for hit in retrieval["hits"]:
        channels = "  ".join(
            f"{channel} {score:.3g}" + (f" (rank {hit['ranks'][channel]})" if channel in hit["ranks"] else "")
            for channel, score in hit["scores"].items()
        )
        sure = "" if hit.get("confidence") is None else f"{hit['confidence']:.0%} sure  "
        console.print(
            f"[bold]{hit['rank']:>3}  {escape(hit['collection'])}/{escape(hit['document_id'])}[/bold]  {sure}"
            f"score {hit['score']:.4g}  [dim]{escape(channels)}[/dim]",
            highlight=False,
        )
        console.print(f"     [dim]chunk {escape(hit['chunk_id'])}[/dim]", highlight=False)
    for feedback in retrieval["feedback"]:
        by = f" by {feedback['caller']}" if feedback["caller"] else ""
        comment = f": {snippet(feedback['comment'])}" if feedback["comment"] else ""
        console.print(escape(f"{feedback['rating']:+g}{by} for {feedback['chunk_id']}{comment}"), highlight=False)


def show_popular(console: Console, answer: JSONObject) -> None:
    """Two lines a chunk."""
    for chunk in answer["chunks"]:
        rank = "" if chunk["mean_rank"] is None else f", mean rank {chunk['mean_rank']:.1f}"
        feedback = chunk["feedback"]
        liked = (
            f", {feedback['helpful']} helpful, {feedback['unhelpful']} not"
            if feedback["mean_rating"] is not None
            else ""
        )
        console.print(
            f"[bold]{chunk['count']:>6}  {escape(chunk['title'])}[/bold]  "
            f"[dim]{escape(chunk['collection'])}/{escape(chunk['document_id'])}{rank}{liked}[/dim]",
            highlight=False,
        )
        console.print(f"        {escape(snippet(chunk['text']))}", highlight=False)
    if not answer["chunks"]:
        console.print("No chunk was a hit in this time.", highlight=False)


def _marks(retrieval: JSONObject) -> list[str]:
    return [
        *(["cached"] if retrieval["cached"] else []),
        *([retrieval["outcome"]] if retrieval["outcome"] != "done" else []),
    ]


def _asked(retrieval: JSONObject) -> JSONObject:
    collection = {} if retrieval["collection"] is None else {"collection": retrieval["collection"]}
    return {"mode": retrieval["mode"], **collection, **retrieval["parameters"]}
