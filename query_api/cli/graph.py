"""`thalweg graph show`: a node with its edges."""

from contextlib import closing
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperGroup

from query_api.cli.app import DataDir, Json, Url, print_json, service_client
from query_api.cli.completion import OneCollection, choice, entities
from schemas.choices import EdgeKind
from schemas.errors import plain_failures

app = typer.Typer()


class GraphGroup(TyperGroup):
    """`graph NODE` is `graph show NODE`; what looks like a misspelt command is refused as one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            from difflib import get_close_matches

            as_long = [each for each in self.commands if abs(len(each) - len(args[0])) <= 1]
            if not get_close_matches(args[0], as_long, n=1, cutoff=0.7):
                args = ["show", *args]
        return super().resolve_command(ctx, args)


graph_app = typer.Typer(
    cls=GraphGroup,
    no_args_is_help=True,
    help="Draw a node of the graph with its edges, 'thalweg graph NODE', or import a graph.",
)
app.add_typer(graph_app, name="graph")


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
    from query_api.cli.display import PlainConsole, node_tree

    console = PlainConsole()
    console.print(node_tree(tree), highlight=False, soft_wrap=not console.is_terminal)
