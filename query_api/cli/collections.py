"""The commands `thalweg collections …` and `thalweg relink`: list, settings, delete."""

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote, urlencode

import typer

from query_api.cli.app import DataDir, Json, Url, print_json, service_client, show_answer
from query_api.client import ServiceClient, document_positions
from schemas.api import describe_collections
from schemas.errors import Failure, MalformedEvent, WrongSetting, complain, plain_failures
from schemas.ids import DocumentKey
from schemas.receipts import Token, merge_tokens, parse_token
from schemas.terminal import plain, say

THREADS = 16
PAUSE_SECONDS = 0.25

Advance = Callable[[], None]


@dataclass(frozen=True)
class CollectionDeleted:
    """`documents` were there and have a tombstone; `left` are in the collection after all, sent again meanwhile. None
    where nobody waited."""

    collection: str
    documents: int
    left: int | None
    token: str


def documents_of(client: ServiceClient, collection: str) -> list[str]:
    """The ids of the collection's documents. Raises WrongSetting, with the collections there are, for none."""
    ids = list(document_positions(client, collection))
    if ids:
        return ids
    names = [each["name"] for each in client.get("/v1/collections")["collections"] if each["documents"]]
    there = describe_collections(names) if names else "No document is in any collection."
    raise WrongSetting(f"No document is in the collection {collection!r}, so there is nothing to delete. {there}")


def publish_tombstones(
    client: ServiceClient, collection: str, ids: Iterable[str], advance: Advance = lambda: None
) -> dict[str, Token]:
    """The token of each document's tombstones, once the log has them all. Safe to break off and to repeat."""

    def publish(document_id: str) -> tuple[str, Token]:
        answer = client.delete(f"{_path(document_id)}?{urlencode({'collection': collection})}")
        return document_id, parse_token(answer["token"])

    tokens: dict[str, Token] = {}
    with ThreadPoolExecutor(THREADS) as pool:
        for document_id, token in pool.map(publish, ids):
            tokens[document_id] = token
            advance()
    return tokens


def follow_tombstones(
    client: ServiceClient,
    collection: str,
    tokens: Mapping[str, Token],
    advance: Advance = lambda: None,
    *,
    timeout_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    now_seconds: Callable[[], float] = time.monotonic,
) -> None:
    """Wait until searches show none of the documents, by text or by the graph; `advance` is called for each that is
    gone from the text tables.

    A partition keeps its order, so the newest tombstone of each covers those before it. Raises Failure when nothing
    moves for `timeout_seconds`.
    """
    newest: dict[int, tuple[str, Token]] = {}
    for document_id, each in tokens.items():
        for partition, offset in each.positions.items():
            if partition not in newest or newest[partition][1].positions[partition] < offset:
                newest[partition] = document_id, each
    deleted, last, since = 0, None, now_seconds()
    while True:
        reached = merge_tokens([client.get("/v1/status")["positions"] or ""]).positions
        gone = sum(
            all(offset <= reached.get(partition, -1) for partition, offset in each.positions.items())
            for each in tokens.values()
        )
        for _ in range(deleted, gone):
            advance()
        deleted = max(deleted, gone)
        newest = {
            partition: (document_id, each)
            for partition, (document_id, each) in newest.items()
            if not client.get(f"{_path(document_id)}/status", {"collection": collection, "position": str(each)})[
                "final"
            ]
        }
        if not newest:
            return
        if (deleted, len(newest)) != last:
            last, since = (deleted, len(newest)), now_seconds()
        elif now_seconds() - since > timeout_seconds:
            raise Failure(
                f"Nothing was deleted for {timeout_seconds:.0f} s, {deleted:,} of {len(tokens):,} documents are. The "
                "tombstones are safe in Kafka; is a worker running? 'thalweg status' tells."
            )
        sleep(PAUSE_SECONDS)


def token_of(tokens: Mapping[str, Token]) -> str:
    """What to search after, to see none of the documents."""
    return str(merge_tokens(str(token) for token in tokens.values()))


def still_listed(client: ServiceClient, collection: str, ids: Iterable[str]) -> int:
    """How many of the documents the service lists again, or still."""
    return len(document_positions(client, collection).keys() & set(ids))


