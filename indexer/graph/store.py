"""The graph of a generation: its newest snapshot, and what changed since. The next snapshot is both, merged."""

import shutil
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import structlog

from indexer.generations import Generation
from indexer.graph.contributions import tables_of
from indexer.graph.merge import merge
from indexer.graph.publication import KEPT_SNAPSHOTS, publish_tables, set_aside, set_aside_damaged
from indexer.graph.snapshots import GraphSnapshot, newest_intact_snapshot, published_snapshots, read_graph
from indexer.graph.tables import GraphTables, one_array, packed
from indexer.integrity.files import Damage
from schemas.graph_delta import Contribution, decode_contribution, encode_contribution
from schemas.ids import DocumentKey, document_node_id

Change = tuple[DocumentKey, Contribution | None]
Stored = tuple[str, int]  # the revision of a document, and the number of its chunks

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class GraphChanges:
    """What changed since the newest snapshot, up to a position: the last contribution of each document, encoded, or
    None for one that was withdrawn."""

    position: int
    newest: Mapping[DocumentKey, bytes | None]


class GraphStore:
    """One process has it open. `publish` and `set_aside_damaged` may run in another thread than the other calls.

    The newest snapshot is in memory as well, so that damage to its files is in no further one. What changed since is in
    memory only: after a kill it is read again from the graph topic, behind `position`. A snapshot that is damaged then
    is passed over, and the one before is gone on from.
    """

    def __init__(self, generation: Generation, newest: GraphSnapshot | None, kept: int) -> None:
        """Use `open`."""
        self._snapshots_dir = generation.snapshots_dir
        self._kept = kept
        empty = GraphTables.empty()
        self._base = empty if newest is None else read_graph(self._snapshots_dir, newest, is_mapped=False)
        self._position = -1 if newest is None else newest.graph_position
        self._pending: dict[DocumentKey, bytes | None] = {}
        self._lock = threading.Lock()  # of the base and what is pending

    @classmethod
    def open(cls, generation: Generation, kept_snapshots: int = KEPT_SNAPSHOTS) -> Self:
        """With the newest intact snapshot; empty without one, and where `order_remake` was called. So many snapshots
        stay when another is published."""
        if generation.remake_graph_path.exists():
            log.warning("the graph is made again from its topic")
            for snapshot in published_snapshots(generation.snapshots_dir):
                set_aside(generation.snapshots_dir, snapshot.name)
            generation.remake_graph_path.unlink()
        store = cls(generation, newest_intact_snapshot(generation.snapshots_dir), kept_snapshots)
        shutil.rmtree(generation.root / "graph", ignore_errors=True)  # Kùzu's file, of earlier versions
        return store

    def position(self) -> int:
        """The last offset of the graph topic that is applied; -1 for none."""
        return self._position

    @property
    def pending_bytes(self) -> int:
        """What the newest snapshot does not hold takes so much memory."""
        with self._lock:
            return sum(len(each or b"") for each in self._pending.values())

    def apply(self, changes: Sequence[Change], position: int) -> None:
        """Replace, or delete (None), the contribution of each document. May be repeated.

        Raises ValueError or LookupError for a contribution that the tables cannot hold; nothing is applied then.
        """
        tables_of(contribution for _, contribution in changes if contribution is not None)
        encoded = {key: None if each is None else encode_contribution(each) for key, each in changes}
        with self._lock:
            self._pending |= encoded
            self._position = position

    def documents(self, keys: Sequence[DocumentKey]) -> dict[DocumentKey, Stored]:
        """{key: (revision, number of chunks)} of those that there are."""
        with self._lock:
            base, pending = self._base, {key: self._pending[key] for key in keys if key in self._pending}
        found = _stored(base, [key for key in keys if key not in pending])
        for key, encoded in pending.items():
            if encoded is not None:
                contribution = decode_contribution(encoded)
                found[key] = contribution.revision, len(contribution.chunks)
        return found

    def extractors(self) -> set[str]:
        """Those that the statements of the newest snapshot come from."""
        return set(one_array(self._base.statements["extractor"]).unique().to_pylist())

    def changes(self) -> GraphChanges:
        """For `publish`, in the thread of `apply`."""
        with self._lock:
            return GraphChanges(self._position, dict(self._pending))

    def publish(self, changes: GraphChanges) -> GraphSnapshot:
        """Make the graph with these changes the newest snapshot. May be repeated with the same changes, also after a
        failure such as a full disk, until others are published.

        1. merge; 2. publish; 3. go on from there with what was applied meanwhile.
        """
        added = tables_of(decode_contribution(each) for each in changes.newest.values() if each is not None)
        merged = merge(self._base, changes.newest.keys(), added)  # 1
        snapshot = publish_tables(merged, self._snapshots_dir, changes.position, kept=self._kept)  # 2
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
        return set_aside_damaged(self._snapshots_dir)


def order_remake(generation: Generation) -> None:
    """The next `GraphStore.open` begins with an empty graph, and the snapshots are set aside."""
    generation.remake_graph_path.touch()


def _stored(tables: GraphTables, keys: Iterable[DocumentKey]) -> dict[DocumentKey, Stored]:
    by_id = {document_node_id(key): key for key in keys}
    if not by_id:
        return {}
    rows = pc.index_in(packed(pa.array(by_id, pa.string())), value_set=one_array(tables.documents["id"])).to_pylist()
    chunks = np.bincount(tables.documents_of("chunks"), minlength=tables.documents.num_rows)
    return {
        key: (tables.documents["revision"][row].as_py(), int(chunks[row]))
        for key, row in zip(by_id.values(), rows, strict=True)
        if row is not None
    }
