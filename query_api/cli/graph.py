"""The commands `thalweg graph …`: a node with its edges, nodes and edges made by hand, the whole graph as a file."""

import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, get_args
from urllib.parse import quote, urlencode

import typer
from typer.core import TyperGroup

from query_api.cli.app import AsOf, DataDir, Json, Url, print_json, service_client, show_answer, show_list
from query_api.cli.communities import show_communities
from query_api.cli.completion import AllCollections, CollectionOfNew, OneCollection, choice, entities, predicates
from query_api.cli.edits import By, send_edit
from schemas.choices import EdgeKind
from schemas.consent import Yes, require_consent
from schemas.errors import WrongSetting, plain_failures
from schemas.terminal import say

app = typer.Typer()


class GraphGroup(TyperGroup):
    """`graph NODE` is `graph show NODE`; what looks like a misspelt command is refused as one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            from difflib import get_close_matches

            if not get_close_matches(args[0], self.commands, n=1):
                args = ["show", *args]
        return super().resolve_command(ctx, args)


graph_app = typer.Typer(
    cls=GraphGroup,
    no_args_is_help=True,
    help="Draw a node of the graph with its edges ('thalweg graph NODE'); add nodes and edges, list them, export all.",
)
nodes_app = typer.Typer(no_args_is_help=True, help="Nodes made by hand.")
edges_app = typer.Typer(no_args_is_help=True, help="Edges made by hand.")
graph_app.add_typer(nodes_app, name="nodes")
graph_app.add_typer(edges_app, name="edges")
app.add_typer(graph_app, name="graph")

PAGE_LIMIT = 1_000
Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]
Cursor = Annotated[str | None, typer.Option(help="What the list before named for more.")]
Id = Annotated[str, typer.Argument(help="Its id.")]
OwnId = Annotated[str | None, typer.Option("--id", help="Its id; made up where it is left out.")]
Properties = Annotated[list[str] | None, typer.Option("--property", help="name=value; may be repeated.")]


@graph_app.command("show", epilog="Example: thalweg graph show Beacon --depth 1 --evidence")
@plain_failures()
def show_node(
    node: Annotated[
        str,
        typer.Argument(help="An id, a document's collection/id, or a name or how it begins.", autocompletion=entities),
    ],
    depth: Annotated[int, typer.Option(min=1, max=3, help="Levels of edges.")] = 2,
    kinds: Annotated[
        str | None,
        choice(
            get_args(EdgeKind),
            several=True,
            help=f"Only these kinds of edges, with commas between: {', '.join(get_args(EdgeKind))}.",
            metavar="KINDS",
            show_default="all",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Edges of a kind, the strongest; half at each level.")] = 5,
    evidence: Annotated[bool, typer.Option("--evidence", help="Show the sentence of each statement.")] = False,
    collection: OneCollection = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Draw a node of the graph with its edges by kind and their strength, two levels deep.

    'thalweg graph NODE' is the same. Where a name begins several, they are listed.
    """
    from query_api.cli.graph_tree import Explorer, find_node

    with closing(service_client(url, data_dir)) as client:
        found = find_node(client, node, collection, kinds)
        explorer = Explorer(client, kinds, limit, with_evidence=evidence)
        tree = explorer.tree(found, depth)
    if as_json:
        print_json(tree)
        return
    from query_api.cli.display import PlainConsole
    from query_api.cli.graph_display import node_tree

    console = PlainConsole()
    console.print(node_tree(tree), highlight=False, soft_wrap=not console.is_terminal)


graph_app.command("communities", epilog="Example: thalweg graph communities --level coarse")(show_communities)


