"""The commands that put documents in and take them out: `thalweg load`, `thalweg delete`, `thalweg export`.

What each needs to run is imported when it runs, so that `--help` answers at once.
"""

from pathlib import Path
from typing import Annotated

import click
import typer

from schemas.errors import Exit, plain_failures
from schemas.terminal import say

app = typer.Typer()

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="The data directory of the `thalweg up` to talk to.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until everything is searchable.")]
Patience = Annotated[float, typer.Option(help="Give up waiting after so many seconds without a receipt.", min=0)]
Globs = list[str] | None


@app.command()
@plain_failures()
def load(
    paths: Annotated[
        list[str],
        typer.Argument(help="Files, folders, JSON lines of envelopes (.jsonl, also .gz, .xz and .zst), or -."),
    ],
    collection: Annotated[str, typer.Option(help="For files, and for envelopes that name none.")] = "default",
    include: Annotated[Globs, typer.Option(help="Take only files of a folder that match this glob.")] = None,
    exclude: Annotated[Globs, typer.Option(help="Leave out files of a folder that match this glob.")] = None,
    charset: Annotated[
        str | None, typer.Option(help="Of text files that are not UTF-8 and declare none, such as iso-8859-1.")
    ] = None,
    base_uri: Annotated[
        str | None, typer.Option(help="Gives each file an address: this, and its path. Hits show it as `uri`.")
    ] = None,
    wait: Wait = True,
    patience: Patience = 120.0,
    as_json: Json = False,
    data_dir: DataDir = None,
) -> None:
    """Publish documents and follow them until they are searchable.

    A file's id is its path relative to the folder given, or its name where it is named itself; its extension tells its
    format. So an interrupted load can be repeated: what is indexed already stays as it is.

    A line {"id": …, "collection": …, "deleted": true} in JSON lines deletes. What would end as a dead letter is
    refused here and listed; the rest goes in. Prints the token: search with --after TOKEN to see at least these.
    """
    from streams.loader.loader import Loader, describe_unknown
    from streams.loader.sources import Selection

    loader = Loader.connect(data_dir, wait=wait, timeout_seconds=patience, quiet=as_json)
    loaded = loader.load(paths, Selection(collection, include or (), exclude or (), charset, base_uri))
    loaded.show(as_json=as_json)
    if loaded.unknown_fields:
        say(describe_unknown(loaded.unknown_fields), error=True)
    if loaded.refused:
        raise typer.Exit(Exit.FAILED)


@app.command()
@plain_failures()
def delete(
    document_ids: Annotated[list[str], typer.Argument(help="Ids of the documents, without their collection.")],
    collection: Annotated[str, typer.Option(help="Their collection.")] = "default",
    wait: Wait = True,
    patience: Patience = 120.0,
    as_json: Json = False,
    data_dir: DataDir = None,
) -> None:
    """Delete documents from both stores. Prints the token."""
    from streams.loader.loader import Loader, suggest_collection

    loader = Loader.connect(data_dir, wait=wait, timeout_seconds=patience, quiet=as_json)
    deleted = loader.delete(collection, document_ids)
    deleted.show(as_json=as_json)
    if (hint := suggest_collection(collection, deleted.absent)) is not None:
        say(hint, error=True)


@app.command()
@plain_failures()
def export(
    file: Annotated[Path, typer.Argument(help="Where to write JSON lines of envelopes; - for standard output.")],
    data_dir: DataDir = None,
) -> None:
    """Write the documents that the stores hold, as JSON lines that `thalweg load` takes.

    For stores whose log is lost: they are then the only copy. Titles, texts under their headings, metadata, versions
    and addresses come back; formatting, links and the original bytes are in the log alone. Needs no Kafka.
    """
    from indexer.errors import IncompatibleGeneration
    from indexer.read.export import exported
    from schemas.errors import Failure
    from streams.loader.loader import progress_bars, settings_for

    try:
        count, envelopes = exported(settings_for(data_dir).storage.data_dir)
    except IncompatibleGeneration as error:
        raise Failure(str(error)) from error
    try:
        with click.open_file(str(file), "wb") as lines, progress_bars(shown=True) as bar:
            documents = bar("exported")
            documents.is_of(count)
            for envelope in envelopes:
                lines.write(envelope + b"\n")
                documents.advance()
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror or error}.") from error
    say(f"{count:,} documents written to {file}; 'thalweg load' takes it.", error=True)
