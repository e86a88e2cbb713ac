"""The commands about settings: `thalweg init` writes a file, `thalweg config show` says what is in force."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from schemas.environment import read_variable, variable_of
from schemas.errors import Failure, plain_failures
from schemas.settings_file import FILE_NAME, SettingsFile, candidates, read_file, user_config_dir
from schemas.terminal import plain_json, say
from streams.cli.app import joined

if TYPE_CHECKING:
    from pydantic import BaseModel

app = typer.Typer()
config_app = typer.Typer(no_args_is_help=True, help="Show the settings that are in force.")
app.add_typer(config_app, name="config")

MASKED = "********"

TEMPLATE = """\
# Settings of Thalweg: every command reads this file when it runs in this folder. What is commented out is the default.
# Environment variables win over it: [kafka] partitions is THALWEG_KAFKA__PARTITIONS. 'thalweg config show' says what
# is in force and where it comes from; docs/configuration.md lists every setting.

[storage]
# Everything on disk; a relative path counts from where a command runs.
# data_dir = "thalweg-data"

[kafka]
# Your own cluster, in place of the Kafka that 'thalweg up' runs.
# bootstrap_servers = "localhost:9092"
# Partitions of the documents topic; fixed once it is in use.
# partitions = 4

[embedding]
# The model that turns texts into vectors; or an OpenAI-compatible endpoint: provider = "openai", with its base_url.
# provider = "auto"
# model = "all-MiniLM-L6-v2"
# base_url = "http://localhost:11434/v1"

[service]
# Where the query service listens; any address but loopback needs an api_key of 16 characters or more, which every
# request and every command then sends.
# host = "127.0.0.1"
# port = 8420
# api_key = "change me, please"
"""


class Value(NamedTuple):
    """A setting as it is in force: `value` is fit to be shown, `source` is default, file, environment or command
    line."""

    value: Any
    source: str
    variable: str


@app.command(epilog="Example: thalweg init --force")
@plain_failures()
def init(
    user: Annotated[
        bool, typer.Option("--user", help="Write it for this user, for commands that run in any folder.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a settings file with comments, thalweg.toml, into this folder. Asks nothing."""
    path = (user_config_dir() if user else Path()) / FILE_NAME
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
        with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:  # it may hold a key
            file.write(TEMPLATE)
    except FileExistsError as error:
        raise Failure(f"There is a {path.absolute()} already; replace it with --force.") from error
    except PermissionError:
        raise
    except OSError as error:
        raise Failure(f"{path.absolute()} cannot be written: {error.strerror}.") from error
    say(f"Written: {path.absolute()}. Change what you need in it; 'thalweg config show' says what is in force.")


@config_app.command("show", epilog="Example: thalweg config show --json")
@plain_failures()
def show(
    context: typer.Context,
    changed: Annotated[bool, typer.Option("--changed", help="Only what is not the default.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")] = False,
    data_dir: Annotated[Path | None, typer.Option(help="The data directory.", show_default="thalweg-data")] = None,
) -> None:
    """Show every setting and where its value comes from: default, file, environment or command line. Secrets are
    masked."""
    file = read_file(data_dir)
    values = _in_force(context, file, data_dir)
    shown = {name: each for name, each in values.items() if not changed or each.source != "default"}
    if as_json:
        looked_in = [str(each.absolute()) for each in candidates(data_dir)]
        path = None if file.path is None else str(file.path.absolute())
        settings = {name: each._asdict() for name, each in shown.items()}
        print(plain_json(json.dumps({"file": path, "looked_in": looked_in, "settings": settings}, ensure_ascii=False)))
        return
    if file.path is None:
        say("No settings file. Looked for: " + ", ".join(str(each) for each in candidates(data_dir)))
    else:
        say(f"Settings file: {file.path.absolute()}")
    block = ""
    for name, each in shown.items():
        table, _, setting = name.rpartition(".")
        if table != block:
            say(f"\n[{table}]")
            block = table
        source = "" if each.source == "default" else f"    # {each.source}"
        if each.value is None:
            say(f"# {setting} is not set")
        else:
            say(f"{setting} = {json.dumps(each.value, ensure_ascii=False)}{source}")


def _in_force(context: typer.Context, file: SettingsFile, data_dir: Path | None) -> dict[str, Value]:
    """{block.setting: value} over the settings of all processes. Raises WrongSetting for what does not fit."""
    from streams.supervisor.supervisor import UpSettings

    given = {} if data_dir is None else {"storage": {"data_dir": data_dir}}
    found: dict[str, Value] = {}
    for settings in (joined(context).service_settings(), UpSettings):
        for path, value in _leaves(settings.load(given)):
            found.setdefault(".".join(path), _value(path, value, file, given))
    order = {block: number for number, block in enumerate(dict.fromkeys(name.split(".")[0] for name in found))}

    def by_table(name: str) -> tuple[int, str]:
        table, _, _ = name.rpartition(".")
        return order[table.split(".")[0]], table

    return {name: found[name] for name in sorted(found, key=by_table)}


def _value(path: tuple[str, ...], value: Any, file: SettingsFile, given: Mapping[str, Any]) -> Value:
    from pydantic import SecretStr

    variable = variable_of(*path)
    if path[-1] in given.get(path[0], {}):
        source = "command line"
    elif read_variable(variable):
        source = "environment"
    elif file.has(*path):
        source = "file"
    else:
        source = "default"
    if isinstance(value, SecretStr):
        return Value(MASKED, source, variable)
    return Value(
        list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value, source, variable
    )


def _leaves(settings: "BaseModel", path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, value) of every setting, nested tables included."""
    from pydantic import BaseModel

    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name), value