def _path(document_id: str) -> str:
    """The document's route; dots too are encoded, for `..` in a path would be taken for a way up."""
    return "/v1/documents/" + quote(document_id, safe="").replace(".", "%2E")


def summary_of(dropped: CollectionDeleted, chosen: Mapping[str, Any]) -> list[str]:
    """Sentences; `chosen` are the settings of the collection by name, null where nothing was chosen."""
    if dropped.left is None:
        sentences = [f"{dropped.documents:,} tombstones of {dropped.collection} are in the log; the worker deletes."]
    else:
        sentences = [f"{dropped.documents - dropped.left:,} documents of {dropped.collection} deleted."]
    if dropped.left:
        sentences.append(f"{dropped.left:,} were sent again meanwhile, and are there.")
    quoted = shlex.quote(dropped.collection)
    sentences += [
        f"Its {name} stays chosen; 'thalweg collections {name} {quoted} --reset' takes it back."
        for name in ("chunking", "linking", "extraction")
        if chosen.get(name) is not None
    ]
    return sentences


POLL_SECONDS = 0.5
LINKING_RULES = (
    "next_chunk", "next_chunk_raise", "similar_above", "similar", "related_above", "related", "max_related",
    "similar_across", "max_across",
)  # fmt: skip

app = typer.Typer()
collections_app = typer.Typer(
    no_args_is_help=True, help="See the collections, choose how they are indexed, delete one."
)
app.add_typer(collections_app, name="collections")


@collections_app.callback()
def collections() -> None:
    """See the collections, choose how they are indexed, delete one."""


@collections_app.command("list")
@plain_failures()
def list_collections(as_json: Json = False, url: Url = None, data_dir: DataDir = None) -> None:
    """List the collections: how many documents and chunks each holds, and what was chosen for it."""
    from query_api.cli.display import show_collections

    show_answer("/v1/collections", {}, show_collections, as_json=as_json, url=url, data_dir=data_dir)


