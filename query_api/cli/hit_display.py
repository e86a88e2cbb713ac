"""How hits of a search look on a terminal: three lines each, and what more there is to tell."""

import re
from collections.abc import Iterator
from itertools import pairwise

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from query_api.cli.display import SNIPPET_CHARACTERS, JSONObject, snippet

INDENT = 5
MOST_OTHERS = 3  # documents named that say the same


def show_hit(console: Console, hit: JSONObject) -> None:
    """Title and section; address, how likely it is relevant, score by channel; the text. Then, where there is any: the
    next passages of its document, what was asked of its fields, which parts of the question found it, what was left out
    for it, how the graph came to it.
    """
    section = _section(hit, hit["title"])
    title = escape(hit["title"]) + (f" [dim]› {escape(section)}[/dim]" if section else "")
    print_line(console, f"[bold]{title}[/bold]", f"{hit['rank']:>3}  ")
    print_line(console, f"[dim]{escape(_about(hit))}[/dim]")
    print_line(console, marked_text(hit))
    for passage in hit.get("passages", ()):
        page = f"page {passage['page']}" if passage.get("page") else ""
        place = ", ".join(filter(None, (_section(passage, hit["title"]), page)))
        place = f"[dim]{escape(place)}:[/dim] " if place else ""
        print_line(console, place + marked_text(passage), " " * INDENT + "+ ")
    for line in _found_by(hit):
        print_line(console, line)
    for step in hit["path"]:
        print_line(console, f"[cyan]{escape(step_text(step))}[/cyan]")
        if step.get("evidence"):
            print_line(console, f"[dim]“{escape(snippet(step['evidence']))}”[/dim]", " " * (INDENT + 4))
    for line in explained_lines(hit):
        print_line(console, f"[dim]{escape(line)}[/dim]")
    console.print()


def print_line(console: Console, markup: str, lead: str = " " * INDENT) -> None:
    """On a terminal, the lines that it wraps to stand under its beginning; elsewhere it stays one line, for other
    programs to read."""
    if not console.is_terminal:
        console.print(lead + markup, highlight=False)
        return
    line = Table.grid()
    line.add_column(width=len(lead), no_wrap=True)
    line.add_column(overflow="fold")
    line.add_row(lead, markup)
    console.print(line, soft_wrap=False, highlight=False)


def _section(passage: JSONObject, title: str) -> str:
    return " › ".join(heading for heading in passage["section"] if heading != title)


def _about(hit: JSONObject) -> str:
    likelihood = f"{hit['likelihood']}   " if hit.get("likelihood") else ""
    scores = "  ".join(f"{channel} {score:.3g}" for channel, score in hit["scores"].items())
    uri = f"   {hit['uri']}" if hit.get("uri") else ""
    return f"{hit['collection']}/{hit['document_id']}   {likelihood}score {hit['score']:.4g}   ({scores}){uri}"


def _found_by(hit: JSONObject) -> Iterator[str]:
    if hit.get("matches"):
        yield f"[cyan]has {escape(', '.join(hit['matches']))}[/cyan]"
    if community := hit.get("community"):
        yield f"[cyan]of {escape(community['title'])} ({community['size']} entities)[/cyan]"
    if hit.get("parts"):
        found = ", ".join(f"“{part}” at {rank}" for part, rank in hit["parts"].items())
        yield f"[dim]for {escape(found)}[/dim]"
    if others := _others(hit):
        yield f"[dim]{escape(others)}[/dim]"


def _others(hit: JSONObject) -> str:
    """How many copies its document has, and which documents say the same; empty for none."""
    copies, told = hit.get("copies", 0), hit.get("duplicates", ())
    named = ", ".join(f"{each['collection']}/{each['document_id']}" for each in told[:MOST_OTHERS])
    more = max(copies, len(told)) - len(told[:MOST_OTHERS])
    parts = ["1 copy" if copies == 1 else f"{copies:,} copies"] if copies else []
    if named:
        parts.append(f"also in {named}" + (f" and {more:,} more" if more else ""))
    return "; ".join(parts)


def explained_lines(hit: JSONObject) -> Iterator[str]:
    """Of a hit with `explain`: what its chunk mentions, what it states, and the factors."""
    if hit.get("entities"):
        yield "mentions " + ", ".join(f"{each['label']} ({each['type']})" for each in hit["entities"])
    for fact in hit.get("statements") or ():
        yield f"states {fact['subject']} ─{fact['predicate']}→ {fact['object']}"
    if hit.get("factors") and hit.get("confidence") is not None:
        yield f"confidence {hit['confidence']:.0%}"
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
    if done.get("next_cursor"):
        console.print(f"More: --cursor {done['next_cursor']}", highlight=False, style="dim")


def period_text(period: JSONObject) -> str:
    """What a time in the question let through."""
    if not period["documents"]:
        return f"No document is from “{period['words']}”: all were searched."
    if not period.get("filters", True):
        return f"Documents from “{period['words']}” are raised; none is left out."
    dated = " or ".join([*period["fields"], "arrival"])
    noun = "document" if period["documents"] == 1 else "documents"
    return f"Only {period['documents']} {noun} from “{period['words']}”, by {dated}."


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
