"""`thalweg search` and `thalweg ask`: parameters of `/v1/search` as options; hits or an answer as they stream in."""

import inspect
import json
import re
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import closing
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, cast, get_args

import typer
from typer.core import TyperCommand
from typer.main import get_command

from query_api.cli import app as commands
from query_api.cli.app import DataDir, Json, Url, print_json
from query_api.cli.completion import choice, collections, edges, entities
from schemas.choices import Edge
from schemas.errors import plain_failures

app = typer.Typer()

WHAT, FILTERS, RANKING, GRAPH, ANSWER, OUTPUT = "What to find", "Filters", "Ranking", "Graph", "Answer", "Output"
PANELS = {
    FILTERS: (
        "filter", "min_confidence", "duplicates", "duplicate_threshold", "max_per_document", "diversity",
        "max_per_value",
    ),
    RANKING: ("channels", "fusion", "vector_weight", "keyword_weight", "graph_weight", "reranker", "sort"),
    GRAPH: ("graph_method", "edges", "hops"),
    ANSWER: ("answer", "answer_form", "answer_sentences", "answer_words"),
    OUTPUT: ("context", "context_chunks", "explain", "subgraph", "facets", "cache"),
}  # fmt: skip
"""Of the parameters by name; the others say what to find."""

FLAGS = {"k": ("-k", "--k"), "names": ("--name",), "facets": ("--facet",)}
COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    "collection": collections,
    "names": entities,
    "edges": edges(get_args(Edge)),
}
OWN_DEFAULTS = {
    "group": "document",
    "duplicates": "exact for documents",
    "collection": "all",
    "mode": "by the question",
}
"""Where a page for people has another default than the route, or the route has none."""

ANSWERS = "/v1/answers"
CONVERSATION = typer.Option(
    "--conversation", help="The id of a conversation to ask in: `thalweg api GET /v1/conversations` lists them."
)
ASK_EXAMPLE = "Example: thalweg ask 'who owns the beacon' --collection wiki --answer-sentences 5"
EXAMPLE = "Example: thalweg search 'who owns the beacon' -k 5 --collection wiki --filter 'updated>=2026'"


