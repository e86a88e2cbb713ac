"""Publication of communities: written as Arrow files, kept for a while, removed."""

import time
from pathlib import Path

from indexer.graph.snapshots import GraphSnapshot
from indexer.read.community_reader import (
    COMMUNITIES,
    COMMUNITY_TABLES,
    CommunityManifest,
    CommunityTables,
    published_communities,
)
from indexer.write.arrow_publication import publish_folder, remove_others, remove_published, remove_unfinished

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
