"""`thalweg backup` and `thalweg restore`: a generation with its positions, to another place and back."""

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from schemas.clock import rfc3339
from schemas.errors import Failure, plain_failures
from schemas.progress_bars import progress_bars
from schemas.terminal import say
from streams.cli.load import Json

if TYPE_CHECKING:
    from indexer.backup.archive import BackupManifest

app = typer.Typer()

Verify = Annotated[bool, typer.Option("--verify", help="Only check the backup that is there: every checksum.")]


@app.command(epilog="Example: thalweg backup /backups/monday.tar.zst")
@plain_failures()
def backup(
    destination: Annotated[
        Path, typer.Argument(help="A new folder, or an archive whose name ends with .tar, .tar.gz or .tar.zst.")
    ],
    verify: Verify = False,
    as_json: Json = False,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="The data directory to back up.")] = None,
) -> None:
    """Copy the live generation with its positions, while worker and service run.

    Holds tables, graph snapshot and positions; not the log: a worker on what is restored reads on in it. Without the
    log, what is restored answers searches, and 'thalweg export' takes its documents out.
    """
    if verify:
        _verify(destination, as_json=as_json)
        return
    from indexer.backup.archive import require_target, write_backup
    from indexer.backup.frozen import frozen
    from indexer.errors import TransientStoreError
    from indexer.generation_folders import current_generation
    from streams.loader.loader import settings_for

    began = time.monotonic()
    destination = destination.absolute()
    require_target(destination)
    folder = settings_for(data_dir).storage.data_dir.absolute()
    generation = current_generation(folder)
    if generation is None:
        raise Failure(f"There are no stores in {folder} yet: start a worker on it with 'thalweg up'.")
    os.umask(0o077)
    try:
        with frozen(generation) as held:
            with progress_bars(shown=not as_json, in_bytes=True) as bar:
                write_backup(held.root, held.manifest, destination, bar("backed up", held.manifest.bytes).advance)
            manifest = held.manifest
    except (TransientStoreError, FileNotFoundError) as error:
        raise Failure(f"{error} Nothing was backed up; try again.") from error
    _print("Backed up", destination, manifest, began, as_json=as_json)


@app.command(epilog="Example: thalweg restore /backups/monday.tar.zst --data-dir /srv/thalweg")
@plain_failures()
def restore(
    source: Annotated[Path, typer.Argument(help="The backup: a folder or an archive.")],
    verify: Verify = False,
    as_json: Json = False,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="A new directory, or an empty one.")] = None,
) -> None:
    """Make a data directory from a backup, with every checksum checked on the way.

    A worker on it, with the Kafka that the backup was filled from, continues at the positions of the backup. The stores
    that were backed up may go on as well: what is restored has a name, a consumer group and a contributions topic of
    its own.
    """
    if verify:
        _verify(source, as_json=as_json)
        return
    from indexer.backup.archive import open_backup
    from indexer.backup.restore import require_empty, restore_backup
    from streams.loader.loader import settings_for
    from streams.supervisor.data_directory import make_directory, set_umask

    began = time.monotonic()
    folder = settings_for(data_dir).storage.data_dir.absolute()
    require_empty(folder)
    with open_backup(source) as opened:
        set_umask(make_directory(folder))
        with progress_bars(shown=not as_json, in_bytes=True) as bar:
            generation = restore_backup(opened, folder, bar("restored", opened.manifest.bytes).advance)
        manifest = opened.manifest
    _print("Restored", folder, manifest, began, as_json=as_json, restored_as=generation.name)
    if not as_json:
        say(f"It is {generation.name} there. Continue with a worker on it, and the Kafka that it was filled from.")


def _verify(source: Path, *, as_json: bool) -> None:
    from indexer.backup.archive import copy_files, open_backup

    began = time.monotonic()
    with open_backup(source) as opened:
        with progress_bars(shown=not as_json, in_bytes=True) as bar:
            copy_files(opened, None, bar("verified", opened.manifest.bytes).advance)
        manifest = opened.manifest
    _print("Intact:", source, manifest, began, as_json=as_json)


def _print(done: str, path: Path, manifest: "BackupManifest", began: float, *, as_json: bool, **more: str) -> None:
    from schemas.settings import MIB

    seconds = time.monotonic() - began
    if not as_json:
        say(
            f"{done} {path}: generation {manifest.generation} as of {rfc3339(manifest.made_at_ms)}, "
            f"{manifest.documents:,} documents in {len(manifest.files):,} files, {manifest.bytes / MIB:,.1f} MiB, "
            f"in {seconds:.1f} s."
        )
        return
    shown: dict[str, Any] = {
        "path": str(path),
        "generation": manifest.generation,
        "made_at": rfc3339(manifest.made_at_ms),
        "version": manifest.version,
        "model": manifest.model,
        "documents": manifest.documents,
        "files": len(manifest.files),
        "bytes": manifest.bytes,
        "positions": ",".join(f"{partition}:{offset}" for partition, offset in manifest.positions.items()),
        "graph_position": manifest.graph_position,
        "log": None if manifest.log is None else {"documents": manifest.log.documents, "graph": manifest.log.graph},
        "seconds": round(seconds, 3),
        **more,
    }
    print(json.dumps(shown))
