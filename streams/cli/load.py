"""The commands that put documents in and take them out: `thalweg load`, `thalweg delete`, `thalweg export`.

What each needs to run is imported when it runs, so that `--help` answers at once.
"""

import json
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
import typer

from schemas import consent
from schemas.consent import Yes
from schemas.errors import Exit, Failure, WrongSetting, complain, plain_failures
from schemas.ids import DEFAULT_COLLECTION
from schemas.terminal import say
from streams.cli.app import joined

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from streams.loader.folders import Selection, SyncPlan
    from streams.loader.loader import Loaded, Loader, Rehearsal

SHOWN_IDS = 20

app = typer.Typer()
graph_app = typer.Typer()

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="The data directory of the `thalweg up` to talk to.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Wait = Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until everything is searchable.")]
Patience = Annotated[float, typer.Option(help="Give up waiting when nothing was indexed for this many seconds.", min=0)]
Url = Annotated[
    str | None,
    typer.Option(help="Send through the query service at this address instead of Kafka, such as http://host:8420."),
]
Globs = list[str] | None


@app.command(epilog="Example: thalweg load docs --collection manual --watch")
@plain_failures()
def load(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders, JSON lines with a document each (.jsonl, also .gz, .xz, .zst), or - for such lines "
            "on standard input."
        ),
    ],
    collection: Annotated[
        str, typer.Option(help="The collection of the files, and of lines that name none.")
    ] = DEFAULT_COLLECTION,
    include: Annotated[Globs, typer.Option(help="Take only files of a folder that match this glob.")] = None,
    exclude: Annotated[Globs, typer.Option(help="Leave out files of a folder that match this glob.")] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            help="Make ids relative to this folder, also those of files named singly.", show_default="each folder"
        ),
    ] = None,
    no_ignore: Annotated[
        bool,
        typer.Option(
            "--no-ignore",
            help="Also take what .gitignore or .thalwegignore names, dependencies, builds, lock and temporary files.",
        ),
    ] = False,
    hidden: Annotated[bool, typer.Option("--hidden", help="Also take hidden files and folders.")] = False,
    sync: Annotated[
        bool,
        typer.Option("--sync", help="Also delete the documents that came from these folders and are no longer there."),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Then follow the folders, and send what changes, until Ctrl-C.")
    ] = False,
    source: Annotated[
        str | None,
        typer.Option(
            help="With --root, --sync or --watch: what documents say they came from. Give it for one folder that is "
            "checked out in several places.",
            show_default="the folder's name and a hash of its path",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Send nothing; show what would be sent and what would be deleted.")
    ] = False,
    yes: Yes = False,
    charset: Annotated[
        str | None,
        typer.Option(
            help="The character set of text that is not UTF-8 and does not say so itself, such as iso-8859-1."
        ),
    ] = None,
    base_uri: Annotated[
        str | None, typer.Option(help="Give each file an address: this, and its id. Hits show it as `uri`.")
    ] = None,
    wait: Wait = True,
    patience: Patience = 120.0,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List all that is left out.")] = False,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Publish documents and wait until they are searchable.

    A file's id is its path relative to the folder given, or to --root, or its name where it is named itself; its
    extension decides its format. So an interrupted load can be repeated: what is indexed already stays as it is. Of
    folders, files that nobody means are left out, and those that .gitignore and .thalwegignore name.

    A line {"id": …, "collection": …, "deleted": true} in JSON lines deletes. What cannot be indexed is refused and
    listed, with exit code 1; the rest goes in. Prints the token: search with --after TOKEN to see at least these.
    """
    from streams.loader.folders import Selection
    from streams.loader.ignoring import Rules
    from streams.loader.watching import require_folders

    selection = Selection(
        collection,
        include or (),
        exclude or (),
        charset,
        base_uri,
        root,
        source,
        marked=sync or watch or root is not None or source is not None,
        rules=Rules(ignore=not no_ignore, hidden=hidden),
    )
    with _loader(context, url, data_dir, wait=wait, patience=patience, quiet=as_json) as loader:
        if watch:
            require_folders(paths)
        if dry_run:
            rehearsal, plan = loader.rehearse(paths, selection, sync=sync, may_be_empty=watch)
            _show(rehearsal, plan if not yes else None, as_json=as_json, verbose=verbose, may_be_refused=watch)
            return
        agree = partial(_agree, yes=yes) if sync else None
        if watch:
            _watch(loader, paths, selection, agree, as_json=as_json, verbose=verbose)
            return
        loaded = loader.load(paths, selection, agree)
    _show(loaded, as_json=as_json, verbose=verbose)


def _show(
    loaded: "Loaded | Rehearsal",
    plan: "SyncPlan | None" = None,
    *,
    as_json: bool,
    verbose: bool,
    may_be_refused: bool = False,
) -> None:
    """Raises WrongSetting where the plan would not be carried out."""
    from streams.loader.loader import describe_unknown

    loaded.show(as_json=as_json, verbose=verbose)
    if loaded.unknown_fields:
        say(describe_unknown(loaded.unknown_fields), error=True)
    if plan is not None and (reason := _why_not(plan)) is not None:
        raise WrongSetting(reason)
    if loaded.refused and not may_be_refused:
        raise typer.Exit(Exit.FAILED)


@app.command(epilog="Example: thalweg delete setup.md --collection manual")
@plain_failures()
def delete(
    context: typer.Context,
    document_ids: Annotated[list[str], typer.Argument(help="Ids of the documents, without their collection.")],
    collection: Annotated[str | None, typer.Option(help="Their collection.", show_default=DEFAULT_COLLECTION)] = None,
    yes: Yes = False,
    wait: Wait = True,
    patience: Patience = 120.0,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Delete documents, from searches and from the graph. Prints the token."""
    from streams.loader.loader import suggest_collection

    consent.require_consent(
        lambda: (
            f"{len(document_ids):,} documents of {collection!r} will be gone: {_few(document_ids)}. Only sending them "
            "again brings them back. Delete them?"
        ),
        yes=yes,
        unattended=True,
    )
    with _loader(context, url, data_dir, wait=wait, patience=patience, quiet=as_json) as loader:
        deleted = loader.delete(collection, document_ids)
    deleted.show(as_json=as_json)
    if (hint := suggest_collection(collection or DEFAULT_COLLECTION, deleted.absent)) is not None:
        say(hint, error=True)


@contextmanager
def _loader(
    context: typer.Context, url: str | None, data_dir: Path | None, *, wait: bool, patience: float, quiet: bool
) -> "Iterator[Loader]":
    """To Kafka, or to the service at `url`."""
    from streams.loader.loader import Loader

    if url is None:
        yield Loader.connect(data_dir, wait=wait, timeout_seconds=patience, quiet=quiet)
        return
    service = joined(context).service_client(url, data_dir)
    with closing(service):
        yield Loader.connect(data_dir, wait=wait, timeout_seconds=patience, quiet=quiet, service=service)


def _agree(plan: "SyncPlan", *, yes: bool) -> None:
    """Show what would be deleted, and ask. Raises WrongSetting where nobody can be asked or most would go, Failure for
    a no."""
    if plan.unmarked:
        say(
            f"Not in the folder, but not known to have come from it, so they stay ({len(plan.unmarked):,}): "
            f"{_few(plan.unmarked)}. 'thalweg delete' deletes them.",
            error=True,
        )
    if not plan.gone:
        return
    for what, names in (("Left the folder", plan.left), ("Left out now", plan.said_ignored)):
        if names:
            say(f"{what}, to be deleted ({len(names):,} of {plan.known:,}): {_few(names)}.", error=True)
    if not yes and (reason := plan.why_not()) is not None:
        raise WrongSetting(reason)
    consent.require_consent(lambda: f"Delete {len(plan.gone):,} documents?", yes=yes)


def _why_not(plan: "SyncPlan") -> str | None:
    """Why nothing is deleted without --yes; None where nothing is to be, or somebody can be asked."""
    if plan.gone and plan.why_not() is None and not consent.is_interactive():
        return consent.NOBODY_ASKED
    return plan.why_not()


def _few(names: "Sequence[str]") -> str:
    return ", ".join(names[:SHOWN_IDS]) + (", …" if len(names) > SHOWN_IDS else "")


def _watch(
    loader: "Loader",
    paths: list[str],
    selection: "Selection",
    agree: "Callable[[SyncPlan], None] | None",
    *,
    as_json: bool,
    verbose: bool,
) -> None:
    """Load, then follow until Ctrl-C. What a load refuses does not end it."""
    from streams.loader.watching import Event, Watcher, wakes

    def report(event: Event) -> None:
        say(json.dumps(asdict(event)) if as_json else event.sentence())

    loader.check(paths, selection)
    watcher = Watcher(loader, paths, selection, report, complain)
    loader.publisher.documents(selection.collection)  # which deletes need: where it is unknown, that is said first
    picture = watcher.look()
    loader.load(paths, selection, agree, may_be_empty=True).show(as_json=as_json, verbose=verbose)
    if not as_json:
        say(f"Following {', '.join(paths)}. Ctrl-C ends it.")
    with suppress(KeyboardInterrupt):
        watcher.follow(picture, wakes(paths))


@app.command(epilog="Example: thalweg export documents.jsonl")
@plain_failures()
def export(
    file: Annotated[Path, typer.Argument(help="Where to write the JSON lines; - for standard output.")],
    data_dir: DataDir = None,
) -> None:
    """Write the documents that the stores hold, as JSON lines that `thalweg load` takes.

    For stores whose log is lost: they are then the only copy. Titles, texts under their headings, metadata, versions
    and addresses come back; formatting, links and the original bytes are in the log alone. Needs no Kafka.
    """
    from indexer.errors import IncompatibleGeneration
    from indexer.read.export import exported
    from schemas.progress_bars import progress_bars
    from streams.loader.loader import settings_for

    try:
        count, envelopes = exported(settings_for(data_dir).storage.data_dir)
    except IncompatibleGeneration as error:
        raise Failure(str(error)) from error
    try:
        with click.open_file(str(file), "wb") as lines, progress_bars(shown=True) as bar:
            documents = bar("exported", count)
            for envelope in envelopes:
                lines.write(envelope + b"\n")
                documents.advance()
    except OSError as error:
        raise Failure(f"{file} cannot be written: {error.strerror or error}.") from error
    say(f"{count:,} documents written to {file}; 'thalweg load' takes it.", error=True)


@graph_app.command("import", epilog="Example: thalweg graph import notes.jsonl --dry-run")
@plain_failures()
def import_graph(
    context: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(help="GraphML, JSON lines, or CSV in a zip or folder, as GET /v1/graph/export writes them."),
    ],
    collection: Annotated[
        str | None, typer.Option(help="Into this collection.", show_default="the one that the file names")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the file, and send nothing.")] = False,
    wait: Wait = True,
    patience: Patience = 120.0,
    as_json: Json = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Import a graph: its nodes and edges become nodes and edges as people make them.

    The whole file is checked before anything is sent, and where something does not fit, it is listed by its line and
    nothing is sent. Importing a file again changes nothing.
    """
    from schemas.progress_bars import progress_bars
    from streams.loader.graph_import import GraphImport, ImportedGraph
    from streams.loader.loader import Loaded

    with closing(joined(context).service_client(url, data_dir)) as service:
        service.get("/v1/status")  # a long file is not read for a service that is not there
        graph = GraphImport(file, collection, service)
        with progress_bars(shown=not as_json) as bars:
            summary = graph.check(bars)
    loaded = Loaded(0, "", None, graph.refused, 0.0)
    if not dry_run and not graph.refused:
        with _loader(context, url, data_dir, wait=wait, patience=patience, quiet=as_json) as loader:
            loaded = loader.run(graph.records(), [])
    if not as_json:
        say(f"{summary.collection}: {summary.nodes:,} nodes, {summary.edges:,} edges, digest {summary.line['digest']}")
    if as_json or graph.refused or not dry_run:
        _show(ImportedGraph(**vars(loaded), graph=summary.line), as_json=as_json, verbose=False)
