"""One generation, open for reading: its text tables, and its graph, which follows the graph topic."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import structlog

from indexer.errors import DamagedStore
from indexer.generations import Generation, Manifest, read_manifest
from indexer.runtime.resources import trim_memory
from kafka_client.unreadable_batches import Skip
from query_api.index.communities import CommunityView
from query_api.index.follower import FollowedRecord, LocateBroker, LogUnavailable, Span, TopicFollower
from query_api.index.graph.view import GraphView
from query_api.index.snapshot import Snapshot
from query_api.index.stores import GraphFile, Stores
from query_api.index.text.snapshot import TextReader
from schemas.errors import MalformedEvent
from schemas.graph_delta import Contribution, decode_contribution
from schemas.ids import DocumentKey
from schemas.settings import MIB, KafkaSettings
from schemas.topics import TopicNames

log = structlog.get_logger(__name__)


_DATA_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError)
REBASE_PAUSE_FACTOR = 10  # a tenth of one core at most goes into new bases; the overlay keeps the graph fresh meanwhile


class InThread(Protocol):
    """Runs blocking work in a thread and waits for its result."""

    async def __call__(self, work: Callable[..., Any], *arguments: Any) -> Any: ...


class GraphChange(NamedTuple):
    """One record of the graph topic: a document's whole contribution, or None when it is withdrawn."""

    offset: int
    key: DocumentKey
    contribution: Contribution | None


class LiveGraph:
    """The newest graph view: a base built from a snapshot, and the changes of the graph topic after it. `apply` and
    `rebase` may be called from any thread, with anything already applied: the view's position never goes back.

    It remembers the newest change of each document since the base, so that the next base need not ask the log again.
    """

    def __init__(self, base: GraphView) -> None:
        self._lock = threading.Lock()
        self._view = base
        self._base_position = base.position
        self._since_base: dict[DocumentKey, GraphChange] = {}

    @property
    def view(self) -> GraphView:
        return self._view

    @property
    def base_position(self) -> int:
        """The position of the snapshot the view is built on."""
        return self._base_position

    @property
    def changes_since_base(self) -> int:
        return len(self._since_base)

    def apply(self, changes: Sequence[GraphChange], reached: int) -> bool:
        """Apply changes in offset order, up to and including offset `reached`; True when the view is another one."""
        with self._lock:
            if reached <= self._view.position:
                return False
            newest = {change.key: change for change in changes if change.offset > self._view.position}
            self._view = self._view.with_changes(_pairs(newest), reached)
            self._since_base |= newest
            return True

    def rebase(self, build: Callable[[], GraphView]) -> None:
        """Build a newer base, without holding up `apply`, and catch it up with what was applied meanwhile."""
        base = build()
        with self._lock:
            if base.position <= self._base_position:
                return
            later = {key: change for key, change in self._since_base.items() if change.offset > base.position}
            reached = max(base.position, self._view.position)
            self._view = base.with_changes(_pairs(later), reached) if reached > base.position else base
            self._base_position = base.position
            self._since_base = later


def _pairs(changes: dict[DocumentKey, GraphChange]) -> list[tuple[DocumentKey, Contribution | None]]:
    return [(change.key, change.contribution) for change in changes.values()]


class OpenedGeneration:
    """The parts of a generation as they were opened: `open_generation` makes it, in a thread."""

    def __init__(self, generation: Generation, stores: Stores) -> None:
        self.generation = generation
        self.manifest: Manifest = read_manifest(generation)
        self.reader: TextReader = stores.open_tables(generation)
        self.damaged_graph_files: set[str] = set()
        self.graph_file: GraphFile | None = None
        self.graph = LiveGraph(self._newest_intact_graph(stores))

    def _newest_intact_graph(self, stores: Stores) -> GraphView:
        """A damaged snapshot is skipped for the one before; the tail of the graph topic makes up for it."""
        while True:
            self.graph_file = stores.newest_graph_file(self.generation, self.damaged_graph_files)
            try:
                return stores.build_graph(self.generation, self.graph_file)
            except DamagedStore as error:
                if self.graph_file is None:
                    raise
                _warn_damaged(self.graph_file, error)
                self.damaged_graph_files.add(self.graph_file.name)


