"""How answers look on a terminal: tables, hits, the state of the service, a node with its edges."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from schemas.terminal import plain

SNIPPET_CHARACTERS = 240
MIB = 1024 * 1024
WIDEST = 1_000_000  # characters of a line
INDENT = 5
MOST_OTHERS = 3  # documents named that say the same
MAX_PARTITIONS = 12

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


def print_table(
    headings: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = (), with_ids: bool = False
) -> None:
    """A table that fits the terminal; elsewhere, for programs, a line each. Columns of `numbers` are right-aligned.
    The first one `with_ids` is not folded where there is room, so that they can be copied."""
    console = PlainConsole()
    if not console.is_terminal:
        console.width = WIDEST
    table = Table(box=None, pad_edge=False)
    widest = max((cell_len(plain(row[0])) for row in rows), default=0)
    for place, heading in enumerate(headings):
        is_whole = with_ids and place == 0 and widest <= console.width // 2
        side = "right" if heading in numbers else "left"
        table.add_column(plain_text(heading), justify=side, header_style="dim", overflow="fold", no_wrap=is_whole)  # type: ignore[arg-type]
    for row in rows:
        cells = row if console.is_terminal else [cell.replace("\n", "  ") for cell in row]
        table.add_row(*map(plain_text, cells))
    console.print(table, highlight=False)


def snippet(text: str) -> str:
    """One line of at most SNIPPET_CHARACTERS."""
    flat = " ".join(text.split())
    return flat if len(flat) <= SNIPPET_CHARACTERS else flat[: SNIPPET_CHARACTERS - 1].rstrip() + "…"


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
    """On a terminal, the lines that it wraps to begin under its beginning; elsewhere it stays one line, for other
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
    copies, others = hit.get("copies", 0), hit.get("duplicates", ())
    named = ", ".join(f"{each['collection']}/{each['document_id']}" for each in others[:MOST_OTHERS])
    more = max(copies, len(others)) - len(others[:MOST_OTHERS])
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


def show_subgraph(console: Console, subgraph: JSONObject) -> None:
    facts = [each | {end: each[end]["label"] for end in ("subject", "object")} for each in subgraph["relations"]]
    for line in explained_lines({"entities": subgraph["entities"], "statements": facts}):
        print_line(console, escape(line), "About ")


def show_answer(console: Console, answer: JSONObject, asked: str) -> None:
    """Its lines, or why there is none; how sure it is, and what was searched for where that is not what was asked; the
    source of each sentence."""
    if answer["refused"]:
        console.print(escape(answer["reason"]), highlight=False, style="yellow")
    for line in answer["text"].splitlines():
        console.print(escape(line), highlight=False)
    if dropped := answer.get("dropped"):
        count = "One sentence" if dropped == 1 else f"{dropped} sentences"
        console.print(f"{count} of the language model left out, without support in what it cites.", style="yellow")
    sure, searched = answer.get("confidence"), answer.get("query")
    about = [f"Confidence {sure:.2f}"] if sure is not None else []
    about += [f"searched for: {searched}"] if searched and searched != asked else []
    console.print(f"[dim]{escape('; '.join(about))}[/dim]\n" if about else "", highlight=False)
    for source in answer["citations"]:
        section = _section(source, source["title"])
        place = [escape(f"{source['collection']}/{source['document_id']}"), escape(section)]
        page = f"page {source['page']}" if source.get("page") else ""
        console.print(f"[dim]\\[{source['number']}] {', '.join(filter(None, (*place, page)))}[/dim]", highlight=False)