class SearchCommand(TyperCommand):
    """Its options are the fields of a search's request, whose class is imported when they are asked for: the other
    commands start without it."""

    run: Callable[..., None]
    without: frozenset[str] = frozenset()
    further: Mapping[str, tuple[Any, Any]] = MappingProxyType({})

    def __init__(self, **options: Any) -> None:
        self._own_help = options["help"]
        super().__init__(**options)

    @cached_property
    def _whole(self) -> TyperCommand:
        derived = typer.Typer(add_completion=False)
        derived.command(help=self._own_help, epilog=self.epilog)(
            _with_options(type(self).run, self.without, self.further)
        )
        return cast("TyperCommand", get_command(derived))

    @property
    def params(self) -> list[Any]:
        return self._whole.params

    @params.setter
    def params(self, _none: list[Any]) -> None:
        """Those of the plain function are not used."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self._whole.make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: Any) -> Any:
        return self._whole.invoke(ctx)


@plain_failures()
def search(*, as_json: bool, url: str | None, data_dir: Path | None, **parameters: Any) -> None:
    params = {name: value for name, value in parameters.items() if value not in (None, [])}
    unit = params.setdefault("group", "document" if params.get("max_per_document", 1) == 1 else "passage")
    if unit == "document":
        params.setdefault("duplicates", "exact")
    _print_found(params, url, data_dir, as_json=as_json, with_hits=True)


@plain_failures()
def ask(*, as_json: bool, url: str | None, data_dir: Path | None, **parameters: Any) -> None:
    given = {name: value for name, value in parameters.items() if value not in (None, [])}
    params = {"duplicates": "exact", **given, "answer": True}
    _print_found(params, url, data_dir, as_json=as_json, with_hits=False)


def _print_found(
    params: dict[str, Any], url: str | None, data_dir: Path | None, *, as_json: bool, with_hits: bool
) -> None:
    """The hits as they come, where they are wanted, and the answer."""
    body = json.dumps(params).encode() if "conversation" in params else None
    with closing(commands.service_client(url, data_dir)) as client:
        if as_json:
            print_json(client.post(ANSWERS, body) if body else client.get("/v1/search", params))
            return
        from query_api.cli.display import PlainConsole, show_answer, show_end, show_hit, show_subgraph

        console = PlainConsole(soft_wrap=True)
        meta: dict[str, Any] = {}
        events = client.resumed_events(ANSWERS, body) if body else client.events("/v1/search", params)
        for name, data, _ in events:
            if name == "meta":
                meta = data
            elif name == "hit" and with_hits:
                show_hit(console, data)
            elif name == "subgraph":
                show_subgraph(console, data)
            elif name == "done":
                if data.get("answer"):
                    show_answer(console, data["answer"], params["q"])
                show_end(console, data if with_hits else data | {"next_cursor": None}, meta)


class FindCommand(SearchCommand):
    run = staticmethod(search)


class AskCommand(SearchCommand):
    run = staticmethod(ask)
    without = frozenset({"answer", "offset", "cursor", "explain", "subgraph", "facets", "context", "context_chunks"})
    further = MappingProxyType({"conversation": (Annotated[str | None, CONVERSATION], None)})


@app.command("search", cls=FindCommand, epilog=EXAMPLE)
def _search() -> None:
    """Search, and print hits as they stream in, with the path by which the graph found them."""


@app.command("ask", cls=AskCommand, epilog=ASK_EXAMPLE)
def _ask() -> None:
    """Answer a question with sentences of what is found, each with its source: word for word, or, with --answer-form
    model, as a language model writes them."""


def _with_options(
    function: Callable[..., None], without: Container[str], further: Mapping[str, tuple[Any, Any]]
) -> Callable[..., None]:
    """Gives a function that takes parameters of a search the signature that typer makes options of."""
    parameters = {name: option for name, option in _parameters() if name not in without}
    options = {**parameters, **further, "as_json": (Json, False), "url": (Url, None), "data_dir": (DataDir, None)}
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in options.items()
        ]
    )
    function.__annotations__ = {name: annotation for name, (annotation, _) in options.items()}
    return function


def _parameters() -> Iterator[tuple[str, tuple[Any, Any]]]:
    """The name, type and default of each parameter of a search; the question is the argument."""
    from schemas.search import SearchRequest

    panels = {name: panel for panel, names in PANELS.items() for name in names}
    fields: dict[str, dict[str, Any]] = SearchRequest.model_json_schema()["properties"]
    for name, described in fields.items():
        field = described | next((kind for kind in described.get("anyOf", ()) if kind["type"] != "null"), {})
        text = described["description"].partition(". ")[0].rstrip(".") + "."
        text = re.sub(r"`(\w+)`", lambda named: _flags(named[1])[-1] if named[1] in fields else named[0], text)
        if name == "q":
            yield name, (Annotated[str, typer.Argument(help=text, metavar="QUERY")], inspect.Parameter.empty)
        else:
            kind, option = _option(name, field, text, panels.get(name, WHAT))
            yield name, (Annotated[kind | None, option], None)


def _flags(name: str) -> tuple[str, ...]:
    return FLAGS.get(name, (f"--{name.replace('_', '-')}",))


def _option(name: str, field: dict[str, Any], text: str, panel: str) -> tuple[Any, Any]:
    """The type and the option of a field, as JSON Schema describes it."""
    flags = _flags(name)
    shown = OWN_DEFAULTS.get(name, field.get("default"))
    more: dict[str, Any] = {"help": text, "rich_help_panel": panel}
    if name in COMPLETIONS:
        more["autocompletion"] = COMPLETIONS[name]
    if shown not in (None, [], False):
        more["show_default"] = str(shown)
    values = field.get("enum") or field.get("items", {}).get("enum")
    if values:
        return str, choice(tuple(values), *flags, several=field["type"] == "array", **more)
    match field["type"]:
        case "boolean":
            switch = flags if field.get("default") is False else (f"--{name}/--no-{name}",)
            return bool, typer.Option(*switch, **(more | {"show_default": False}))
        case "array":
            return list[str], typer.Option(*flags, **more)
        case "string":
            return str, typer.Option(*flags, **more)
        case number:
            least, most = field.get("minimum"), field.get("maximum")
            kind = int if number == "integer" else float
            return kind, typer.Option(*flags, min=least, max=most, **more)
