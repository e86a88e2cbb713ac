"""Communities of entities: found after a snapshot of the graph, at intervals that grow with what they cost."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from indexer.communities.detection import find_communities
from indexer.errors import DamagedStore
from indexer.generation_folders import Generation
from indexer.graph.snapshots import GraphSnapshot, latest_snapshot, read_graph
from indexer.lance_connection import connect
from indexer.read.community_reader import CommunityManifest, CommunityTables, published_communities, read_communities
from indexer.read.lance_reader import LanceReader
from indexer.runtime.resources import trim_memory
from indexer.write.arrow_publication import publish_communities, remove_damaged
from streams.runtime.snapshot_schedule import MadeOfSnapshots
from streams.runtime.store_thread import DATA_ERRORS, StoreThread
from streams.worker_log import log

COMMUNITY_MIN_SECONDS = 60.0  # between two findings while documents are being indexed
COMMUNITY_MAX_SECONDS = 3_600.0
COMMUNITY_SHARE = 0.02  # of the time, at most, meanwhile


class CommunityFinder:
    """Finds and publishes the communities of a generation. The calls block: make them in a thread of their own."""

    def __init__(self, generation: Generation) -> None:
        self._generation = generation

    def find(self) -> CommunityManifest | None:
        """Those of the newest snapshot, published; None where they are there, or where there is no snapshot.

        Raises FileNotFoundError for a snapshot that was replaced meanwhile (try again), DamagedStore for a damaged one,
        TransientStoreError where texts cannot be read just now.
        """
        generation = self._generation
        snapshot = latest_snapshot(generation.snapshots_dir)
        if snapshot is None or not is_due(generation, snapshot):
            return None
        began = time.monotonic()
        tables = find_communities(read_graph(generation.snapshots_dir, snapshot), self._texts, self._former())
        return publish_communities(generation.communities_dir, tables, snapshot, time.monotonic() - began)

    def remove_damaged(self) -> list[str]:
        return remove_damaged(self._generation.communities_dir)

    def _former(self) -> CommunityTables | None:
        for manifest in published_communities(self._generation.communities_dir):
            try:
                return read_communities(self._generation.communities_dir, manifest)
            except (DamagedStore, FileNotFoundError):
                continue
        return None

    def _texts(self, chunk_ids: Sequence[str]) -> Mapping[str, str]:
        tables = LanceReader(connect(self._generation.lance_dir)).snapshot()
        return {chunk.id: chunk.text for chunk in tables.chunks(chunk_ids)}


def is_due(generation: Generation, snapshot: GraphSnapshot | None) -> bool:
    """Whether the newest communities are not of this snapshot."""
    if snapshot is None:
        return False
    newest = next(iter(published_communities(generation.communities_dir)), None)
    return newest is None or newest.snapshot != snapshot.name


@dataclass(eq=False)
class Communities(MadeOfSnapshots):
    """Has them found when that is due: some time after a snapshot, less often the longer it takes."""

    finder: CommunityFinder
    thread: StoreThread

    async def remove_damaged(self) -> bool:
        names = await self.thread.run(self.finder.remove_damaged)
        if names:
            log.error("damaged communities are removed, and made again", names=names)
        return bool(names)

    async def make(self) -> None:
        """Find them now. What the snapshot is to blame for waits for the next one: the rest of the worker goes on."""
        token = self.schedule.begin()
        try:
            found = await self.thread.run(self.finder.find)
        except (DamagedStore, *DATA_ERRORS) as error:
            log.error("no communities are found in this snapshot", reason=str(error), exc_info=error)
            found = None
        took = self.schedule.made(token)
        if found is None:
            return
        await self.thread.run(trim_memory)
        log.info(
            "communities found",
            name=found.name,
            graph_position=found.graph_position,
            communities=found.tables["communities"].rows,
            entities=found.tables["nodes"].rows,
            seconds=round(took, 3),
        )
