"""`thalweg collections settings`: how a collection is chunked, linked and read; what its graph may be given."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_args
from urllib.parse import quote

import typer

from query_api.cli.app import DataDir, Json, Url, print_json, service_client
from query_api.cli.completion import checked, collections, offered
from query_api.cli.entities import facts_lines
from schemas.choices import ChunkingMethod, ExtractorName
from schemas.consent import Yes, require_consent
from schemas.errors import MalformedEvent, WrongSetting, complain, plain_failures
from schemas.ids import DocumentKey
from schemas.terminal import say

if TYPE_CHECKING:
    from query_api.client import ServiceClient

RELINK_SECONDS = 120.0
"""Without progress."""

Answer = dict[str, Any]
Collection = Annotated[str, typer.Argument(help="The collection.", autocompletion=collections)]

commands = typer.Typer()


class Setting(NamedTuple):
    """`names` are those of its values, `choices` what some of them are one of; `effect` and `reset` say what a change
    does, and a reset where that is something else."""

    names: tuple[str, ...]
    effect: str
    choices: Mapping[str, Sequence[str]] = {}
    reset: str = ""


SETTINGS = {
    "chunking": Setting(
        ("parent_characters", "parent_overlap", "child_characters", "child_overlap", "method", "language"),
        "Documents of {} that are sent from now on are cut so.",
        {"method": get_args(ChunkingMethod)},
    ),
    "linking": Setting(
        (
            "next_chunk", "next_chunk_raise", "similar_above", "similar", "related_above", "related", "max_related",
            "similar_across", "max_across",
        ),
        "Documents of {} are linked so from now on, and with --relink those that are stored.",
    ),
    "extraction": Setting(
        ("extractor",),
        "Documents of {} that are sent from now on are read by it.",
        {"extractor": get_args(ExtractorName)},
    ),
    "graph": Setting(
        ("node_types", "predicates"),
        "Edits of {} that do not fit are refused from now on.",
        reset="Any edit of {} is taken from now on.",
    ),
}  # fmt: skip


def collection_path(collection: str, what: str) -> str:
    """The route of something of a collection. Raises WrongSetting for what cannot be a collection's name."""
    try:
        DocumentKey.checked(collection, what)
    except MalformedEvent as error:
        raise WrongSetting(str(error)) from error
    return f"/v1/collections/{quote(collection, safe='')}/{what}"


def _values(context: typer.Context, incomplete: str) -> list[str]:
    """Names of the setting's values, and what they may be."""
    setting = SETTINGS.get(context.params.get("setting") or "")
    if setting is None:
        return []
    known = [f"{name}={value}" for name in setting.names for value in setting.choices.get(name, ("",))]
    return [each for each in known if each.startswith(incomplete)]


