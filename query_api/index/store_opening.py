"""Opening what searches read from disk, and integrity checks while the service runs.

What is in memory was checked when it was read and stays right. Every stored file is read about every half minute, so
damage on disk is reported before the next start, or the next read, needs the file.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import structlog

from indexer.generation_folders import Generation
from indexer.graph.snapshots import SNAPSHOTS, published_snapshots, read_graph
from indexer.integrity.files import Damage, damage_message, is_in_tables
from indexer.read.community_reader import published_communities, read_communities
from indexer.read.lance_reader import INDEX_TABLES
from indexer.store_verification import damage_of
from query_api.index.community_view import CommunityView
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from query_api.index.text.text_snapshot import TextReader, TextSnapshot


class GraphFile(NamedTuple):
    """A published snapshot of the graph: its name in the generation's snapshot folder, and the position it holds."""

    name: str
    position: int


class Stores:
    """The stores of a data directory, opened to read. Calls may block for seconds: make them in a thread."""

    def __init__(self, resident_text_bytes: int, documents_topic: str) -> None:
        """Passages' texts are kept in memory up to `resident_text_bytes`; `documents_topic` is where they came from."""
        self._resident_text_bytes = resident_text_bytes
        self._documents_topic = documents_topic

    def open_tables(self, generation: Generation) -> TextReader:
        """Raises FileNotFoundError while the worker has not made them, DamagedStore where they are not what was
        written."""
        return TextReader.open(generation, max_text_bytes=self._resident_text_bytes)

    def newest_graph_file(self, generation: Generation, damaged: Collection[str] = ()) -> GraphFile | None:
        """The newest whose name is not among the `damaged`; None where there is no other."""
        for snapshot in published_snapshots(generation.snapshots_dir):
            if snapshot.name not in damaged:
                return GraphFile(snapshot.name, snapshot.graph_position)
        return None

    def build_graph(self, generation: Generation, file: GraphFile | None) -> GraphView:
        """The view of a snapshot; the empty one for None. Raises DamagedStore when it is not what was written."""
        if file is None:
            return GraphView.empty()
        snapshot = SNAPSHOTS.named(generation.snapshots_dir, file.name)
        return GraphView.build(read_graph(generation.snapshots_dir, snapshot), snapshot.graph_position)

    def newest_communities(self, generation: Generation, known: Collection[str]) -> CommunityView | None:
        """The newest communities; None where they are among the `known`, or there are none. Raises DamagedStore where
        they are not what was written, FileNotFoundError where newer ones have just replaced them."""
        newest = next(iter(published_communities(generation.communities_dir)), None)
        if newest is None or newest.name in known:
            return None
        return CommunityView(newest, read_communities(generation.communities_dir, newest, ("communities", "members")))

    def damage_of(self, generation: Generation) -> Iterator[list[Damage]]:
        """All that is not what was written, found step by step; each step reads files."""
        return damage_of(generation)

    def is_in_index(self, damage: Damage) -> bool:
        """Whether it is in a table that searches read."""
        return is_in_tables(damage, INDEX_TABLES)

    def snapshot(self, generation: Generation, text: TextSnapshot, graph: GraphView) -> Snapshot:
        """Both at one moment. Costs nothing."""
        return Snapshot(generation.name, text, graph, self._documents_topic, text.in_memory)


log = structlog.get_logger(__name__)

PAUSE_SECONDS = 20.0
PAUSE_FACTOR = 9  # a tenth of one core at most: a pass over 3 GB then takes some 20 s


class IntegrityMonitor:
    """Keeps `damage`, all that is not as written in the generation that `served` names. Used on the event loop."""

    def __init__(
        self, stores: Stores, served: Callable[[], Generation | None], *, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self.damage: list[Damage] = []
        self._stores = stores
        self._served = served
        self._pause_seconds = pause_seconds

    async def run(self) -> None:
        """One pass after another. What a pass finds is reported at once, and until a pass does not find it."""
        while True:
            generation = self._served()
            if generation is not None:
                try:
                    self.damage = await self._pass(generation)
                except OSError as error:  # such as too many open files: the next pass looks again
                    log.warning("the stored files cannot be looked at just now", reason=str(error))
            await asyncio.sleep(self._pause_seconds)

    def index_damage(self) -> list[Damage]:
        """That in the tables which searches read."""
        return [each for each in self.damage if self._stores.is_in_index(each)]

    def sentence(self) -> str | None:
        """What is damaged and what repairs it, for a person."""
        return damage_message(self.damage) if self.damage else None

    async def _pass(self, generation: Generation) -> list[Damage]:
        steps = self._stores.damage_of(generation)
        found: list[Damage] = []
        while True:
            began = time.perf_counter()
            step = await asyncio.to_thread(_next, steps)
            if step is None:
                return found
            for each in step:
                log.error("damage on disk", path=each.path, what=each.what)
            found += step
            self.damage = list(dict.fromkeys([*self.damage, *found]))
            await asyncio.sleep(PAUSE_FACTOR * (time.perf_counter() - began))


def _next(steps: Iterator[list[Damage]]) -> list[Damage] | None:
    return next(steps, None)
