"""The settings of a collection: `thalweg collections chunking`, `linking`, `extraction` and `graph` show, set or reset
one."""

import json
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args
from urllib.parse import quote

import typer

from query_api.cli.app import DataDir, Json, Url, print_json, service_client
from query_api.cli.completion import choice, collections
from schemas.choices import ChunkingMethod, ExtractorName
from schemas.consent import Yes, require_consent
from schemas.errors import MalformedEvent, WrongSetting, complain, plain_failures
from schemas.ids import DocumentKey
from schemas.terminal import say

if TYPE_CHECKING:
    from query_api.client import ServiceClient

CHUNKING_SIZES = ("parent_characters", "parent_overlap", "child_characters", "child_overlap", "method", "language")
LINKING_RULES = (
    "next_chunk", "next_chunk_raise", "similar_above", "similar", "related_above", "related", "max_related",
    "similar_across", "max_across",
)  # fmt: skip

Answer = dict[str, Any]
Collection = Annotated[str, typer.Argument(help="The collection.", autocompletion=collections)]
Reset = Annotated[bool, typer.Option("--reset", help="Back to the defaults.")]

commands = typer.Typer()


@dataclass(frozen=True)
class CollectionSetting:
    """`name` is the last part of its route. `effect` says of (collection, whether it is reset) what follows from a
    change; `show` prints what applies."""

    name: str
    effect: Callable[[str, bool], str]
    show: Callable[[Answer], None]

    def run(
        self,
        collection: str,
        parameters: dict[str, Any],
        *,
        reset: bool,
        yes: bool,
        as_json: bool,
        url: str | None,
        data_dir: Path | None,
    ) -> None:
        """Set it to the parameters that are given, reset it, or show it where neither is asked for. Raises WrongSetting
        for both."""
        choice = {name: value for name, value in parameters.items() if value is not None}
        if reset and choice:
            raise WrongSetting("--reset goes back to the defaults: give no other option with it.")
        path = collection_path(collection, self.name)
        with closing(service_client(url, data_dir)) as client:
            if reset:
                require_consent(partial(self._reset_question, client, collection, path), yes=yes, unattended=True)
                answer = client.delete(path)
            elif choice:
                answer = client.put(path, json.dumps(choice).encode())
            else:
                answer = client.get(path)
        if as_json:
            print_json(answer)
            return
        if reset or choice:
            say(f"In the log at {answer['position']}. {self.effect(collection, reset)}")
        else:
            self.show(answer)
        if answer.get("documents") == 0:  # perhaps a misspelt name
            complain(
                f"No document is in the collection {collection!r} yet. 'thalweg collections list' shows those there "
                "are."
            )

    def _reset_question(self, client: "ServiceClient", collection: str, path: str) -> str:
        chosen = {name: value for name, value in client.get(path)["chosen"].items() if value is not None}
        values = ", ".join(f"{name} {value}" for name, value in chosen.items()) or "nothing"
        return f"Take back the {self.name} of {collection!r}, where {values} was chosen?"


def show_parts(names: Iterable[str]) -> Callable[[Answer], None]:
    """Prints a line for each part of a setting, and whether it was chosen."""

    def show(answer: Answer) -> None:
        for name in names:
            origin = "default" if answer["chosen"].get(name) is None else f"chosen at {answer['position']}"
            say(f"{name:<18} {answer[name]!s:<10} {origin}")

    return show


CHUNKING = CollectionSetting(
    "chunking",
    lambda collection, _reset: f"Documents of {collection} that are sent from now on are cut so.",
    show_parts(CHUNKING_SIZES),
)
LINKING = CollectionSetting(
    "linking",
    lambda collection, _reset: f"'thalweg relink {collection}' applies it to what is stored.",
    show_parts(LINKING_RULES),
)
EXTRACTION = CollectionSetting(
    "extraction",
    lambda collection, _reset: f"Documents of {collection} that are sent from now on are read by it.",
    show_parts(("extractor",)),
)
GRAPH = CollectionSetting(
    "graph",
    lambda collection, reset: (
        f"Edits of {collection} are {'allowed' if reset else 'refused where they do not fit'} from now on."
    ),
    lambda answer: print_json(answer["chosen"]),
)


def collection_path(collection: str, what: str) -> str:
    """The route of something of a collection. Raises WrongSetting for what cannot be a collection's name."""
    try:
        DocumentKey.checked(collection, what)
    except MalformedEvent as error:
        raise WrongSetting(str(error)) from error
    return f"/v1/collections/{quote(collection, safe='')}/{what}"


