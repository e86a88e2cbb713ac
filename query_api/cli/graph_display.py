"""What the commands about the graph print for people: a node with its edges, reviews."""

from rich.console import Console
from rich.markup import escape
from rich.text import Text
from rich.tree import Tree

from query_api.cli.display import JSONObject, plain_text, snippet
from schemas.terminal import plain


def show_reviews(console: Console, page: JSONObject) -> None:
    """Two lines a review: its id and collection with what is known of the decision, then the entities and why."""
    for review in page["reviews"]:
        marks = [review["state"]]
        if review["score"] is not None:
            marks.append(f"{review['score']:.2f}")
        if review["by"]:
            marks.append(f"by {review['by']}")
        if review["overruled"]:
            marks.append("overruled")
        told = f"{review['collection']}  {', '.join(marks)}"
        console.print(f"[bold]{review['id']}[/]  {escape(told)}", highlight=False)
        names = " / ".join(_entity(each) for each in review["entities"])
        why = review["reason"] or (f"as {review['name']}" if review["name"] else "")
        console.print(f"  {escape(names)}  [dim]{escape(why)}[/]", highlight=False)
    if not page["reviews"]:
        console.print("None.")
    _show_more(console, page)


def _entity(entity: JSONObject) -> str:
    kind = f" ({entity['type']})" if entity["type"] else ""
    return f"{entity['name'] or entity['id']}{kind}"


def _show_more(console: Console, page: JSONObject) -> None:
    if page["next_cursor"] is not None:
        console.print(f"More: --cursor {page['next_cursor']}", highlight=False, style="dim")


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
    told = f"  {kind}{where}" + (f"  {node['id']}  {node['collection'] or ''}" if with_id else "")
    return Text.assemble((plain(label), "bold" if with_id else ""), (plain(told.rstrip()), "dim"))
