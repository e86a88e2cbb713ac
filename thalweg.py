"""The command `thalweg`: the worker's commands and the query service's, under one name."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer

from query_api.cli.analytics import app as analytics_commands
from query_api.cli.app import app as query_commands
from query_api.cli.app import service_client
from query_api.cli.collections import app as collection_commands
from query_api.cli.dead_letters import app as dead_letter_commands
from query_api.cli.entities import app as entity_commands
from query_api.cli.evaluate import app as evaluation_commands
from query_api.cli.generations import app as generation_commands
from query_api.cli.graph import app as graph_commands
from query_api.cli.replay import app as replay_commands
from query_api.cli.reviews import app as review_commands
from streams.cli.app import app as stream_commands
from streams.cli.backup import app as backup_commands
from streams.cli.config import app as config_commands
from streams.cli.joined import Joined
from streams.cli.load import app as document_commands
from streams.cli.verify import app as verify_commands

if TYPE_CHECKING:
    from schemas.settings import ProcessSettings

app = typer.Typer(
    name="thalweg",
    help="An event-driven streaming indexer: documents in on Kafka, hybrid search out over Server-Sent Events.",
    epilog="Settings come from the file thalweg.toml ('thalweg init' writes one) and from environment variables; "
    "'thalweg config show' says what is in force.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for commands in (
    stream_commands,
    document_commands,
    verify_commands,
    config_commands,
    query_commands,
    dead_letter_commands,
    analytics_commands,
    collection_commands,
    evaluation_commands,
    generation_commands,
    replay_commands,
    review_commands,
    entity_commands,
    graph_commands,
    backup_commands,
):
    app.add_typer(commands)


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


def main() -> None:
    app()


if __name__ == "__main__":
    main()
