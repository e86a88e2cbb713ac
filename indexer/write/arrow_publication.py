"""Publication of folders of Arrow files (`indexer.read.arrow_folders`): written as a whole, removed at once."""

import os
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from indexer.generation_folders import replace_file
from indexer.integrity.files import file_checksum
from indexer.read.arrow_folders import MANIFEST, ArrowFolders, M, TableFile


def publish_folder(
    kind: ArrowFolders[M], parent: Path, tables: Mapping[str, pa.Table], position: int, made_at_ms: int, **fields: Any
) -> M:
    """The manifest of a new folder, with these `fields`; where it is there already, it stays as it is.

    1. write the tables into a hidden folder; 2. sync each; 3. write the manifest with their checksums; 4. give the
    folder its name. A crash leaves the others as they were.
    """
    name = f"{max(position, 0):012d}-{made_at_ms}"
    published, part = parent / name, parent / f".{name}.part"
    if not published.exists():
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        for table, schema in kind.tables.items():  # 1
            with pa.ipc.new_file(part / f"{table}.arrow", schema) as file:
                file.write_table(tables[table])
        stored = {table: stored_table(part / f"{table}.arrow", tables[table].num_rows) for table in kind.tables}  # 2
        described = {"format": kind.format, "name": name, "graph_position": position, "made_at_ms": made_at_ms}
        make: Callable[..., M] = kind.manifest
        manifest = make(**described, tables=stored, **fields).seal()
        replace_file(part / MANIFEST, msgspec.json.encode(manifest))  # 3
        part.rename(published)  # 4
    return msgspec.json.decode((published / MANIFEST).read_bytes(), type=kind.manifest)


def stored_table(path: Path, rows: int) -> TableFile:
    """What a manifest says of a written file, once it is synced."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
    return TableFile(path.name, rows, path.stat().st_size, file_checksum(path))


def remove_published(folder: Path) -> None:
    """At once for readers."""
    hidden = folder.with_name(f".{folder.name}.removed")
    if folder.exists():
        folder.rename(hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def remove_others(parent: Path, kept: Collection[str]) -> None:
    """Remove what is published there under other names."""
    for folder in parent.glob("[!.]*/"):
        if folder.name not in kept:
            remove_published(folder)


def remove_unfinished(parent: Path) -> None:
    """What an interrupted publication or removal left."""
    for left in parent.glob(".*/"):
        shutil.rmtree(left, ignore_errors=True)
