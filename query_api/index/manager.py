"""The current snapshot of the stores: opened, refreshed, waited for.

One immutable snapshot at a time, text and graph, replaced as a whole with each commit that the contributions topic
brings. What is on disk is looked at every two seconds: the tables and the newest file of the graph, on which text and
graph are built, so that memory need not hold what they have by then.
A switch of `CURRENT` opens the other generation beside this one; it takes its place once it shows all that is served,
so that positions never go back.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import structlog

from indexer.errors import DamagedStore, OtherFormat
from indexer.generation_folders import Generation, Manifest, current_generation, read_manifest
from kafka_client.async_clients import LocateBroker
from kafka_client.topic_offsets import Span
from kafka_client.unreadable_batches import Skip, skip_all, skip_none
from query_api.index.curation_follower import CurationFollower
from query_api.index.document_status import IndexFreshness, RecentReceipts
from query_api.index.follower import FollowedRecord, TopicFollower
from query_api.index.generation import OpenedGeneration, ServedGeneration
from query_api.index.search_snapshot import Snapshot
from query_api.index.store_opening import IntegrityMonitor, Stores
from query_api.service_metrics import ServiceMetrics
from query_api.settings import ServiceSettings
from schemas.ids import format_positions
from schemas.receipts import Receipt, decode_receipt
from schemas.topics import TopicNames

log = structlog.get_logger(__name__)

REFRESH_SECONDS = 2.0  # between two looks for newer tables and graph snapshots on disk
WAITED_FOR_REFRESH_SECONDS = 0.1  # while commits cannot be read, or another generation catches up
RECEIPTS_PER_PARTITION = 1_000


Prepare = Callable[[str, Manifest], Awaitable[None]]


class NotYetIndexed(Exception):
    """The stores have not reached the asked position in time; `reached` is the token of what they have."""

    def __init__(self, reached: str, message: str) -> None:
        super().__init__(message)
        self.reached = reached


class ServiceStopping(Exception):
    """The service is being stopped: nothing newer will come here. Ask again once it runs, or ask another."""

    def __init__(self) -> None:
        super().__init__(
            "The service is being stopped, so it waits for `after` no longer. Ask again once it runs: the token stays "
            "good."
        )


@dataclass(eq=False)
class SnapshotManager:
    """Keeps `current` the newest consistent snapshot. Used on the event loop; what takes time runs in its threads.
    `skip` says which unreadable batches of contributions to skip; receipts do without theirs. `prepare` is awaited,
    with the name of the live generation and the manifest of another, before that takes its place."""

    settings: ServiceSettings
    stores: Stores
    locate_broker: LocateBroker
    metrics: ServiceMetrics
    skip: Skip = skip_none
    prepare: Prepare | None = None
    refresh_seconds: float = REFRESH_SECONDS

    def __post_init__(self) -> None:
        self.current: Snapshot | None = None
        self.served: ServedGeneration | None = None
        self._next: ServedGeneration | None = None  # catching up with `served`, whose place it takes
        self.problem: str | None = "The stores are being opened."
        self.receipts = RecentReceipts()
        self.on_receipt: Callable[[Receipt], None] = lambda _: None
        """Called with each that comes of the generation that is served."""
        self._data_dir = self.settings.storage.data_dir
        self._kafka = self.settings.kafka
        self.freshness = IndexFreshness(self.metrics.index_freshness.observe)
        self._topics = TopicNames(self.settings.kafka.topic_prefix)
        self.damage = IntegrityMonitor(self.stores, lambda: None if self.served is None else self.served.generation)
        self._threads = ThreadPoolExecutor(3, thread_name_prefix="snapshot")
        self._checked_at = time.monotonic()
        self._news = asyncio.Event()
        self._swapped = asyncio.Event()
        self.curation = CurationFollower(
            self._topics.curation, self.locate_broker, self._publish_again, self._on_repaired, self.skip
        )
        self._reopens = False
        self._opened_for: int | None = None
        self._changed = asyncio.Event()
        self.changes = 0
        self._waiters = 0
        self._stopping = False
        self.receipts_tail = TopicFollower(
            self._topics.indexed,
            self.locate_broker,
            _first_receipts,
            self._take_receipts,
            record_bytes=self.settings.kafka.max_record_bytes,
            skip=skip_all,
        )

    @property
    def age_seconds(self) -> float:
        """Since the snapshot was last known to show all that the tables hold."""
        return time.monotonic() - self._checked_at

    @property
    def catching_up(self) -> str | None:
        """A sentence while the current generation shows less than the one that is served before it; else None."""
        if self._next is None or self.served is None:
            return None
        return (
            f"Generation {self._next.generation.name} is live and catches up with what is served; searches are "
            f"answered from {self.served.generation.name} until then."
        )

    def applied(self) -> dict[str, Mapping[int, int]]:
        """The last offsets that searches show, of each topic that is followed."""
        snapshot, served = self.current, self.served
        applied: dict[str, Mapping[int, int]] = {self._topics.documents: {} if snapshot is None else snapshot.reached}
        if snapshot is not None and served is not None:
            applied[served.topic] = {0: snapshot.graph.position}
        return applied

    async def run(self) -> None:
        """Open what there is, refresh it, follow `CURRENT`. A failure is in `problem` for as long as it lasts."""
        tailing = asyncio.create_task(self.receipts_tail.run(), name="tail of receipts")
        watching = asyncio.create_task(self.damage.run(), name="damage watch")
        curating = asyncio.create_task(self.curation.run(), name="tail of curation")
        try:
            while True:
                try:
                    await self._refresh()
                    self.problem = None
                except (FileNotFoundError, DamagedStore, OtherFormat) as error:
                    self._note(str(error), error=None)
                except Exception as error:  # noqa: BLE001 -- edge of a background task: no store's error ends the service
                    self._note(f"The stores cannot be read: {error or type(error).__name__}", error)
                await self._until_next_refresh()
        finally:
            tailing.cancel()
            watching.cancel()
            curating.cancel()
            for opened in (self.served, self._next):
                if opened is not None:
                    await opened.stop()
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def wait_for(self, asked: Mapping[int, int], *, seconds: float) -> Snapshot:
        """A snapshot that shows every position of `asked`, in text and graph.

        Raises NotYetIndexed when there is none after `seconds`, ServiceStopping when the service is stopped meanwhile.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        self._waiters += 1
        try:
            while True:
                swapped = self._swapped
                if self.current is not None and covers(self.current, asked):
                    return self.current
                if self._stopping:
                    raise ServiceStopping
                if not self._follows:
                    self._news.set()
                async with asyncio.timeout_at(deadline):
                    await swapped.wait()
        except TimeoutError:
            reached = reached_token(self.current)
            raise NotYetIndexed(
                reached,
                f"After {seconds:g} s the index has not reached {format_positions(asked)}; "
                f"reached: {reached or 'nothing'}.",
            ) from None
        finally:
            self._waiters -= 1

    def stop_waiting(self) -> None:
        """The service is being stopped: waiting callers get ServiceStopping now, while the answer can still be sent."""
        self._stopping = True
        self._wake()

    async def change(self, since: int, seconds: float) -> None:
        """Wait, at most so long, until `changes` counts more than `since`: newer snapshots, and receipts that came."""
        self._waiters += 1
        try:
            async with asyncio.timeout(seconds):
                while self.changes <= since:
                    await self._changed.wait()
        except TimeoutError:
            return
        finally:
            self._waiters -= 1

    def _notify(self) -> None:
        self.changes += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _refresh(self) -> None:
        """Open the current generation, take its newest tables, rebase its graph on the newest file."""
        generation = await self._in_thread(current_generation, self._data_dir)
        if generation is None:
            raise FileNotFoundError(f"There is no index in {self._data_dir} yet: start the worker on it.")
        for opened in (self.served, self._next):
            if opened is not None and opened.begins_at is not None:
                self._reopens, self._opened_for = True, opened.begins_at
        if self._next is not None and (
            generation.name != self._next.generation.name or self._next.begins_at is not None
        ):
            abandoned, self._next = self._next, None
            await abandoned.stop()
        served = self.served
        if served is not None and await self._in_thread(_goes_on_with_another_topic, served.manifest, generation):
            self._reopens = True
        if served is None or self._next or self._reopens or served.generation.name != generation.name:
            self._reopens = False
            served = await self._switch_to(generation)
        self._require_intact_index()
        began = time.monotonic()
        await served.refresh()
        self._checked_at = began
        await served.follow_snapshot_files()
        await served.follow_communities()

    def _require_intact_index(self) -> None:
        """Damaged tables are read no further; what is in memory was checked when it was read, and is served on."""
        if not self.damage.index_damage():
            return
        if self.current is not None and not self.current.in_memory:
            self.current = None
            raise DamagedStore(self.damage.sentence() or "")
        raise DamagedStore("The tables are damaged on disk; searches continue with what was read from them before.")

    async def _switch_to(self, generation: Generation) -> ServedGeneration:
        """Open another generation, and serve it once it shows all that is served; the one that is served now."""
        if self._next is None:
            self._next = await self._open(generation)
        else:
            await self._next.refresh()
        before, following = self.served, self._next
        if before is not None and not self._shows_what_is_served(following):
            return before
        if before is not None and self.prepare is not None:
            await self.prepare(before.generation.name, following.manifest)
        self.served, self._next = following, None
        self.freshness.reset()
        self._publish(following)
        self.problem = None
        log.info("serving generation", generation=generation.name, graph_position=following.graph.view.position)
        if before is not None:
            await before.stop()
        return following

    async def _open(self, generation: Generation) -> ServedGeneration:
        opened = await self._in_thread(lambda: OpenedGeneration(generation, self.stores))
        served = ServedGeneration(
            opened,
            self.stores,
            kafka=self._kafka,
            locate_broker=self.locate_broker,
            in_thread=self._in_thread,
            changed=lambda: self._publish(served),
            on_broken=self._on_broken,
            skip=self.skip,
            opened_for=self._opened_for,
        )
        return served

    def _shows_what_is_served(self, other: ServedGeneration) -> bool:
        """Also where its positions are of another log, and say nothing."""
        if self.current is None or self.served is None:
            return True
        logs = [each.manifest.log.documents if each.manifest.log else "" for each in (self.served, other)]
        return logs[0] != logs[1] or covers(other.snapshot(), self.current.reached)

    def _publish(self, served: ServedGeneration) -> None:
        """Make the newest text and graph the current snapshot, and wake those who wait."""
        if served is self._next:
            self._news.set()
        if served is not self.served:
            return
        self.current = replace(served.snapshot(), linking=self.curation.linking, curation=self.curation.state)
        self.freshness.add_snapshot(self.current.reached)
        self._wake()

    def _publish_again(self) -> None:
        if self.served is not None:
            self._publish(self.served)

    def _on_repaired(self, generation: str) -> None:
        """What is in memory was read before."""
        if self.served is not None and self.served.generation.name == generation:
            self._reopens = True
            self._news.set()

    def _wake(self) -> None:
        swapped, self._swapped = self._swapped, asyncio.Event()
        swapped.set()
        self._notify()

    @property
    def _follows(self) -> bool:
        """Whether commits come in automatically, and to what is served."""
        return self.served is not None and self.served.tail.problem is None and self._next is None

    async def _until_next_refresh(self) -> None:
        seconds = self.refresh_seconds
        if self._waiters and not self._follows:
            seconds = min(seconds, WAITED_FOR_REFRESH_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        self._news.clear()

    async def _take_receipts(self, records: Sequence[FollowedRecord]) -> None:
        for record in records:
            try:
                receipt = decode_receipt(record.value or b"")
            except ValueError as error:
                self._on_broken(self._topics.indexed, record, error)
                continue
            if self.served is None or receipt.generation == self.served.generation.name:
                self.receipts.add(receipt)
                self.freshness.add_receipt(receipt)
                self.on_receipt(receipt)
        self._notify()

    def _on_broken(self, topic: str, record: FollowedRecord, error: Exception) -> None:
        self.metrics.broken_records.labels(topic=topic).inc()
        log.error(
            "record passed over", topic=topic, partition=record.partition, offset=record.offset, reason=str(error)[:200]
        )

    def _note(self, problem: str, error: Exception | None) -> None:
        if problem != self.problem:
            log.warning("no newer snapshot", problem=problem, exc_info=error)
        self.problem = problem

    async def _in_thread(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)


def _goes_on_with_another_topic(opened: Manifest, now: Generation) -> bool:
    """Whether the generation was opened while it had another contributions topic."""
    if opened.generation != now.name or opened.log is None:
        return False
    newest = read_manifest(now).log
    return newest is not None and bool(opened.log.graph) and opened.log.graph != newest.graph


def _first_receipts(spans: Mapping[int, Span]) -> Mapping[int, int]:
    """The last receipts of each partition are read again: they say which records became dead letters."""
    return {partition: max(span.beginning, span.end - RECEIPTS_PER_PARTITION) for partition, span in spans.items()}


def covers(snapshot: Snapshot, asked: Mapping[int, int]) -> bool:
    """Whether the snapshot shows every asked position (partition → offset), in text and graph: after a start the graph
    may be some commits behind for a moment."""
    positions = snapshot.text.positions
    for partition, offset in asked.items():
        stored = positions.get(partition)
        if stored is None or stored.offset < offset:
            return False
        if snapshot.graph.position < stored.mark:
            return False
    return True


def reached_token(snapshot: Snapshot | None) -> str:
    """The token of what the text stores show; empty for nothing."""
    if snapshot is None:
        return ""
    return format_positions(snapshot.reached)
