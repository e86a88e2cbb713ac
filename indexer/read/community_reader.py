"""Published communities: folders of Arrow files beside the graph's snapshots, `communities/<name>/`.

They are a view of a graph snapshot: what is damaged or missing is made again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa

from indexer.generation_folders import Sealed
from indexer.graph.tables import ID_BYTES
from indexer.read.arrow_folders import ArrowFolders, TableFile

FORMAT = 1

_ID = pa.binary(ID_BYTES)
_RECURRING = pa.dictionary(pa.int32(), pa.string())
_SENTENCES = pa.list_(pa.struct([("text", pa.string()), ("chunk_id", pa.string()), ("document_id", pa.string())]))

COMMUNITY_TABLES: dict[str, pa.Schema] = {
    "communities": pa.schema(
        {
            "id": pa.string(),
            "collection": _RECURRING,
            "level": _RECURRING,
            "label": pa.int32(),
            "parent": pa.int32(),
            "title": pa.string(),
            "type": _RECURRING,
            "size": pa.int32(),
            "content": _ID,
            "summary": _SENTENCES,
        }
    ),
    "members": pa.schema(
        {"community": pa.int32(), "id": _ID, "label": pa.string(), "type": _RECURRING, "strength": pa.float32()}
    ),
    "nodes": pa.schema(
        {"key": pa.uint64(), "collection": _RECURRING, "coarse": pa.int32(), "medium": pa.int32(), "fine": pa.int32()}
    ),
    "edges": pa.schema({"source": pa.int32(), "target": pa.int32(), "weight": pa.float32()}),
}
"""{table: its columns}. `label` numbers a collection's communities of a level, as `nodes` have them; `parent` and
`community` are rows of `communities`, -1 for none; `content` is a hash of what a summary is made of. `nodes` of a
collection are in the order of their keys; `source` and `target` are rows of `nodes`."""


class CollectionFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Of a collection's graph: its size; the modularity by level, now and at the last full run; the weight that
    changed since that one, as a share of what it saw."""

    nodes: int
    edges: int
    modularity: dict[str, float]
    at_full: dict[str, float]
    changed: float


class CommunityManifest(Sealed, frozen=True, kw_only=True):
    """Of what snapshot of the graph they are, the files by table, figures by collection. `sealed` is the checksum of
    the other fields."""

    format: int
    name: str
    snapshot: str
    graph_position: int
    made_at_ms: int
    seconds: float
    tables: dict[str, TableFile]
    collections: dict[str, CollectionFigures]
    sealed: str = ""


@dataclass(frozen=True)
class CommunityTables:
    """With the columns of COMMUNITY_TABLES."""

    communities: pa.Table
    members: pa.Table
    nodes: pa.Table
    edges: pa.Table
    collections: Mapping[str, CollectionFigures] = field(default_factory=dict)

    @classmethod
    def empty(cls) -> "CommunityTables":
        return cls(**{name: schema.empty_table() for name, schema in COMMUNITY_TABLES.items()})

    def table(self, name: str) -> pa.Table:
        table: pa.Table = getattr(self, name)
        return table


COMMUNITIES = ArrowFolders(
    CommunityManifest,
    FORMAT,
    COMMUNITY_TABLES,
    called="the communities",
    gone="The communities {} are no longer there.",
    advice="The worker makes them again: nothing is to be done.",
)


def published_communities(communities_dir: Path) -> list[CommunityManifest]:
    """Those of this format with an intact manifest, newest first; other files are not read."""
    return COMMUNITIES.published(communities_dir)


def read_communities(
    communities_dir: Path, manifest: CommunityManifest, tables: tuple[str, ...] = tuple(COMMUNITY_TABLES)
) -> CommunityTables:
    """These tables, the others empty. Raises FileNotFoundError when newer ones have replaced them, DamagedStore when a
    file is not as it was written."""
    read = {name: COMMUNITIES.read(communities_dir, manifest, name, is_mapped=False) for name in tables}
    empty = {name: COMMUNITY_TABLES[name].empty_table() for name in COMMUNITY_TABLES if name not in read}
    return CommunityTables(**read, **empty, collections=manifest.collections)
