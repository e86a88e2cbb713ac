"""Publication of folders of Arrow files (`indexer.read.arrow_folders`), those of communities among them: written as a
whole, removed at once."""

import os
import shutil
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from indexer.generation_folders import replace_file
from indexer.graph.snapshots import GraphSnapshot
from indexer.integrity.files import file_checksum
from indexer.read.arrow_folders import MANIFEST, ArrowFolders, M, TableFile
from indexer.read.community_reader import (
    COMMUNITIES,
    COMMUNITY_TABLES,
    CommunityManifest,
    CommunityTables,
    published_communities,
)


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


KEPT = 2  # a reader may just have chosen the one before


def publish_communities(
    communities_dir: Path, tables: CommunityTables, snapshot: GraphSnapshot, seconds: float
) -> CommunityManifest:
    """Make these the newest, and remove older ones; `seconds` is how long they took. A crash leaves those before as
    they were."""
    manifest = publish_folder(
        COMMUNITIES,
        communities_dir,
        {name: tables.table(name).combine_chunks() for name in COMMUNITY_TABLES},
        snapshot.graph_position,
        time.time_ns() // 1_000_000,
        snapshot=snapshot.name,
        seconds=round(seconds, 3),
        collections=dict(tables.collections),
    )
    remove_others(communities_dir, [each.name for each in published_communities(communities_dir)[:KEPT]])
    remove_unfinished(communities_dir)
    return manifest


def remove_damaged(communities_dir: Path) -> list[str]:
    """Remove what is not as it was written; returns the names."""
    damaged = sorted({name for name, _, _ in COMMUNITIES.damage(communities_dir)})
    for name in damaged:
        remove_published(communities_dir / name)
    return damaged
