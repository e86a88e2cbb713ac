"""The graph of a generation: its newest snapshot, and what changed since. The next snapshot is both, merged."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import structlog

from indexer.generation_folders import Generation
from indexer.graph.contributions import tables_of
from indexer.graph.merge import merge
from indexer.graph.snapshot_publication import KEPT_SNAPSHOTS, publish_tables, set_aside, set_aside_damaged
from indexer.graph.snapshots import GraphSnapshot, newest_intact_snapshot, published_snapshots, read_graph
from indexer.graph.tables import GraphTables, one_array, packed
from indexer.integrity.files import Damage
from indexer.write.arrow_publication import remove_published
from schemas.graph_delta import Contribution, decode_contribution, encode_contribution
from schemas.ids import DocumentKey, document_node_id

Change = tuple[DocumentKey, Contribution | None]


class InGraph(NamedTuple):
    """Whether the graph has a document as in a contribution follows from its revision, the number of its chunks, and
    the edges between them, sorted."""

    revision: str
    chunks: int
    edges: Sequence[tuple[str, int, int, float]] = ()  # kind, ordinals of source and target, weight


log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class GraphChanges:
    """What changed since the newest snapshot, up to a position, and up to `positions` of the documents topic: the last
    contribution of each document, encoded, or None for one that was withdrawn."""

    position: int
    newest: Mapping[DocumentKey, bytes | None]
    positions: Mapping[int, int] = field(default_factory=dict)


class GraphStore:
    """One process has it open. `publish` and `set_aside_damaged` may run in another thread than the other calls.

    The newest snapshot is in memory as well, so that damage to its files is in no further one. What changed since is in
    memory only: after a kill it is read again from the contributions topic, behind `position`. A snapshot that is
    damaged then is passed over, and the one before is used.

    While it is not complete its snapshots are in a folder of their own, so that readers keep what is published.
    """

    def __init__(
        self,
        generation: Generation,
        newest: GraphSnapshot | None,
        position: int,
        kept: int,
        positions: Mapping[int, int],
    ) -> None:
        """Use `open`."""
        self._published_dir = generation.snapshots_dir
        self._incomplete_dir = generation.incomplete_graph_dir
        self.is_complete = not self._incomplete_dir.exists()
        self._replaces_published = not self.is_complete
        self._kept = kept
        empty = GraphTables.empty()
        self._base = empty if newest is None else read_graph(self._snapshots_dir, newest, is_mapped=False)
        self._position = position
        self._positions = dict(positions)
        self._pending: dict[DocumentKey, bytes | None] = {}
        self._lock = threading.Lock()  # of the base and what is pending

    @classmethod
    def open(
        cls,
        generation: Generation,
        kept_snapshots: int = KEPT_SNAPSHOTS,
        needed: int | None = None,
        positions: Mapping[int, int] = {},
    ) -> Self:
        """With the newest intact snapshot. So many snapshots stay when another is published.

        `needed` is the position that has what the tables have, None where these are empty, and `positions` are theirs
        on the documents topic. Where no intact snapshot is left for them, and where `order_remake` was called, the
        graph begins empty at that position, and is not complete: every document has to be contributed again.
        """
        is_remade = generation.incomplete_graph_dir.exists()
        newest = newest_intact_snapshot(generation.incomplete_graph_dir if is_remade else generation.snapshots_dir)
        if newest is None and needed is not None and not is_remade:
            log.warning("no snapshot of the graph is left; it is made again from the log")
            order_remake(generation)
        position = -1 if needed is None else needed
        if newest is not None:
            position, positions = newest.graph_position, newest.positions
        return cls(generation, newest, position, kept_snapshots, positions)

    def position(self) -> int:
        """The last offset of the contributions topic that is applied; -1 for none."""
        return self._position

    def follows(self, beginning: int, needed: int) -> bool:
        """Whether the graph lacks nothing of what was before this offset, where its topic begins by now; `needed` is
        the position that has what the tables have. A graph that is not complete, or that has all of that, needs nothing
        of what is gone, and continues from there: what came after it is in no table, and is contributed again."""
        if not self.is_complete or self._position >= needed:
            self._position = max(self._position, beginning - 1)
        return self._position >= beginning - 1

    @property
    def pending_bytes(self) -> int:
        """What the newest snapshot does not hold takes so much memory."""
        with self._lock:
            return sum(len(each or b"") for each in self._pending.values())

    def apply(self, changes: Sequence[Change], position: int, positions: Mapping[int, int] = {}) -> None:
        """Replace, or delete (None), the contribution of each document: all that was committed up to `position`, of the
        records up to `positions` of the documents topic. May be repeated.

        Raises ValueError or LookupError for a contribution that the tables cannot hold; nothing is applied then.
        """
        tables_of(contribution for _, contribution in changes if contribution is not None)
        encoded = {key: None if each is None else encode_contribution(each) for key, each in changes}
        with self._lock:
            self._pending |= encoded
            self._position = position
            self._positions |= positions

    def keys(self) -> set[DocumentKey]:
        """Of all documents."""
        with self._lock:
            documents, pending = self._base.documents, dict(self._pending)
        named = zip(documents["collection"].to_pylist(), documents["document_id"].to_pylist(), strict=True)
        found = {DocumentKey(*each) for each in named} | pending.keys()
        return {key for key in found if pending.get(key, b"") is not None}

    def documents(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, InGraph]:
        """Those that there are."""
        with self._lock:
            base, pending = self._base, {key: self._pending[key] for key in keys if key in self._pending}
        return _documents_in(base, [key for key in keys if key not in pending]) | contributed(pending)

    def extractors(self) -> set[str]:
        """Those that the statements of the newest snapshot come from."""
        return set(one_array(self._base.statements["extractor"]).unique().to_pylist())

    def changes(self) -> GraphChanges:
        """For `publish`, in the thread of `apply`."""
        with self._lock:
            return GraphChanges(self._position, dict(self._pending), dict(self._positions))

    def publish(self, changes: GraphChanges) -> GraphSnapshot:
        """Make the graph with these changes the newest snapshot. May be repeated with the same changes, also after a
        failure such as a full disk, until others are published.

        1. merge; 2. publish, at first in place of all others where the graph was not complete; 3. continue with
        what was applied meanwhile.
        """
        folder = self._snapshots_dir
        added = tables_of(decode_contribution(each) for each in changes.newest.values() if each is not None)
        merged = merge(self._base, changes.newest.keys(), added)  # 1
        snapshot = publish_tables(merged, folder, changes.position, kept=self._kept, positions=changes.positions)  # 2
        if self._replaces_published and folder == self._published_dir:
            for other in published_snapshots(folder):
                if other != snapshot:
                    set_aside(folder, other.name)
            remove_published(self._incomplete_dir)
            self._replaces_published = False
        with self._lock:  # 3
            self._base = merged
            published = changes.newest
            self._pending = {
                key: each for key, each in self._pending.items() if key not in published or published[key] is not each
            }
        return snapshot

    def snapshot(self) -> GraphSnapshot:
        """Publish all that was applied."""
        return self.publish(self.changes())

    def set_aside_damaged(self) -> list[Damage]:
        """Set aside the snapshots that are not as they were written."""
        return set_aside_damaged(self._published_dir)

    def complete(self) -> None:
        """The graph lacks nothing any more: what is published from now on is what readers see."""
        self.is_complete = True

    @property
    def _snapshots_dir(self) -> Path:
        return self._published_dir if self.is_complete else self._incomplete_dir


def order_remake(generation: Generation) -> None:
    """The next `GraphStore.open` begins with an empty graph."""
    remove_published(generation.incomplete_graph_dir)
    generation.incomplete_graph_dir.mkdir()


def held(found: Mapping[DocumentKey, InGraph], contributions: Mapping[DocumentKey, bytes | None]) -> set[DocumentKey]:
    """The documents that were `found` in the graph as these contributions have them; None for those it has not.

    Raises ValueError or LookupError for a contribution that the tables cannot hold.
    """
    made = contributed(contributions)
    return {key for key in contributions if found.get(key) == made.get(key)}


def contributed(contributions: Mapping[DocumentKey, bytes | None]) -> dict[DocumentKey, InGraph]:
    """What a graph made of these contributions has."""
    tables = tables_of(decode_contribution(each) for each in contributions.values() if each is not None)
    return _documents_in(tables, contributions)


def _documents_in(tables: GraphTables, keys: Iterable[DocumentKey]) -> dict[DocumentKey, InGraph]:
    by_id = {document_node_id(key): key for key in keys}
    if not by_id:
        return {}
    rows = pc.index_in(packed(pa.array(by_id, pa.string())), value_set=one_array(tables.documents["id"])).to_pylist()
    chunks = np.bincount(tables.documents_of("chunks"), minlength=tables.documents.num_rows)
    edges = _edges_of(tables, [row for row in rows if row is not None])
    return {
        key: InGraph(tables.documents["revision"][row].as_py(), int(chunks[row]), sorted(edges[row]))
        for key, row in zip(by_id.values(), rows, strict=True)
        if row is not None
    }


def _edges_of(tables: GraphTables, documents: Sequence[int]) -> dict[int, list[tuple[str, int, int, float]]]:
    """Those between the chunks of these documents, by their row."""
    owners = tables.documents_of("chunk_edges")
    chosen = np.isin(owners, documents)
    ordinals = tables.chunks["ordinal"].to_numpy()
    part = tables.chunk_edges.filter(pa.array(chosen))
    source, target = (ordinals[part[end].to_numpy()].tolist() for end in ("source", "target"))
    found: dict[int, list[tuple[str, int, int, float]]] = {row: [] for row in documents}
    edges = zip(part["kind"].to_pylist(), source, target, part["weight"].to_pylist(), strict=True)
    for owner, edge in zip(owners[chosen].tolist(), edges, strict=True):
        found[owner].append(edge)
    return found
