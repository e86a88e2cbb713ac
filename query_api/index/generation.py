"""One generation, open for reading: its text and its graph, which follow the contributions topic."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import structlog

from indexer.changes import CommitReader
from indexer.errors import DamagedStore, TransientStoreError
from indexer.generation_folders import Generation, Manifest, read_manifest
from indexer.runtime.resources import trim_memory
from kafka_client.async_clients import LocateBroker
from kafka_client.topic_offsets import LogUnavailable, Span
from kafka_client.unreadable_batches import Skip
from query_api.index.community_view import CommunityView
from query_api.index.follower import FollowedRecord, TopicFollower
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from query_api.index.store_opening import GraphFile, Stores
from query_api.index.text.text_snapshot import TextReader
from schemas.graph_delta import Contribution
from schemas.ids import DocumentKey
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames

log = structlog.get_logger(__name__)


_DATA_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError)
LONGEST_PIN_SECONDS = 30.0  # newer tables of the same content wait so long, or for a commit
REBASE_PAUSE_FACTOR = 10  # a tenth of one core at most goes into new bases; the overlay keeps the graph fresh meanwhile


InThread = Callable[..., Awaitable[Any]]
"""Runs blocking work in a thread and waits for its result."""


class GraphChange(NamedTuple):
    """A document's whole contribution, or None when it is withdrawn, and the offset of the mark of its commit."""

    offset: int
    key: DocumentKey
    contribution: Contribution | None


class LiveGraph:
    """The newest graph view: a base built from a snapshot, and the changes that commits made after it. `apply` and
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
        """A damaged snapshot is skipped for the one before; the contributions topic makes up for it."""
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
    """Text and graph of one generation. `changed` is called whenever they have moved on, which they do together.

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
        opened_for: int | None = None,
    ) -> None:
        """Where the topic begins after what was opened, it has to be opened again, `opened_for` that beginning: what
        was before it is then in what was opened, or nowhere."""
        names = TopicNames(kafka.topic_prefix)
        self.begins_at: int | None = None
        """Where the topic begins by now, if that is after what is shown: the commits between are gone."""
        self._opened_for = opened_for
        self.generation = opened.generation
        self.manifest = opened.manifest
        self.reader = opened.reader
        self.graph = opened.graph
        self.graph_file = opened.graph_file
        self._damaged_graph_files = opened.damaged_graph_files
        self.communities: CommunityView | None = None
        self._known_communities: set[str] = set()
        self.topic = names.contributions(opened.generation.name)
        self._stores = stores
        self._in_thread = in_thread
        self._changed = changed
        self._on_broken = on_broken
        self._commits = self._new_reader()
        self._shown = self.reader.snapshot(), self.graph.view
        self._shown_at = time.monotonic()
        self._rebasing: asyncio.Task[None] | None = None
        self._next_rebase_at = 0.0
        self.tail = TopicFollower(
            self.topic, locate_broker, self._first_commit, self._take, record_bytes=kafka.max_record_bytes, skip=skip
        )
        self._tailing = asyncio.create_task(self.tail.run(), name=f"tail of {self.topic}")

    def snapshot(self) -> Snapshot:
        """Text and graph of the same commit."""
        snapshot = self._stores.snapshot(self.generation, *self._shown)
        return replace(snapshot, communities=self.communities)

    async def refresh(self) -> None:
        """Look for newer tables. Text that no commit has shown here is taken from them only where commits cannot be
        read. Raises what TextReader.refresh does."""
        await self._in_thread(partial(self.reader.refresh, follows=self.tail.problem is None))
        now, shown = self.reader.snapshot(), self._shown[0]
        is_other = now.index is not shown.index or now.positions != shown.positions
        if now is not shown and (is_other or time.monotonic() - self._shown_at > LONGEST_PIN_SECONDS):
            self._show()

    def _show(self) -> None:
        self._shown = self.reader.snapshot(), self.graph.view
        self._shown_at = time.monotonic()
        self._changed()

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
        self._show()
        await self._in_thread(trim_memory)  # reading the file took several times what is kept of it
        log.info(
            "graph rebased on new snapshot",
            file=file.name,
            position=file.position,
            seconds=round(seconds, 3),
            later_changes=self.graph.changes_since_base,
        )

    def _new_reader(self) -> CommitReader[FollowedRecord]:
        return CommitReader(partial(self._on_broken, self.topic))

    def _first_commit(self, spans: Mapping[int, Span]) -> Mapping[int, int]:
        if len(spans) != 1:
            raise LogUnavailable(f"{self.topic} has {len(spans)} partitions; it must have one to keep its order")
        following = min(self.graph.view.position, self.reader.snapshot().offset) + 1
        span = spans[0]
        if following > span.end:
            raise LogUnavailable(
                f"{self.topic} ends at {span.end} but what is shown has applied {following - 1}: "
                "this is another cluster, or its data is gone; use the right one, or rebuild"
            )
        if following < span.beginning and span.beginning != self._opened_for:
            self.begins_at = span.beginning
            raise LogUnavailable(f"{self.topic} begins at {span.beginning} by now; the stores are opened again")
        self._commits = self._new_reader()
        return {0: max(following, span.beginning)}

    async def _take(self, records: Sequence[FollowedRecord]) -> None:
        """Apply the commits that these records end, as far as they are not applied: all become visible together.

        Raises LogUnavailable where the text cannot go on: they are then read again.
        """
        commits = [commit for record in records if (commit := self._commits.add(record)) is not None]
        if not commits:
            return
        try:
            await self._in_thread(self.reader.apply, commits)
        except (*_DATA_ERRORS, TransientStoreError, DamagedStore) as error:
            raise LogUnavailable(
                f"the text does not take what was committed: {error or type(error).__name__}"
            ) from error
        changes = [GraphChange(each.offset, *change) for each in commits for change in each.in_graph]
        sources = {(each.offset, key): record for each in commits for key, record in each.records.items()}
        if changes:  # else the graph is the same at a later position
            for change, reason in await self._in_thread(self._apply, changes, changes[-1].offset):
                self._on_broken(self.topic, sources[change.offset, change.key], reason)
        self._show()

    def _apply(self, changes: Sequence[GraphChange], reached: int) -> list[tuple[GraphChange, Exception]]:
        """The changes of which no graph can be built: these alone are left out, and the worker makes dead letters of
        them."""
        try:
            self.graph.apply(changes, reached)
        except _DATA_ERRORS:
            broken = [(change, error) for change in changes if (error := _error_of(change)) is not None]
            if not broken:
                raise
            left_out = [change for change, _ in broken]
            self.graph.apply([change for change in changes if change not in left_out], reached)
            return broken
        return []


def _warn_damaged(file: GraphFile, error: DamagedStore) -> None:
    log.warning("damaged graph snapshot skipped", file=file.name, reason=str(error))


def _error_of(change: GraphChange) -> Exception | None:
    try:
        GraphView.empty().with_changes(_pairs({change.key: change}), change.offset)
    except _DATA_ERRORS as error:
        return error
    return None