@collections_app.command("chunking")
@plain_failures()
def collection_chunking(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    parent_characters: Annotated[int | None, typer.Option(help="Size of a passage, 200 to 100000.")] = None,
    parent_overlap: Annotated[int | None, typer.Option(help="Characters a passage repeats; up to half.")] = None,
    child_characters: Annotated[int | None, typer.Option(help="Size of a chunk, 50 to 10000.")] = None,
    child_overlap: Annotated[int | None, typer.Option(help="Characters a chunk repeats; up to half.")] = None,
    method: Annotated[str | None, typer.Option(help="sentences, or semantic: cut where the meaning turns.")] = None,
    language: Annotated[str | None, typer.Option(help="ISO 639 code of its sentences, or auto.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to the defaults.")] = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show or set how a collection's documents are chunked; what is not given is the default. It applies to documents
    sent from then on."""
    from query_api.cli.display import show_chunking

    parameters: dict[str, Any] = {
        "parent_characters": parent_characters,
        "parent_overlap": parent_overlap,
        "child_characters": child_characters,
        "child_overlap": child_overlap,
        "method": method,
        "language": language,
    }
    answer, changed = collection_setting(collection, "chunking", parameters, reset=reset, url=url, data_dir=data_dir)
    if as_json:
        print_json(answer)
    elif changed:
        say(f"In the log at {answer['position']}. Documents of {collection} that are sent from now on are cut so.")
    else:
        show_chunking(answer)
    if not as_json:
        note_if_empty(collection, answer)


@collections_app.command("extraction")
@plain_failures()
def collection_extraction(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    extractor: Annotated[str | None, typer.Option(help="rules (the default), language_model, spacy or none.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to the default.")] = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show or set what finds a collection's entities. It applies to documents sent from then on."""
    answer, changed = collection_setting(
        collection, "extraction", {"extractor": extractor}, reset=reset, url=url, data_dir=data_dir
    )
    if as_json:
        print_json(answer)
    elif changed:
        say(f"In the log at {answer['position']}. Documents of {collection} that are sent from now on are read by it.")
    else:
        origin = "default" if answer["position"] is None else f"chosen at {answer['position']}"
        print(f"extractor {answer['extractor']:<16} {origin}")
    if not as_json:
        note_if_empty(collection, answer)


@collections_app.command("graph")
@plain_failures()
def collection_graph(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    file: Annotated[Path | None, typer.Option(help="JSON with node_types, predicates or both.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to anything.")] = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show or set what people may add to a collection's graph. What was made before stays."""
    choice = {} if file is None else graph_choice_in(file)
    answer, changed = collection_setting(collection, "graph", choice, reset=reset, url=url, data_dir=data_dir)
    if as_json:
        print_json(answer)
    elif changed:
        rule = "allowed" if reset else "refused where they do not fit"
        say(f"In the log at {answer['position']}. Edits of {collection} are {rule} from now on.")
    else:
        print_json(answer["chosen"])
    if not as_json:
        note_if_empty(collection, answer)


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


@collections_app.command("delete")
@plain_failures()
def delete_collection(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Annotated[bool, typer.Option(help="Wait until both stores show it.")] = True,
    patience: Annotated[float, typer.Option(min=0, help="Give up after so many seconds without progress.")] = 120.0,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Delete all documents of a collection, such as one that `evaluate` made, from both stores."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from query_api.cli.display import PlainConsole

    collection_path(collection, "any")
    with closing(service_client(url, data_dir)) as client:
        ids = documents_of(client, collection)
        if not yes:
            require_consent(f"Delete all {len(ids):,} documents of the collection {collection!r}?")
        columns = (TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, console=PlainConsole(stderr=True), disable=as_json) as progress:

            def bar(name: str) -> Callable[[], None]:
                task = progress.add_task(name, total=len(ids))
                return lambda: progress.advance(task)

            tokens = publish_tombstones(client, collection, ids, bar("published"))
            if wait:
                follow_tombstones(client, collection, tokens, bar("deleted"), timeout_seconds=patience)
        left = still_listed(client, collection, ids) if wait else None
        deletion = CollectionDeleted(collection, len(ids), left, token_of(tokens))
        if as_json:
            print_json(asdict(deletion))
            return
        there = client.get("/v1/collections")["collections"]
    for sentence in summary_of(deletion, next((each for each in there if each["name"] == collection), {})):
        say(sentence)
    print(f"token {deletion.token}")


def require_consent(question: str) -> None:
    """Ask at the terminal. Raises WrongSetting where there is none, Failure for a no."""
    if not is_interactive():
        raise WrongSetting("Nobody is there to be asked: to delete the whole collection, add --yes.")
    if not typer.confirm(question, err=True):
        raise Failure("Nothing was deleted.")


def is_interactive() -> bool:
    """Whether a person can answer."""
    return sys.stdin.isatty()


def collection_path(collection: str, what: str) -> str:
    """The route of something of a collection. Raises WrongSetting for what cannot be a collection's name."""
    try:
        DocumentKey.checked(collection, what)
    except MalformedEvent as error:
        raise WrongSetting(str(error)) from error
    return f"/v1/collections/{quote(collection, safe='')}/{what}"


def note_if_empty(collection: str, answer: dict[str, Any]) -> None:
    """Warn of a setting without documents, which may be a misspelt name."""
    if answer.get("documents") == 0:
        complain(
            f"No document is in the collection {collection!r} yet. 'thalweg collections list' shows those there are."
        )


def collection_setting(
    collection: str, setting: str, parameters: dict[str, Any], *, reset: bool, url: str | None, data_dir: Path | None
) -> tuple[dict[str, Any], bool]:
    """The answer to reading, choosing or resetting a collection's setting, and whether that changes it. Raises
    WrongSetting for a choice with `reset`."""
    choice = {name: value for name, value in parameters.items() if value is not None}
    if reset and choice:
        raise WrongSetting("--reset goes back to the defaults: give no other option with it.")
    path = collection_path(collection, setting)
    with closing(service_client(url, data_dir)) as client:
        if reset:
            return client.delete(path), True
        if choice:
            return client.put(path, json.dumps(choice).encode()), True
        return client.get(path), False


@collections_app.command("linking")
@plain_failures()
def collection_linking(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    next_chunk: Annotated[float | None, typer.Option(help="Weight of the edge to the next chunk.")] = None,
    next_chunk_raise: Annotated[float | None, typer.Option(help="How much cosine 1 raises it, as a share.")] = None,
    similar_above: Annotated[float | None, typer.Option(help="Cosine above which neighbours are similar.")] = None,
    similar: Annotated[float | None, typer.Option(help="Weight of similar_to, times the cosine.")] = None,
    related_above: Annotated[float | None, typer.Option(help="Cosine above which others are related.")] = None,
    related: Annotated[float | None, typer.Option(help="Weight of related_to, times the cosine.")] = None,
    max_related: Annotated[int | None, typer.Option(help="Related chunks of a chunk, at most.")] = None,
    similar_across: Annotated[float | None, typer.Option(help="Weight of similar passages elsewhere.")] = None,
    max_across: Annotated[int | None, typer.Option(help="Similar passages of other documents, at most.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to the defaults.")] = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show or set how a collection's chunks are linked; what is not given is the default. It applies to documents
    indexed from then on, and with `thalweg relink` to all."""
    within = (next_chunk, next_chunk_raise, similar_above, similar, related_above, related, max_related)
    values = (*within, similar_across, max_across)
    parameters = dict(zip(LINKING_RULES, values, strict=True))
    answer, changed = collection_setting(collection, "linking", parameters, reset=reset, url=url, data_dir=data_dir)
    if as_json:
        print_json(answer)
    elif changed:
        say(f"In the log at {answer['position']}. 'thalweg relink {collection}' applies it to what is stored.")
    else:
        for name in LINKING_RULES:
            origin = "default" if answer["chosen"].get(name) is None else f"chosen at {answer['position']}"
            print(f"{name:<18} {answer[name]!s:<10} {origin}")
    if not as_json:
        note_if_empty(collection, answer)


@app.command()
@plain_failures()
def relink(
    collection: Annotated[str, typer.Argument(help="The collection.")],
    wait: Annotated[bool, typer.Option(help="Wait until it is done.")] = True,
    patience: Annotated[float, typer.Option(min=0, help="Give up after so many seconds without progress.")] = 120.0,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Link a collection's stored documents by its rules of now, without embedding anything again."""
    from rich.progress import Progress

    from query_api.cli.display import PlainConsole

    path = collection_path(collection, "relink")
    with closing(service_client(url, data_dir)) as client:
        order = client.post(path, b"{}")
        answer: dict[str, Any] = order
        if wait:
            with Progress(console=PlainConsole(stderr=True), disable=as_json) as progress:
                task = progress.add_task(plain(f"relink: {collection}"), total=None)

                def show(state: dict[str, Any]) -> None:
                    progress.update(task, total=state["of"] or None, completed=state["documents"])

                answer = order | await_order(lambda: client.get(f"{path}/{order['id']}"), show, patience)
    if as_json:
        print_json(answer)
    elif wait:
        print(relink_summary(answer))
    else:
        print(f"Ordered as {order['id']}, in the log at {order['position']}.")


def relink_summary(done: dict[str, Any]) -> str:
    """What became of the documents, in a sentence."""
    same = done["of"] - done["changed"] - done["skipped"]
    parts = [f"{done['changed']:,} of {done['of']:,} documents linked again"]
    if same > 0:
        parts.append(f"{same:,} had these links already")
    if done["skipped"]:
        parts.append(f"{done['skipped']:,} left as they are (replaced meanwhile, or too large with new links)")
    return ", ".join(parts) + "."


def await_order(
    ask: Callable[[], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
    timeout_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    now_seconds: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """The state when it is done. Raises Failure where nothing moves for so long."""
    last, since = None, now_seconds()
    while True:
        state = ask()
        show(state)
        if state["state"] == "done":
            return state
        if state != last:
            last, since = state, now_seconds()
        elif now_seconds() - since > timeout_seconds:
            raise Failure(
                f"Nothing was done for {timeout_seconds:g} s. The order stays in the log: a worker that runs "
                "carries it out. See 'thalweg status'."
            )
        sleep(POLL_SECONDS)
