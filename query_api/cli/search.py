"""`thalweg search`: every option of `/v1/search`, and hits as they stream in."""

from contextlib import closing
from typing import Annotated, Any, get_args

import typer

from query_api.cli import app as commands
from query_api.cli.app import DataDir, Json, Url, print_json
from query_api.cli.completion import choice, collections, edges, entities
from schemas.choices import Channel, Context, Duplicates, Edge, Fusion, GraphMethod, Intent, Mode
from schemas.errors import Failure, plain_failures
from schemas.filters import MAX_HITS, Group

app = typer.Typer()

WHAT, FILTERS, RANKING, GRAPH, OUTPUT = "What to find", "Filters", "Ranking", "Graph", "Output"
EXAMPLE = "Example: thalweg search 'who owns the beacon' -k 5 --collection wiki --filter 'updated>=2026'"


@app.command(epilog=EXAMPLE)
@plain_failures()
def search(
    query: Annotated[str, typer.Argument(help="The question, in plain words.")],
    k: Annotated[int, typer.Option("-k", "--k", min=1, max=MAX_HITS, help="Hits a page.", rich_help_panel=WHAT)] = 10,
    offset: Annotated[int | None, typer.Option(min=0, help="Hits to pass over.", rich_help_panel=WHAT)] = None,
    cursor: Annotated[
        str | None,
        typer.Option(help="The next page: what the page before ended with. Same snapshot.", rich_help_panel=WHAT),
    ] = None,
    collection: Annotated[
        str | None,
        typer.Option(
            help="This collection only.", autocompletion=collections, show_default="all", rich_help_panel=WHAT
        ),
    ] = None,
    mode: Annotated[
        str | None,
        choice(
            (*get_args(Mode), "rerank"),
            help="Which channels are asked: all, one, or vectors ordered by the graph; global asks about a whole "
            "collection.",
            metavar="|".join(get_args(Mode)),
            show_default="by the question",
            rich_help_panel=WHAT,
        ),
    ] = None,
    group: Annotated[
        str | None,
        choice(
            get_args(Group),
            help="What one hit stands for; a document shows its best passages.",
            show_default="document",
            rich_help_panel=WHAT,
        ),
    ] = None,
    intent: Annotated[
        str | None,
        choice(get_args(Intent), help="What kind of question it is.", show_default="by rules", rich_help_panel=WHAT),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            help="What the question names, in place of what is read from it; may be repeated.",
            autocompletion=entities,
            rich_help_panel=WHAT,
        ),
    ] = None,
    decompose: Annotated[
        bool,
        typer.Option(
            "--decompose",
            help="Search what is compared, or each sentence or question, by itself too.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    after: Annotated[
        str | None, typer.Option(help="A token from a write: show at least that.", rich_help_panel=WHAT)
    ] = None,
    wait_seconds: Annotated[
        float, typer.Option(min=0, max=60, help="How long to wait for --after.", rich_help_panel=WHAT)
    ] = 10.0,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            help="Only documents with field=value, a|b, !=, <, <=, >, >=; may be repeated.",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    min_confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="Leave out hits less likely relevant.", rich_help_panel=FILTERS)
    ] = None,
    duplicates: Annotated[
        str | None,
        choice(
            get_args(Duplicates),
            help="Leave out hits with the same text, or with texts that are alike.",
            show_default="exact for documents",
            rich_help_panel=FILTERS,
        ),
    ] = None,
    duplicate_threshold: Annotated[
        float | None,
        typer.Option(
            min=0.5, max=1, help="The cosine that makes them alike.", show_default="0.95", rich_help_panel=FILTERS
        ),
    ] = None,
    max_per_document: Annotated[
        int | None, typer.Option(min=1, max=MAX_HITS, help="Hits of one document.", rich_help_panel=FILTERS)
    ] = None,
    diversity: Annotated[
        str | None,
        typer.Option(help="A field, such as author: few hits share a value of it.", rich_help_panel=FILTERS),
    ] = None,
    max_per_value: Annotated[
        int | None,
        typer.Option(
            min=1, max=MAX_HITS, help="Of one value of --diversity.", show_default="2", rich_help_panel=FILTERS
        ),
    ] = None,
    channels: Annotated[
        str | None,
        choice(
            get_args(Channel),
            several=True,
            help="What hybrid asks, with commas between.",
            metavar="|".join(get_args(Channel)),
            show_default="all",
            rich_help_panel=RANKING,
        ),
    ] = None,
    fusion: Annotated[
        str | None,
        choice(
            get_args(Fusion),
            help="How channels are fused: by scores, by ranks, by weights.",
            show_default="adaptive",
            rich_help_panel=RANKING,
        ),
    ] = None,
    vector_weight: Annotated[
        float | None,
        typer.Option(min=0, max=1_000, help="Of vectors in weighted.", show_default="0.7", rich_help_panel=RANKING),
    ] = None,
    keyword_weight: Annotated[
        float | None,
        typer.Option(min=0, max=1_000, help="Of keywords in weighted.", show_default="0.3", rich_help_panel=RANKING),
    ] = None,
    graph_weight: Annotated[
        float | None,
        typer.Option(min=0, max=1_000, help="Of the graph.", show_default="1", rich_help_panel=RANKING),
    ] = None,
    reranker: Annotated[
        bool | None,
        typer.Option(
            help="Have the service's re-ranker order the first hits.",
            show_default="where it has one",
            rich_help_panel=RANKING,
        ),
    ] = None,
    graph_method: Annotated[
        str | None,
        choice(
            get_args(GraphMethod),
            help="How the graph is followed from the first passages.",
            show_default="hop",
            rich_help_panel=GRAPH,
        ),
    ] = None,
    edges_followed: Annotated[
        str | None,
        typer.Option(
            "--edges",
            help="Follow only these kinds of edges and predicates, with commas between.",
            autocompletion=edges(get_args(Edge)),
            show_default="all",
            rich_help_panel=GRAPH,
        ),
    ] = None,
    hops: Annotated[
        int | None,
        typer.Option(
            min=1, max=2, help="Steps of --graph-method expansion.", show_default="by the intent", rich_help_panel=GRAPH
        ),
    ] = None,
    context: Annotated[
        str | None,
        choice(
            get_args(Context),
            help="What --json shows around a hit.",
            show_default="parent",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    context_chunks: Annotated[
        int | None,
        typer.Option(
            min=1, max=10, help="Chunks on either side, for a window.", show_default="2", rich_help_panel=OUTPUT
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Show what each hit mentions and states, and what speaks for it.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Take a remembered answer.", rich_help_panel=OUTPUT)
    ] = True,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Search, and print hits as they stream in, with the path by which the graph found them."""
    unit = group or ("document" if (max_per_document or 1) == 1 else "passage")
    asked: dict[str, Any] = {
        "q": query,
        "k": k,
        "offset": offset,
        "cursor": cursor,
        "collection": collection,
        "mode": mode,
        "group": unit,
        "intent": intent,
        "names": names,
        "decompose": decompose or None,
        "after": after,
        "wait_seconds": wait_seconds,
        "filter": filters,
        "min_confidence": min_confidence,
        "duplicates": duplicates or ("exact" if unit == "document" else None),
        "duplicate_threshold": duplicate_threshold,
        "max_per_document": max_per_document,
        "diversity": diversity,
        "max_per_value": max_per_value,
        "channels": channels,
        "fusion": fusion,
        "vector_weight": vector_weight,
        "keyword_weight": keyword_weight,
        "graph_weight": graph_weight,
        "reranker": reranker,
        "graph_method": graph_method,
        "edges": edges_followed,
        "hops": hops,
        "context": context,
        "context_chunks": context_chunks,
        "explain": explain or None,
        "cache": None if cache else False,
    }
    params = {name: value for name, value in asked.items() if value not in (None, [])}
    with closing(commands.service_client(url, data_dir)) as client:
        if as_json:
            print_json(client.get("/v1/search", params))
            return
        from query_api.cli.display import PlainConsole
        from query_api.cli.hit_display import show_end, show_hit

        console = PlainConsole(soft_wrap=True)
        meta: dict[str, Any] = {}
        for name, body in client.events("/v1/search", params):
            if name == "meta":
                meta = body
            elif name == "hit":
                show_hit(console, body)
            elif name == "done":
                show_end(console, body, meta)
            elif name == "error":
                raise Failure(f"{body['title']}: {body['detail']}")