def show_step(console: Console, step: JSONObject) -> None:
    """One line of a research."""
    what = [
        step["action"],
        step["query"],
        f"{step['sentences']} sentences" if step["sentences"] else "",
        step["detail"],
    ]
    console.print(f"[dim]{escape('  '.join(filter(None, what)))}[/dim]", highlight=False)


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
    for facet in done.get("facets", []):
        counts = [f"{each['value']} {each['documents']}" for each in facet["values"]]
        more = [f"{what} {facet[what]}" for what in ("other", "missing") if facet[what]]
        console.print(escape(f"{facet['field']}: {', '.join(counts + more)}"), highlight=False)
    for channel, reason in done["failed_channels"].items():
        what = {"rerank": "re-ranker", "subgraph": "subgraph"}.get(channel, f"{channel} channel")
        console.print(f"Without the {what}: {escape(reason)}", highlight=False, style="yellow")
    for note in done.get("notes", []):
        console.print(escape(note), highlight=False, style="yellow")
    if done.get("next_cursor"):
        console.print(f"More: --cursor {done['next_cursor']}", highlight=False, style="dim")


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


def show_status(console: Console, status: JSONObject) -> None:
    """The service's state as a table of a dozen lines."""
    console.print(_facts(status_rows(status)), highlight=False)
    for note in status["readiness"]["notes"]:
        console.print(escape(note), highlight=False, style="yellow")


def status_rows(status: JSONObject) -> Iterator[tuple[str, str]]:
    """Name and markup of each line of the service's state."""
    readiness = status["readiness"]
    yield "service", "ready" if readiness["ready"] else "not ready: " + escape(" ".join(readiness["reasons"]))
    if data_dir := status.get("data_dir"):
        yield "data", escape(data_dir)
    yield "kafka", f"{readiness['kafka']} ({escape(status['kafka_servers'] or 'none known')})"
    yield "generation", escape(status["generation"] or "none yet")
    yield "worker", escape(worker_text(status["worker"]))
    yield "lag", lag_text(status)
    if fresh := status.get("freshness"):
        ago = fresh["measured_seconds_ago"]
        yield "fresh", f"searchable {fresh['seconds']:.2f} s after it was written, measured {ago:,.0f} s ago"
    yield "searchable up to", status["positions"] or "nothing yet"
    if status["graph_position"] is not None:
        age = readiness["snapshot_age_seconds"]
        old = "" if age is None else f", {age:,.0f} s old"
        yield "graph", f"position {status['graph_position']}, snapshot at {status['graph_base_position']}{old}"
    counts = {name: count for name, count in status["counts"].items() if name != "misplaced"}
    yield "holds", ", ".join(f"{count:,} {name}" for name, count in counts.items()) or "nothing yet"
    if misplaced := status["counts"].get("misplaced"):
        yield "misplaced", f"{misplaced:,} documents are not only where Kafka's default partitioner puts them"
    running, waiting, streams = status["searches_running"], status["searches_waiting"], status["streams_open"]
    yield "searches", f"{running} running, {waiting} waiting, {streams} streams open"
    yield "provenance", f"{status['provenance_buffered']} waiting, {status['provenance_dropped']} dropped"
    yield "dead letters", _dead_letters(status)
    free = status["disk_free_bytes"]
    disk = "" if free is None else f", {free / MIB:,.0f} MiB of the disk free"
    yield "memory", f"{status['memory_bytes'] / MIB:,.0f} MiB{disk}"
    yield "running for", f"{status['uptime_seconds']:,.0f} s, version {escape(status['version'])}"


def _dead_letters(status: JSONObject) -> str:
    """How many are open, by reason, and how many came within a day."""
    open_ones, of_the_day = status.get("dead_letters_open"), status["dead_letters_last_day"]
    reasons = status.get("dead_letters_open_by_reason") or {}
    named = "".join(f"\n{count:,} {escape(reason)}" for reason, count in reasons.items())
    came = "" if of_the_day is None else f"; {of_the_day:,} came within a day"
    return f"{'unknown how many are' if open_ones is None else f'{open_ones:,}'} open{came}{named}"


def _facts(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, text)
    return table


def status_view(status: JSONObject, rates: Mapping[tuple[str, int], float]) -> RenderableType:
    """The state with its lag by stage and partition, and throughput."""
    notes = [Text(note, style="yellow") for note in status["readiness"]["notes"]]
    return Group(_lag_table(status, rates), _facts(status_rows(status)), *notes, Text("Ctrl-C ends it.", style="dim"))


