"""How the state of the service looks on a terminal."""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from query_api.cli.display import MIB, JSONObject


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