@graph_app.command("statements", epilog="Example: thalweg graph statements --predicate is_a --limit 20")
@plain_failures()
def show_statements(
    collection: AllCollections = None,
    predicate: Annotated[
        str | None, typer.Option(help="Only with this one, such as is_a.", autocompletion=predicates)
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="The seed: the same gives the same.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="Statements, at most.")] = 100,
    as_of: AsOf = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show statements at random with their sentences, to judge them by."""
    from query_api.cli import entity_display

    params = {"collection": collection, "predicate": predicate, "sample": sample, "limit": limit, "as_of": as_of}
    given = {name: value for name, value in params.items() if value is not None}
    show_answer("/v1/statements", given, entity_display.show_statements, as_json=as_json, url=url, data_dir=data_dir)


@nodes_app.command("list", epilog="Example: thalweg graph nodes list --type team")
@plain_failures()
def list_nodes(
    collection: AllCollections = None,
    node_type: Annotated[str | None, typer.Option("--type", help="Only this type.")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List the nodes that people made."""
    from query_api.cli.graph_display import show_nodes

    params = {"collection": collection, "type": node_type, "cursor": cursor}
    show_list(
        "/v1/nodes",
        params,
        "nodes",
        show_nodes,
        limit=limit,
        page_limit=PAGE_LIMIT,
        as_json=as_json,
        url=url,
        data_dir=data_dir,
    )


@nodes_app.command("add", epilog="Example: thalweg graph nodes add 'Team Petrel' --type team --text 'Owns Beacon.'")
@plain_failures()
def add_node(
    label: Annotated[str, typer.Argument(help="How it is called.")],
    node_type: Annotated[str, typer.Option("--type", help="What it is, such as person or team.")] = "thing",
    text: Annotated[str, typer.Option(help="What there is to say of it, for searches.")] = "",
    identifier: OwnId = None,
    properties: Properties = None,
    by: By = None,
    collection: CollectionOfNew = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Make a node."""
    body = {"id": identifier, "label": label, "type": node_type, "text": text, "by": by}
    made = {"properties": _properties(properties), "collection": collection}
    send_edit("POST", "/v1/nodes", body | made, as_json=as_json, url=url, data_dir=data_dir)


@nodes_app.command("delete", epilog="Example: thalweg graph nodes delete team-petrel")
@plain_failures()
def delete_node(
    node: Id,
    collection: OneCollection = None,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Delete a node that people made, and its text."""
    _delete("nodes", node, collection, yes=yes, as_json=as_json, url=url, data_dir=data_dir)


@edges_app.command("list", epilog="Example: thalweg graph edges list --predicate owns")
@plain_failures()
def list_edges(
    collection: AllCollections = None,
    node: Annotated[str | None, typer.Option(help="Only edges at the node of this id.")] = None,
    predicate: Annotated[str | None, typer.Option(help="Only this predicate.", autocompletion=predicates)] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List the edges that people made."""
    from query_api.cli.graph_display import show_edges

    params = {"collection": collection, "node": node, "predicate": predicate, "cursor": cursor}
    show_list(
        "/v1/edges",
        params,
        "edges",
        show_edges,
        limit=limit,
        page_limit=PAGE_LIMIT,
        as_json=as_json,
        url=url,
        data_dir=data_dir,
    )


@edges_app.command("add", epilog="Example: thalweg graph edges add team-petrel owns Beacon")
@plain_failures()
def add_edge(
    source: Annotated[
        str,
        typer.Argument(help="Id of a node, chunk, entity or document, or an entity's name.", autocompletion=entities),
    ],
    predicate: Annotated[str, typer.Argument(help="Such as owns or depends_on.", autocompletion=predicates)],
    target: Annotated[str, typer.Argument(help="As the source.", autocompletion=entities)],
    weight: Annotated[float, typer.Option(help="Over 0, up to 1.")] = 1.0,
    note: Annotated[str, typer.Option(help="Why it holds.")] = "",
    identifier: OwnId = None,
    properties: Properties = None,
    by: By = None,
    collection: CollectionOfNew = None,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Make an edge."""
    body = {"id": identifier, "source": source, "predicate": predicate, "target": target, "weight": weight}
    made = {"note": note, "by": by, "properties": _properties(properties), "collection": collection}
    send_edit("POST", "/v1/edges", body | made, as_json=as_json, url=url, data_dir=data_dir)


@edges_app.command("delete", epilog="Example: thalweg graph edges delete e_17")
@plain_failures()
def delete_edge(
    edge: Id,
    collection: OneCollection = None,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Delete an edge that people made."""
    _delete("edges", edge, collection, yes=yes, as_json=as_json, url=url, data_dir=data_dir)


@graph_app.command("export", epilog="Example: thalweg graph export notes.graphml --collection notes")
@plain_failures()
def export(
    file: Annotated[Path | None, typer.Argument(help="Where to write it.", show_default="standard output")] = None,
    file_format: Annotated[str, choice(("graphml", "jsonl"), "--format", help="Of the file.")] = "graphml",
    collection: CollectionOfNew = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format jsonl.")] = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Write the graph of a collection: its documents, entities and hand-made nodes, with what joins them."""
    params = {"format": "jsonl" if as_json else file_format} | _named(collection)
    with closing(service_client(url, data_dir)) as client:
        if file is None:
            for part in client.download("/v1/graph/export", params):
                sys.stdout.buffer.write(part)
            return
        partial = file.with_name(f"{file.name}.part")
        with partial.open("wb") as written:
            for part in client.download("/v1/graph/export", params):
                written.write(part)
        partial.replace(file)
    say(f"Written to {file}.")


def _properties(given: Sequence[str] | None) -> dict[str, str]:
    found = {}
    for each in given or ():
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise WrongSetting(f"{each[:80]!r} is not name=value.")
        found[name] = value
    return found


def _named(collection: str | None) -> dict[str, str]:
    return {} if collection is None else {"collection": collection}


def _delete(
    kind: str, identifier: str, collection: str | None, *, yes: bool, as_json: bool, url: Url, data_dir: DataDir
) -> None:
    what = f"node {identifier!r} and its text" if kind == "nodes" else f"edge {identifier!r}"
    of = "" if collection is None else f" of {collection!r}"
    require_consent(
        lambda: f"Delete the {what}{of}? Only making it again brings it back.",
        yes=yes,
        unattended=True,
    )
    path = f"/v1/{kind}/{quote(identifier, safe='')}"
    if collection is not None:
        path += f"?{urlencode(_named(collection))}"
    send_edit("DELETE", path, {}, as_json=as_json, url=url, data_dir=data_dir)
