"""Published communities: folders of Arrow IPC files beside the graph's snapshots, which any process opens.

`communities/<name>/` holds a file for each table, and `manifest.json` with their checksums. A folder gets its name when
all is on disk, and nothing in it changes afterwards. They are a view of a graph snapshot: what is damaged or missing is
made again.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pyarrow as pa

from indexer.errors import DamagedStore
from indexer.graph.snapshots import MANIFEST, TableFile
from indexer.graph.tables import ID_BYTES
from indexer.integrity.seal import Sealed

FORMAT = 1

_ID = pa.binary(ID_BYTES)
_RECURRING = pa.dictionary(pa.int32(), pa.string())
_SENTENCES = pa.list_(
    pa.struct([("text", pa.string()), ("chunk_id", pa.string()), ("document_id", pa.string())]),
)

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
        {
            "community": pa.int32(),
            "id": _ID,
            "label": pa.string(),
            "type": _RECURRING,
            "strength": pa.float32(),
        }
    ),
    "nodes": pa.schema(
        {
            "key": pa.uint64(),
            "collection": _RECURRING,
            "coarse": pa.int32(),
            "medium": pa.int32(),
            "fine": pa.int32(),
        }
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


class _Format(msgspec.Struct):
    format: int


def published_communities(communities_dir: Path) -> list[CommunityManifest]:
    """Those of this format with an intact manifest, newest first; other files are not read."""
    found = [manifest for _, manifest in described(communities_dir) if manifest is not None]
    return sorted(found, key=lambda manifest: (manifest.made_at_ms, manifest.name), reverse=True)


def described(communities_dir: Path) -> Iterator[tuple[str, CommunityManifest | None]]:
    """The name of every folder and its manifest; None for a damaged one. Other formats are left out."""
    for folder in sorted(communities_dir.glob("[!.]*/")):
        try:
            content = (folder / MANIFEST).read_bytes()
            if msgspec.json.decode(content, type=_Format).format != FORMAT:
                continue
            manifest = msgspec.json.decode(content, type=CommunityManifest)
        except (FileNotFoundError, ValueError):
            if folder.exists():  # else it was removed just now
                yield folder.name, None
            continue
        is_intact = manifest.seal() == manifest and {*COMMUNITY_TABLES} <= {*manifest.tables}
        yield folder.name, manifest if is_intact and manifest.name == folder.name else None


def read_communities(
    communities_dir: Path, manifest: CommunityManifest, tables: tuple[str, ...] = tuple(COMMUNITY_TABLES)
) -> CommunityTables:
    """These tables, the others empty. Raises FileNotFoundError when newer ones have replaced them, DamagedStore when a
    file is not as it was written."""
    read = {name: _read_table(communities_dir, manifest, name) for name in tables}
    empty = {name: COMMUNITY_TABLES[name].empty_table() for name in COMMUNITY_TABLES if name not in read}
    return CommunityTables(**read, **empty, collections=manifest.collections)


def _read_table(communities_dir: Path, manifest: CommunityManifest, name: str) -> pa.Table:
    stored = manifest.tables[name]
    folder = communities_dir / manifest.name
    try:
        content = (folder / stored.file).read_bytes()
    except FileNotFoundError:
        if not (folder / MANIFEST).exists():
            raise FileNotFoundError(f"The communities {manifest.name} are no longer there.") from None
        raise _damaged(manifest, stored.file, "is gone") from None
    if hashlib.sha256(content).hexdigest() != stored.checksum:
        raise _damaged(manifest, stored.file, "does not match its checksum")
    table = pa.ipc.open_file(content).read_all()
    if table.schema != COMMUNITY_TABLES[name]:
        raise _damaged(manifest, stored.file, "has other columns than this version reads")
    return table


def _damaged(manifest: CommunityManifest, file: str, what: str) -> DamagedStore:
    return DamagedStore(
        f"The file {file} of the communities {manifest.name} {what}. The worker makes them again: nothing is to be "
        "done."
    )
