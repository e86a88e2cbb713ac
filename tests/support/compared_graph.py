"""A graph writer that makes every snapshot twice, out of Kùzu and by merging, and compares them."""

import shutil
from collections.abc import Sequence
from typing import Any

import structlog

from indexer.generations import Generation
from indexer.graph.publication import GraphCopy
from indexer.graph.snapshots import GraphSnapshot, read_graph
from indexer.graph.store import GraphChanges, GraphStore
from indexer.verify import graph_digest
from indexer.write.kuzu import REMAKE, GraphWriter
from indexer.write.kuzu_database import Change

COMPARED = "graphs compared"
DIFFER = "the graph in Kùzu and the merged one differ"


class ComparedGraphWriter(GraphWriter):
    """Kùzu's snapshot is published, the merged one lies beside the graph; both go on from their own newest snapshot.

    Where one is ahead after a restart it already holds what the other reads again, so the two are compared from there
    on where both were.
    """

    def __init__(self, generation: Generation, *others: Any) -> None:
        self._merged_dir = generation.graph_path.parent / "merged"
        super().__init__(generation, *others)
        self._merged = GraphStore.open(self._merged_dir)
        self._compared_from = max(super().position(), self._merged.position())
        self._changes: dict[str, GraphChanges] = {}

    @classmethod
    def open(cls, generation: Generation, *others: Any, **named: Any) -> "ComparedGraphWriter":
        if generation.graph_path.with_name(REMAKE).exists():
            shutil.rmtree(generation.graph_path.parent / "merged", ignore_errors=True)
        opened = super().open(generation, *others, **named)
        assert isinstance(opened, cls)
        return opened

    def position(self) -> int:
        return min(super().position(), self._merged.position())

    def apply(self, changes: Sequence[Change], position: int) -> None:
        super().apply(changes, position)
        if position > self._merged.position():
            self._merged.apply(changes, position)

    def copy(self) -> GraphCopy:
        copy = super().copy()
        self._changes = {copy.name: self._merged.changes()}
        return copy

    def publish(self, copy: GraphCopy) -> GraphSnapshot:
        snapshot = super().publish(copy)
        changes = self._changes[copy.name]
        merged = self._merged.publish(changes)
        if min(copy.position, changes.position) >= self._compared_from:
            self._compare(snapshot, merged)
        return snapshot

    def _compare(self, exported: GraphSnapshot, merged: GraphSnapshot) -> None:
        found = [
            (snapshot.graph_position, graph_digest(read_graph(folder, snapshot)))
            for folder, snapshot in ((self._snapshots_dir, exported), (self._merged_dir, merged))
        ]
        if found[0] != found[1]:
            self.report(f"{DIFFER}; position and digest are {found}")
        if exported.rows("documents"):
            structlog.get_logger("thalweg.worker").info(COMPARED, position=exported.graph_position)

    def report(self, difference: str) -> None:
        raise AssertionError(difference)
