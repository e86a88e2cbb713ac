"""What the commands about the graph print for people: reviews, hand-made nodes and edges."""

from rich.console import Console
from rich.markup import escape

from query_api.cli.display import snippet
from query_api.client import JSONObject


def show_reviews(console: Console, page: JSONObject) -> None:
    """Two lines a review: its id with what is known of the decision, then the entities and why."""
    for review in page["reviews"]:
        marks = [review["state"]]
        if review["score"] is not None:
            marks.append(f"{review['score']:.2f}")
        if review["by"]:
            marks.append(f"by {review['by']}")
        if review["overruled"]:
            marks.append("overruled")
        console.print(f"[bold]{review['id']}[/] {escape(', '.join(marks))}", highlight=False)
        names = " / ".join(_entity(each) for each in review["entities"])
        told = review["reason"] or (f"as {review['name']}" if review["name"] else "")
        console.print(f"  {escape(names)}  [dim]{escape(told)}[/]", highlight=False)
    if not page["reviews"]:
        console.print("None.")
    _show_more(console, page)


def _entity(entity: JSONObject) -> str:
    kind = f" ({entity['type']})" if entity["type"] else ""
    return f"{entity['name'] or entity['id']}{kind}"


def show_nodes(console: Console, page: JSONObject) -> None:
    """A line a node."""
    for node in page["nodes"]:
        text = f"  [dim]{escape(snippet(node['text']))}[/]" if node["text"] else ""
        console.print(f"[bold]{escape(node['id'])}[/] {escape(node['label'])} ({node['type']}){text}", highlight=False)
    if not page["nodes"]:
        console.print("Nobody has made a node here: 'thalweg graph nodes add' does.")
    _show_more(console, page)


def show_edges(console: Console, page: JSONObject) -> None:
    """A line an edge."""
    for edge in page["edges"]:
        gone = f"  [yellow]{' and '.join(edge['missing'])} not there[/]" if edge["missing"] else ""
        ends = f"{edge['source']} ─{edge['predicate']}→ {edge['target']}"
        console.print(f"[bold]{escape(edge['id'])}[/] {escape(ends)}{gone}", highlight=False)
    if not page["edges"]:
        console.print("Nobody has made an edge here: 'thalweg graph edges add' does.")
    _show_more(console, page)


def _show_more(console: Console, page: JSONObject) -> None:
    if page["next_cursor"] is not None:
        console.print(f"More: --cursor {page['next_cursor']}", highlight=False, style="dim")