def status_line(status: JSONObject, rates: Mapping[tuple[str, int], float]) -> str:
    """The state in one line, for logs."""
    fresh, letters = status.get("freshness"), status.get("dead_letters_open")
    parts = [
        "ready" if status["readiness"]["ready"] else "not ready",
        f"lag {lag_text(status)}",
        f"{sum(rate for (topic, _), rate in rates.items() if topic == _text_topic(status)):.1f} records/s",
        "freshness unknown" if fresh is None else f"fresh {fresh['seconds']:.2f} s",
        f"worker {worker_text(status['worker']).partition(', metrics')[0]}",
        f"{status['streams_open']} streams",
        f"open dead letters {'unknown' if letters is None else letters}",
    ]
    return "  ".join(parts)


def _text_topic(status: JSONObject) -> str | None:
    """The documents topic, which comes first."""
    return status["lag"][0]["topic"] if status["lag"] else None


def _lag_table(status: JSONObject, rates: Mapping[tuple[str, int], float]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("stage", header_style="dim")
    for heading in ("partition", "reached", "end", "lag", "seconds", "records/s"):
        table.add_column(heading, justify="right", header_style="dim")
    text_topic = _text_topic(status)
    lags = status["lag"]
    shown = sorted(lags, key=lambda each: -(each["records"] or 0))[:MAX_PARTITIONS]
    for each in (each for each in lags if each in shown):
        rate = rates.get((each["topic"], each["partition"]))
        table.add_row(
            "text" if each["topic"] == text_topic else "graph",
            str(each["partition"]),
            f"{each['reached']:,}" if each["reached"] >= 0 else "none",
            _number(each["end"]),
            _number(each["records"]),
            "?" if each["seconds"] is None else f"{each['seconds']:,.1f}",
            "" if rate is None else f"{rate:,.1f}",
            style="yellow" if each["records"] else "",
        )
    if len(lags) > len(shown):
        table.add_row(f"… {len(lags) - len(shown)} more", *[""] * 6, style="dim")
    return table


def _number(count: int | None) -> str:
    return "?" if count is None else f"{count:,}"


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


def node_tree(tree: JSONObject) -> Tree:
    """The node above its edges, by kind; each with its strength, and the node it leads to."""
    drawn = Tree(_node_line(tree["node"], with_id=True), guide_style="dim")
    _add_groups(drawn, tree)
    if not tree["groups"]:
        drawn.add(Text("no such edges", style="dim"))
    return drawn


def _add_groups(branch: Tree, tree: JSONObject) -> None:
    for group in tree["groups"]:
        arrow = "←" if group["inward"] else "→"
        kind = branch.add(Text(f"{arrow} {plain(group['edge'])}", style="cyan"))
        for neighbour in group["neighbours"]:
            weight = neighbour["weight"]
            strength = f"{weight:.0f} times  " if group["kind"] == "mentions" else f"{weight:.2f}  "
            leaf = kind.add(Text.assemble((strength, "dim"), _node_line(neighbour["node"])))
            if neighbour["evidence"]:
                leaf.add(plain_text(f"“{snippet(neighbour['evidence'])}”", "dim"))
            _add_groups(leaf, neighbour)
        if group["more"]:
            kind.add(Text(f"… {group['more']:,} more", style="dim"))
    if tree["truncated"]:
        branch.add(Text("… and more edges than were read", style="dim"))


def _node_line(node: JSONObject, *, with_id: bool = False) -> Text:
    kind = (node["type"] or "node") if node["kind"] == "hand_made" else node["kind"]
    label = f"“{node['label']}…”" if node["kind"] == "chunk" else node["label"]
    where = f" {node['document_id']}" if node["kind"] in ("chunk", "document") and node["document_id"] else ""
    details = f"  {kind}{where}" + (f"  {node['id']}  {node['collection'] or ''}" if with_id else "")
    return Text.assemble((plain(label), "bold" if with_id else ""), (plain(details.rstrip()), "dim"))
