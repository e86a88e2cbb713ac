"""The command `thalweg`: the worker's commands and the query service's, under one name; and the programs' clients."""

import inspect
import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from query_api.cli.api import app as api_commands
from query_api.cli.app import app as query_commands
from query_api.cli.app import service_client
from query_api.cli.collections import app as collection_commands
from query_api.cli.cypher import app as cypher_commands
from query_api.cli.dead_letters import app as dead_letter_commands
from query_api.cli.entities import app as entity_commands
from query_api.cli.evaluate import app as evaluation_commands
from query_api.cli.generations import app as generation_commands
from query_api.cli.graph import app as graph_commands
from query_api.cli.graph import graph_app
from query_api.cli.replay import app as replay_commands
from query_api.cli.research import app as research_commands
from query_api.cli.reviews import app as review_commands
from query_api.cli.search import app as search_commands
from query_api.cli.study import app as study_commands
from streams.cli.app import Joined
from streams.cli.app import app as stream_commands
from streams.cli.backup import app as backup_commands
from streams.cli.config import app as config_commands
from streams.cli.load import app as document_commands
from streams.cli.load import graph_app as graph_import_commands
from streams.cli.verify import app as verify_commands

if TYPE_CHECKING:
    from query_api.typed_client import AsyncClient, Client
    from schemas.settings import ProcessSettings

__all__ = ["AsyncClient", "Client", "app", "main"]

EXIT_CODES = (
    "Exit codes: 0 done, 1 failed, 2 a wrong option or setting, 3 no answer from the broker or the service, 4 a port "
    "or data directory in use, 5 no access, 6 something on disk is damaged, 130 ended by Ctrl-C."
)
SETTINGS = (
    "Settings come from the file thalweg.toml ('thalweg init' writes one) and from environment variables; "
    "'thalweg config show' says what is in force."
)

PANELS = {
    "Run": ("up", "kafka", "worker", "serve", "topics", "init", "config"),
    "Documents": ("load", "delete", "export", "collections"),
    "Search": ("search", "ask", "research", "study", "evaluate", "questions", "api", "mcp"),
    "Graph": ("entities", "reviews", "graph", "cypher"),
    "Operate": ("status", "verify", "dead-letters", "replay", "rebuild", "generations", "backup", "restore"),
}

app = typer.Typer(
    name="thalweg",
    help="An event-driven streaming indexer: documents in on Kafka, hybrid search out over Server-Sent Events.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    epilog=f"{SETTINGS}\n\n{EXIT_CODES}",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
graph_app.add_typer(graph_import_commands)
for commands in (
    stream_commands,
    document_commands,
    collection_commands,
    search_commands,
    research_commands,
    study_commands,
    evaluation_commands,
    entity_commands,
    review_commands,
    graph_commands,
    cypher_commands,
    query_commands,
    api_commands,
    verify_commands,
    dead_letter_commands,
    replay_commands,
    generation_commands,
    backup_commands,
    config_commands,
):
    app.add_typer(commands)


def _arrange(commands: typer.Typer, panels: Mapping[str, str]) -> None:
    """Put commands under the headings of `panels`, and make one line of each paragraph of their help, for terminals of
    any width to wrap."""
    for command in commands.registered_commands:
        name = command.name or getattr(command.callback, "__name__", "")
        text = inspect.cleandoc(command.help or getattr(command.callback, "__doc__", None) or "")
        command.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
        command.rich_help_panel = panels.get(name)
    for group in commands.registered_groups:
        is_named = isinstance(group.name, str)
        if is_named:
            group.rich_help_panel = panels.get(str(group.name))
        if group.typer_instance is not None:
            _arrange(group.typer_instance, {} if is_named else panels)


_arrange(app, {name: panel for panel, names in PANELS.items() for name in names})


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"thalweg {version('thalweg')}")
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Runs before every command."""
    from indexer.runtime.logs import log_to_stderr  # not for `--help` and `--version`

    log_to_stderr()
    context.obj = Joined(service_client, _service_settings)


def _service_settings() -> "type[ProcessSettings]":
    from query_api.settings import ServiceSettings

    return ServiceSettings


def __getattr__(name: str) -> Any:
    """The clients, which commands start without."""
    if name not in ("AsyncClient", "Client"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from query_api import typed_client

    return getattr(typed_client, name)


def main() -> None:
    if not sys.flags.utf8_mode and sys.getfilesystemencoding().lower() != "utf-8":
        _start_again_in_utf8_mode()
    app()


def _start_again_in_utf8_mode() -> NoReturn:
    """In a locale of another encoding the names of files would be read as other ids than elsewhere (PEP 540), and what
    the terminal cannot show would end a command: it is shown escaped."""
    encoding = f"{sys.stdout.encoding}:backslashreplace"
    environment = {"PYTHONIOENCODING": encoding} | os.environ | {"PYTHONUTF8": "1"}
    os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606


if __name__ == "__main__":
    main()