class ServedGeneration:
    """Text and graph of one generation. `changed` is called whenever the graph has moved on.

    Used on the event loop; what takes time runs `in_thread`.
    """

    def __init__(
        self,
        opened: OpenedGeneration,
        stores: Stores,
        *,
        kafka: KafkaSettings,
        locate_broker: LocateBroker,
        in_thread: InThread,
        changed: Callable[[], None],
        on_broken: Callable[[str, FollowedRecord, Exception], None],
        skip: Skip,
    ) -> None:
        names = TopicNames(kafka.topic_prefix)
        self.generation = opened.generation
        self.manifest = opened.manifest
        self.reader = opened.reader
        self.graph = opened.graph
        self.graph_file = opened.graph_file
        self._damaged_graph_files = opened.damaged_graph_files
        self.communities: CommunityView | None = None
        self._known_communities: set[str] = set()
        self.graph_topic = names.graph(opened.generation.name)
        self._stores = stores
        self._in_thread = in_thread
        self._changed = changed
        self._on_broken = on_broken
        self._rebasing: asyncio.Task[None] | None = None
        self._next_rebase_at = 0.0
        self.tail = TopicFollower(
            self.graph_topic,
            locate_broker,
            self._first_change,
            self._take_changes,
            record_bytes=kafka.max_graph_record_bytes + MIB,
            skip=skip,
        )
        self._tailing = asyncio.create_task(self.tail.run(), name=f"tail of {self.graph_topic}")

    def snapshot(self) -> Snapshot:
        snapshot = self._stores.snapshot(self.generation, self.reader, self.graph.view)
        return replace(snapshot, communities=self.communities)

    async def follow_communities(self) -> None:
        """Take the newest communities; damaged ones are skipped: the worker makes them again."""
        try:
            newest: CommunityView | None = await self._in_thread(
                self._stores.newest_communities, self.generation, self._known_communities
            )
        except DamagedStore as error:
            if str(error) not in self._known_communities:
                self._known_communities.add(str(error))
                log.warning("damaged communities skipped", reason=str(error))
            return
        except FileNotFoundError:  # replaced just now: the next refresh finds the newer ones
            return
        if newest is not None:
            self.communities, self._known_communities = newest, {newest.name}
            self._changed()
            log.info("communities taken", name=newest.name, communities=len(newest))

    async def follow_snapshot_files(self) -> None:
        """Rebase the graph on the newest snapshot file; the base is built beside what is served.

        Raises what a build begun by an earlier call failed with; the call after that tries again.
        """
        if self._rebasing is not None:
            if not self._rebasing.done():
                return
            ended, self._rebasing = self._rebasing, None
            ended.result()
        if time.monotonic() < self._next_rebase_at:
            return
        newest: GraphFile | None = await self._in_thread(
            self._stores.newest_graph_file, self.generation, self._damaged_graph_files
        )
        if newest is not None and newest != self.graph_file:
            self._rebasing = asyncio.create_task(self._rebase(newest), name="new base of the graph")

    async def stop(self) -> None:
        tasks = [task for task in (self._tailing, self._rebasing) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _rebase(self, file: GraphFile) -> None:
        started = time.perf_counter()
        try:
            await self._in_thread(self.graph.rebase, lambda: self._stores.build_graph(self.generation, file))
        except DamagedStore as error:
            _warn_damaged(file, error)
            self._damaged_graph_files.add(file.name)
            return
        seconds = time.perf_counter() - started
        self._next_rebase_at = time.monotonic() + REBASE_PAUSE_FACTOR * seconds
        self.graph_file = file
        self._changed()
        await self._in_thread(trim_memory)  # reading the file took several times what is kept of it
        log.info(
            "graph rebased on new snapshot",
            file=file.name,
            position=file.position,
            seconds=round(seconds, 3),
            later_changes=self.graph.changes_since_base,
        )

    def _first_change(self, spans: Mapping[int, Span]) -> Mapping[int, int]:
        if len(spans) != 1:
            raise LogUnavailable(f"{self.graph_topic} has {len(spans)} partitions; it must have one to keep its order")
        following = self.graph.view.position + 1
        span = spans[0]
        if following > span.end:
            raise LogUnavailable(
                f"{self.graph_topic} ends at {span.end} but the graph has applied {following - 1}: "
                "this is another cluster, or its data is gone; use the right one, or rebuild"
            )
        return {0: max(following, span.beginning)}

    async def _take_changes(self, records: Sequence[FollowedRecord]) -> None:
        read: list[tuple[FollowedRecord, GraphChange]] = []
        for record in records:
            try:
                read.append((record, _change(record)))
            except (ValueError, MalformedEvent) as error:
                self._on_broken(self.graph_topic, record, error)
        if await self._apply(read, records[-1].offset):
            self._changed()

    async def _apply(self, read: Sequence[tuple[FollowedRecord, GraphChange]], reached: int) -> bool:
        """Whether the graph is another one. Halves where the data are to blame, so that a record of which no graph can
        be built is skipped alone, as the worker makes a dead letter of it."""
        try:
            moved: bool = await self._in_thread(self.graph.apply, [change for _, change in read], reached)
        except _DATA_ERRORS as error:
            if not read:
                raise
            if len(read) > 1:
                half = len(read) // 2
                first = await self._apply(read[:half], read[half - 1][0].offset)
                return await self._apply(read[half:], reached) or first
            self._on_broken(self.graph_topic, read[0][0], error)
            return await self._apply([], reached)
        return moved


def _warn_damaged(file: GraphFile, error: DamagedStore) -> None:
    log.warning("damaged graph snapshot skipped", file=file.name, reason=str(error))


def _change(record: FollowedRecord) -> GraphChange:
    """Raises ValueError or MalformedEvent for a record that is no contribution of the document in its key."""
    key = DocumentKey.parse((record.key or b"").decode())
    contribution = None if record.value is None else decode_contribution(record.value)
    if contribution is not None and (contribution.collection, contribution.document_id) != key:
        raise MalformedEvent("key_mismatch", "The contribution is not that of the document in the record's key.")
    return GraphChange(record.offset, key, contribution)