@commands.command(
    "chunking", epilog="Example: thalweg collections chunking notes --child-characters 200 --method semantic"
)
@plain_failures()
def collection_chunking(
    collection: Collection,
    parent_characters: Annotated[int | None, typer.Option(help="Size of a passage, 200 to 100000.")] = None,
    parent_overlap: Annotated[int | None, typer.Option(help="Characters a passage repeats; up to half.")] = None,
    child_characters: Annotated[int | None, typer.Option(help="Size of a chunk, 50 to 10000.")] = None,
    child_overlap: Annotated[int | None, typer.Option(help="Characters a chunk repeats; up to half.")] = None,
    method: Annotated[
        str | None, choice(get_args(ChunkingMethod), help="At sentences, or where the meaning turns.")
    ] = None,
    language: Annotated[str | None, typer.Option(help="ISO 639 code of its sentences, or auto.")] = None,
    reset: Reset = False,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show or set how a collection's documents are chunked; what is not given is the default. It applies to documents
    sent from then on."""
    parameters: dict[str, Any] = {
        "parent_characters": parent_characters,
        "parent_overlap": parent_overlap,
        "child_characters": child_characters,
        "child_overlap": child_overlap,
        "method": method,
        "language": language,
    }
    CHUNKING.run(collection, parameters, reset=reset, yes=yes, as_json=as_json, url=url, data_dir=data_dir)


@commands.command("extraction", epilog="Example: thalweg collections extraction notes --extractor spacy")
@plain_failures()
def collection_extraction(
    collection: Collection,
    extractor: Annotated[str | None, choice(get_args(ExtractorName), help="What finds them.")] = None,
    reset: Reset = False,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show or set what finds a collection's entities. It applies to documents sent from then on."""
    EXTRACTION.run(
        collection, {"extractor": extractor}, reset=reset, yes=yes, as_json=as_json, url=url, data_dir=data_dir
    )


@commands.command("graph", epilog="Example: thalweg collections graph notes --file graph.json")
@plain_failures()
def collection_graph(
    collection: Collection,
    file: Annotated[Path | None, typer.Option(help="JSON with node_types, predicates or both.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to anything.")] = False,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show or set what people may add to a collection's graph. What was made before stays."""
    choice = {} if file is None else graph_choice_in(file)
    GRAPH.run(collection, choice, reset=reset, yes=yes, as_json=as_json, url=url, data_dir=data_dir)


def graph_choice_in(file: Path) -> dict[str, Any]:
    """What the file chooses; the service checks it. Raises WrongSetting for a file that is no JSON object or chooses
    nothing."""
    try:
        choice = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise WrongSetting(f"{file} cannot be read as JSON: {error}") from error
    if not isinstance(choice, dict) or all(value is None for value in choice.values()):
        raise WrongSetting(f"{file} is to hold a JSON object with node_types, predicates or both.")
    return choice


@commands.command("linking", epilog="Example: thalweg collections linking notes --max-related 4")
@plain_failures()
def collection_linking(
    collection: Collection,
    next_chunk: Annotated[float | None, typer.Option(help="Weight of the edge to the next chunk.")] = None,
    next_chunk_raise: Annotated[float | None, typer.Option(help="How much cosine 1 raises it, as a share.")] = None,
    similar_above: Annotated[float | None, typer.Option(help="Cosine above which neighbours are similar.")] = None,
    similar: Annotated[float | None, typer.Option(help="Weight of similar_to, times the cosine.")] = None,
    related_above: Annotated[float | None, typer.Option(help="Cosine above which others are related.")] = None,
    related: Annotated[float | None, typer.Option(help="Weight of related_to, times the cosine.")] = None,
    max_related: Annotated[int | None, typer.Option(help="Related chunks of a chunk, at most.")] = None,
    similar_across: Annotated[float | None, typer.Option(help="Weight of similar passages elsewhere.")] = None,
    max_across: Annotated[int | None, typer.Option(help="Similar passages of other documents, at most.")] = None,
    reset: Reset = False,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show or set how a collection's chunks are linked; what is not given is the default. It applies to documents
    indexed from then on, and with `thalweg relink` to all."""
    within = (next_chunk, next_chunk_raise, similar_above, similar, related_above, related, max_related)
    values = (*within, similar_across, max_across)
    parameters = dict(zip(LINKING_RULES, values, strict=True))
    LINKING.run(collection, parameters, reset=reset, yes=yes, as_json=as_json, url=url, data_dir=data_dir)
