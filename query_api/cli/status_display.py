"""How the state of the service looks on a terminal: once, and refreshed in place."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from query_api.cli.display import MIB, JSONObject

MAX_PARTITIONS = 12
RATE_SECONDS = 10.0


@dataclass(frozen=True)
class Observation:
    """The service's state at a moment, in monotonic seconds; or why it did not tell."""

    at_seconds: float
    status: JSONObject | None
    problem: str | None = None


@dataclass
class History:
    """What was observed in the last RATE_SECONDS, and what follows from it. `known` is the last state that the service
    told."""

    observations: deque[Observation] = field(default_factory=deque)
    known: JSONObject | None = None

    def add(self, observation: Observation) -> None:
        self.observations.append(observation)
        self.known = observation.status or self.known
        while observation.at_seconds - self.observations[0].at_seconds > RATE_SECONDS:
            self.observations.popleft()

    @property
    def newest(self) -> Observation:
        return self.observations[-1]

    def records_per_second(self) -> dict[tuple[str, int], float]:
        """By (topic, partition), from how far each came in the last RATE_SECONDS. Nothing of a partition whose position
        went back: other stores are served."""
        newest = self.newest
        if newest.status is None:
            return {}
        generation = newest.status["generation"]
        since = [each for each in self.observations if each.status and each.status["generation"] == generation]
        seconds = newest.at_seconds - since[0].at_seconds
        if seconds <= 0:
            return {}
        before, now = _reached(since[0].status), _reached(newest.status)
        return {
            place: (offset - before[place]) / seconds
            for place, offset in now.items()
            if place in before and offset >= before[place]
        }


def _reached(status: JSONObject | None) -> dict[tuple[str, int], int]:
    lags = [] if status is None else status["lag"]
    return {(each["topic"], each["partition"]): each["reached"] for each in lags}


def show_status(console: Console, status: JSONObject) -> None:
    """The service's state as a table of a dozen lines."""
    console.print(_facts(status_rows(status)), highlight=False)
    for note in status["readiness"]["notes"]:
        console.print(escape(note), highlight=False, style="yellow")


def status_rows(status: JSONObject) -> Iterator[tuple[str, str]]:
    """Name and markup of each thing to tell of the service."""
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


def watch_view(history: History) -> RenderableType:
    """The newest state with its lag by stage and partition, and throughput; while the service does
    not answer, the last that it told."""
    status, problem = history.known, history.newest.problem
    parts: list[RenderableType] = []
    if problem is not None:
        parts.append(Text(f"{problem} Trying again; this is what it told last.", style="yellow"))
    if status is None:
        return Group(*parts)
    parts.append(_lag_table(status, history.records_per_second()))
    parts.append(_facts(status_rows(status)))
    parts += [Text(note, style="yellow") for note in status["readiness"]["notes"]]
    parts.append(Text("Ctrl-C ends it.", style="dim"))
    return Group(*parts)


def watch_line(observation: Observation, history: History) -> str:
    """The newest state in one line, for logs."""
    if observation.status is None:
        return str(observation.problem)
    status = observation.status
    text_rates = [rate for (topic, _), rate in history.records_per_second().items() if topic == _text_topic(status)]
    fresh = status.get("freshness")
    parts = [
        "ready" if status["readiness"]["ready"] else "not ready",
        f"lag {lag_text(status)}",
        f"{sum(text_rates):.1f} records/s",
        "freshness unknown" if fresh is None else f"fresh {fresh['seconds']:.2f} s",
        f"worker {worker_text(status['worker']).partition(', metrics')[0]}",
        f"{status['streams_open']} streams",
        f"open dead letters {'unknown' if status.get('dead_letters_open') is None else status['dead_letters_open']}",
    ]
    return "  ".join(parts)


def _text_topic(status: JSONObject) -> str | None:
    """The documents topic, which comes first."""
    return status["lag"][0]["topic"] if status["lag"] else None


def _lag_table(status: JSONObject, rates: dict[tuple[str, int], float]) -> Table:
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
