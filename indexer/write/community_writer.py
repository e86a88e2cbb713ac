"""Publication of communities: written as Arrow files, checked in, kept for a while, removed."""

import shutil
import time
from pathlib import Path

import msgspec
import pyarrow as pa

from indexer.generation_folders import replace_file
from indexer.graph.snapshot_publication import remove_published, remove_unfinished, stored_table
from indexer.graph.snapshots import MANIFEST, GraphSnapshot, TableFile
from indexer.integrity.files import file_checksum
from indexer.read.community_reader import (
    COMMUNITY_TABLES,
    FORMAT,
    CommunityManifest,
    CommunityTables,
    described,
    published_communities,
)

KEPT = 2  # a reader may just have chosen the one before


def publish_communities(
    communities_dir: Path, tables: CommunityTables, snapshot: GraphSnapshot, seconds: float
) -> CommunityManifest:
    """Make these the newest; `seconds` is how long they took. A crash leaves those before as they were.

    1. write and sync the tables in a hidden folder; 2. write the manifest with their checksums; 3. give the folder its
    name; 4. remove older ones.
    """
    made_at_ms = time.time_ns() // 1_000_000
    name = f"{max(snapshot.graph_position, 0):012d}-{made_at_ms}"
    part = communities_dir / f".{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    manifest = CommunityManifest(
        format=FORMAT,
        name=name,
        snapshot=snapshot.name,
        graph_position=snapshot.graph_position,
        made_at_ms=made_at_ms,
        seconds=round(seconds, 3),
        tables={each: _write(part / f"{each}.arrow", tables.table(each)) for each in COMMUNITY_TABLES},  # 1
        collections=dict(tables.collections),
    ).seal()
    replace_file(part / MANIFEST, msgspec.json.encode(manifest))  # 2
    part.rename(communities_dir / name)  # 3
    _prune(communities_dir)  # 4
    return manifest


def remove_damaged(communities_dir: Path) -> list[str]:
    """Remove what is not as it was written; returns the names."""
    damaged = [name for name, manifest in described(communities_dir) if manifest is None]
    for manifest in published_communities(communities_dir):
        folder = communities_dir / manifest.name
        for stored in manifest.tables.values():
            path = folder / stored.file
            if folder.exists() and not (path.exists() and file_checksum(path) == stored.checksum):
                damaged.append(manifest.name)
                break
    for name in damaged:
        remove_published(communities_dir / name)
    return damaged


def _write(path: Path, table: pa.Table) -> TableFile:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return stored_table(path, table.num_rows)


def _prune(communities_dir: Path) -> None:
    kept = {manifest.name for manifest in published_communities(communities_dir)[:KEPT]}
    for folder in communities_dir.glob("[!.]*/"):
        if folder.name not in kept:
            remove_published(folder)
    remove_unfinished(communities_dir)
