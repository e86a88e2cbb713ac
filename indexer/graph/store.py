"""The graph of a generation: its newest snapshot, and what changed since. The next snapshot is both, merged."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from indexer.errors import DamagedStore, StoreInDoubt
from indexer.graph.contributions import tables_of
from indexer.graph.merge import merge
from indexer.graph.publication import KEPT_SNAPSHOTS, publish_tables
from indexer.graph.snapshots import GraphSnapshot, newest_intact_snapshot, read_graph, require_intact_snapshot
from indexer.graph.tables import GraphTables
from schemas.graph_delta import Contribution, decode_contribution, encode_contribution
from schemas.ids import DocumentKey

Change = tuple[DocumentKey, Contribution | None]


@dataclass(frozen=True)
class GraphChanges:
    """What changed since the newest snapshot, up to a position: the last contribution of each document, encoded, or
    None for one that was withdrawn."""

    position: int
    newest: Mapping[DocumentKey, bytes | None]


class GraphStore:
    """One process has it open. `publish` may run in another thread than the other calls.

    What changed since the newest snapshot is in memory only. After a kill it is read again from the graph topic, behind
    `position`; a snapshot that is damaged then is passed over, and the one before is gone on from.
    """

    def __init__(self, snapshots_dir: Path, newest: GraphSnapshot | None, kept: int) -> None:
        """Use `open`."""
        self._snapshots_dir = snapshots_dir
        self._kept = kept
        self._newest = newest
        self._base = GraphTables.empty() if newest is None else read_graph(snapshots_dir, newest)
        self._position = -1 if newest is None else newest.graph_position
        self._pending: dict[DocumentKey, bytes | None] = {}
        self._lock = threading.Lock()  # of what is pending

    @classmethod
    def open(cls, snapshots_dir: Path, kept: int = KEPT_SNAPSHOTS) -> Self:
        """With the newest intact snapshot; empty without one. `kept` snapshots stay when another is published."""
        return cls(snapshots_dir, newest_intact_snapshot(snapshots_dir), kept)

    def position(self) -> int:
        """The last offset of the graph topic that is applied; -1 for none."""
        return self._position

    def apply(self, changes: Sequence[Change], position: int) -> None:
        """Replace, or delete (None), the contribution of each document. May be repeated.

        Raises ValueError or LookupError for a contribution that the tables cannot hold; nothing is applied then.
        """
        tables_of(contribution for _, contribution in changes if contribution is not None)
        encoded = {key: None if each is None else encode_contribution(each) for key, each in changes}
        with self._lock:
            self._pending |= encoded
            self._position = position

    def changes(self) -> GraphChanges:
        """For `publish`, in the thread of `apply`."""
        with self._lock:
            return GraphChanges(self._position, dict(self._pending))

    def publish(self, changes: GraphChanges) -> GraphSnapshot:
        """Make the graph with these changes the newest snapshot. May be repeated with the same changes, also after a
        failure such as a full disk, until others are published.

        1. check that the newest snapshot is still what was written: a merge would hide what is not; 2. merge;
        3. publish; 4. go on from there with what was applied meanwhile.

        Raises StoreInDoubt for a damaged snapshot: the next process goes on from the one before.
        """
        if self._newest is not None:  # 1
            try:
                require_intact_snapshot(self._snapshots_dir, self._newest)
            except (DamagedStore, FileNotFoundError) as error:
                raise StoreInDoubt(f"The graph cannot be merged: {error}") from error
        added = tables_of(decode_contribution(each) for each in changes.newest.values() if each is not None)
        merged = merge(self._base, changes.newest.keys(), added)  # 2
        newest = publish_tables(merged, self._snapshots_dir, changes.position, kept=self._kept)  # 3
        self._base, self._newest = read_graph(self._snapshots_dir, newest), newest  # 4
        with self._lock:
            published = changes.newest
            self._pending = {
                key: each for key, each in self._pending.items() if key not in published or published[key] is not each
            }
        return newest