@commands.command("settings", epilog="Example: thalweg collections settings notes chunking child_characters=200")
@plain_failures()
def collection_settings(
    collection: Collection,
    setting: Annotated[
        str | None,
        typer.Argument(
            help=f"{', '.join(SETTINGS)}.",
            parser=checked(tuple(SETTINGS)),
            autocompletion=offered(tuple(SETTINGS)),
            metavar="SETTING",
            show_default="all",
        ),
    ] = None,
    values: Annotated[
        list[str] | None, typer.Argument(help="name=value of what is to change.", autocompletion=_values)
    ] = None,
    file: Annotated[Path | None, typer.Option(help="Take the values from a file with a JSON object.")] = None,
    reset: Annotated[bool, typer.Option("--reset", help="Back to the defaults.")] = False,
    relink: Annotated[
        bool,
        typer.Option(
            "--relink", help="Link what is stored again, by the current rules and with the stored vectors; and wait."
        ),
    ] = False,
    yes: Yes = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Show or set how a collection is chunked, linked and read for entities, and what people may add to its graph.

    Without values it shows what applies, with the names there are; what is not given when values are is the default.
    docs/collections.md explains them.
    """
    change = _change(setting, _choice(values or (), file), reset=reset, relink=relink)
    paths = {name: collection_path(collection, name) for name in (SETTINGS if setting is None else [setting])}
    with closing(service_client(url, data_dir)) as client:
        if setting is not None and change is not None:
            answer = _changed(client, collection, setting, change, yes=yes)
            sentences = [f"In the log at {answer['position']}. {_effect(setting, change).format(collection)}"]
        else:
            found = {name: client.get(path) for name, path in paths.items()}
            answer = found if setting is None else found[setting]
            sentences = [] if relink or as_json else list(chain.from_iterable(map(_lines, found, found.values())))
        if relink:
            answer = _relinked(client, collection, shown=not as_json)
            sentences.append(relink_summary(answer))
    if as_json:
        print_json(answer)
        return
    say("\n".join(sentences))
    if answer.get("documents") == 0 and not relink:  # perhaps a misspelt name
        complain(
            f"No document is in the collection {collection!r} yet. 'thalweg collections list' shows those there are."
        )


def _change(setting: str | None, choice: dict[str, Any], *, reset: bool, relink: bool) -> dict[str, Any] | None:
    """What is chosen, empty for a reset; None where nothing is to change. Raises WrongSetting for what does not go
    together."""
    if reset and choice:
        raise WrongSetting("--reset goes back to the defaults: give no value with it.")
    if (reset or choice) and setting is None:
        raise WrongSetting(f"Say which setting: {', '.join(SETTINGS)}.")
    if relink and setting != "linking":
        raise WrongSetting("--relink is for the linking: thalweg collections settings COLLECTION linking --relink")
    return choice if choice or reset else None


def _choice(values: Sequence[str], file: Path | None) -> dict[str, Any]:
    """What is chosen, nothing for nothing; the service checks it. Raises WrongSetting for what is not values."""
    if file is not None:
        if values:
            raise WrongSetting("Give values or --file, not both.")
        return _choice_in(file)
    pairs = [each.partition("=") for each in values]
    for name, equals, value in pairs:
        if not name or not equals or not value:
            raise WrongSetting(f"{name[:80]!r} is not name=value, such as child_characters=200.")
    return {name.replace("-", "_"): _value(value) for name, _, value in pairs}


def _value(text: str) -> Any:
    """A number, list or the like as JSON has it, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _choice_in(file: Path) -> dict[str, Any]:
    try:
        choice = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise WrongSetting(f"{file} cannot be read as JSON: {error}") from error
    if not isinstance(choice, dict) or all(value is None for value in choice.values()):
        raise WrongSetting(f"{file} must hold a JSON object with names and values.")
    return {name: value for name, value in choice.items() if value is not None}


def _changed(client: "ServiceClient", collection: str, setting: str, choice: dict[str, Any], *, yes: bool) -> Answer:
    """The answer to what is chosen, or to a reset where that is empty."""
    path = collection_path(collection, setting)
    if choice:
        return client.put(path, json.dumps(choice).encode())
    require_consent(partial(_reset_question, client, collection, setting), yes=yes, unattended=True)
    return client.delete(path)


def _effect(setting: str, choice: dict[str, Any]) -> str:
    return (not choice and SETTINGS[setting].reset) or SETTINGS[setting].effect


def _reset_question(client: "ServiceClient", collection: str, setting: str) -> str:
    chosen = client.get(collection_path(collection, setting))["chosen"]
    values = ", ".join(f"{name} {value}" for name, value in chosen.items() if value is not None) or "nothing"
    return f"Take back the {setting} of {collection!r}, where {values} was chosen?"


def _lines(setting: str, answer: Answer) -> list[str]:
    """The setting, a line for each of its values, and whether it was chosen; then what documents state against it."""
    chosen = answer["chosen"]
    lines = [f"[{setting}]"]
    for name in SETTINGS[setting].names:
        origin = "default" if chosen.get(name) is None else f"chosen at {answer['position']}"
        value = answer.get(name, chosen.get(name))
        lines.append(f"{name:<18} {'any' if value is None else json.dumps(value):<10} {origin}")
    for each in answer.get("violations", ()):
        of_type = f" is of the type {each['type']}" if each["type"] else ""
        lines.append(f"does not fit: {each['statements']:,} of {each['predicate']} ({each['what']}{of_type})")
        lines += (f"  {line}" for line in facts_lines(each["examples"]))
    return lines


def _relinked(client: "ServiceClient", collection: str, *, shown: bool) -> Answer:
    """The order to link what is stored, once it is carried out. Raises Failure where nothing moves."""
    from query_api.cli.orders import follow_order

    path = collection_path(collection, "relink")
    order = client.post(path, b"{}")
    return order | follow_order(client, f"{path}/{order['id']}", f"relink: {collection}", RELINK_SECONDS, shown=shown)


def relink_summary(done: Answer) -> str:
    """What became of the documents, in a sentence."""
    same = done["of"] - done["changed"] - done["skipped"]
    parts = [f"{done['changed']:,} of {done['of']:,} documents linked again"]
    if same > 0:
        parts.append(f"{same:,} had these links already")
    if done["skipped"]:
        parts.append(f"{done['skipped']:,} left as they are (replaced meanwhile, no longer in the log, or too large)")
    return ", ".join(parts) + "."
