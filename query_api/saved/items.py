"""The saved items of all callers, folded from their topic: what is written is there once it was read back.

All of it is in memory, as JSON, so that it is read without Kafka too. What a caller may keep is therefore limited.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec
from aiokafka.errors import KafkaError

from kafka_client.async_clients import LocateBroker
from kafka_client.topic_offsets import LogUnavailable, Span
from kafka_client.unreadable_batches import skip_all
from query_api.errors import AnotherLog, ApiProblem, log_unavailable
from query_api.index.follower import CATCH_UP_SECONDS, FoldedTopic, FollowedRecord
from query_api.ingest.producer import BrokerUnavailable, LogWriter, OutgoingRecord, RecordRefused
from schemas.cursors import read_cursor, write_cursor
from schemas.errors import MalformedEvent
from schemas.saved import SavedKey, SavedKind
from schemas.settings import MIB

MOST_BYTES = 256 * MIB  # of one caller: some 15,000 conversations of ten messages
RECORD_BYTES = 400  # that a record takes in memory beside its value
RECORDS_AT_ONCE = 1_000  # of which the confirmation is waited for

Json = Mapping[str, Any]


class ItemGone(ApiProblem):
    """There is no such item of this caller, or it was deleted meanwhile: nothing is left of what was written."""

    def __init__(self, kind: str, item_id: str) -> None:
        why = "it was deleted, or is another caller's."
        super().__init__(404, "Not found", f"There is no {kind} {item_id[:80]!r} of yours: {why}")


class SavedRecord(NamedTuple):
    """`at_ms` is when it was written, in milliseconds since 1970."""

    offset: int
    at_ms: int
    body: bytes

    @property
    def value(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.body)
        return found

    @property
    def bytes(self) -> int:
        return len(self.body) + RECORD_BYTES


@dataclass(eq=False)
class SavedItem:
    """An item as it is now; it changes with what is read. `parts` are by name, the one last written behind."""

    id: str
    head: SavedRecord | None = None
    parts: dict[str, SavedRecord] = field(default_factory=dict)
    changed_ms: int = 0
    changed_at: int = -1
    """The offset of its newest record."""

    @property
    def bytes(self) -> int:
        return sum(record.bytes for record in [*filter(None, [self.head]), *self.parts.values()])


class SavedItems(FoldedTopic):
    """On the event loop only. `end_now` gives where a topic ends now, or raises one of those that
    `LagMonitor.end_now` does.

    Every read raises ApiProblem 503 until the topic was read once. Every write is confirmed and read back, and raises
    ApiProblem: 503 where Kafka is away, 507 where the caller keeps `MOST_BYTES` already. An item is put once, and then
    changes by its parts: so nothing that another deletes comes back by what one writes to it meanwhile.
    """

    def __init__(
        self, topic: str, locate_broker: LocateBroker, writer: LogWriter, end_now: Callable[[str], Awaitable[int]]
    ) -> None:
        super().__init__(topic, locate_broker, skip_all)
        self.kept_bytes: Counter[str] = Counter()
        """In memory, by caller."""
        self._topic, self._writer, self._end_now = topic, writer, end_now
        self._shelves: dict[tuple[str, str], dict[str, SavedItem]] = {}  # items by id, the one last changed behind

    def get(self, owner: str, kind: SavedKind, item_id: str) -> SavedItem | None:
        self._require_read()
        found = self._shelves.get((owner, kind), {}).get(item_id)
        return None if found is None or found.head is None else found

    def all(self, owner: str, kind: SavedKind) -> Sequence[SavedItem]:
        """The items, the one last changed behind."""
        self._require_read()
        return [item for item in self._shelves.get((owner, kind), {}).values() if item.head is not None]

    def list(
        self, owner: str, kind: SavedKind, limit: int, cursor: str | None = None, ids: Container[str] | None = None
    ) -> tuple[Sequence[SavedItem], str | None]:
        """The items last changed first, of these ids where some are given, and the cursor of the next page. Raises
        MalformedCursor."""
        below = None if cursor is None else read_cursor(cursor, int, f"saved items of the kind {kind}")
        found: list[SavedItem] = []
        for item in reversed(self.all(owner, kind)):
            if (below is not None and item.changed_at >= below) or (ids is not None and item.id not in ids):
                continue
            if len(found) == limit:
                return found, write_cursor(found[-1].changed_at)
            found.append(item)
        return found, None

    async def find(self, owner: str, kind: SavedKind, item_id: str) -> SavedItem:
        """The item, also where another process has just put it. Raises ItemGone."""
        await self.wait_until_reached()
        found = self.get(owner, kind, item_id)
        if found is None:
            with suppress(KafkaError, LogUnavailable, TimeoutError, OSError):
                await self.wait_for(await self._end_now(self._topic) - 1, CATCH_UP_SECONDS)
            found = self.get(owner, kind, item_id)
        if found is None:
            raise ItemGone(kind, item_id)
        return found

    async def put(self, owner: str, kind: SavedKind, item_id: str, value: Json, part: str | None = None) -> None:
        """The item, or a part of one that is there. Raises ItemGone for a part of none."""
        await self.put_all(owner, kind, item_id, {part: value})

    async def put_all(self, owner: str, kind: SavedKind, item_id: str, values: Mapping[str | None, Json]) -> None:
        """The same for several records, next to each other in the log unless another writes at that moment."""
        await self.wait_until_reached()
        before = self.get(owner, kind, item_id)
        if before is None and None not in values:
            raise ItemGone(kind, item_id)
        bodies = {SavedKey(owner, kind, item_id, part): msgspec.json.encode(value) for part, value in values.items()}
        self.check_room(owner, sum(len(body) + RECORD_BYTES for body in bodies.values()))
        await self._publish(bodies)
        after = self.get(owner, kind, item_id)
        if after is None or (before is not None and after is not before):
            await self._publish(dict.fromkeys(bodies))
            raise ItemGone(kind, item_id)

    async def delete(self, owner: str, kind: SavedKind, item_id: str) -> None:
        """With all parts. Raises ItemGone."""
        await self._erase(owner, kind, await self.find(owner, kind, item_id))

    def check_room(self, owner: str, more: int = 0) -> None:
        """Raises ApiProblem 507 where the caller would keep too much."""
        if self.kept_bytes[owner] + more > MOST_BYTES:
            raise ApiProblem(
                507,
                "No room to save",
                f"What this caller has saved takes {MOST_BYTES // MIB} MiB, which is all that there is room for. "
                "Delete some of it: conversations that nobody needs, for example.",
                members={"reason": "saved_full"},
            )

    async def run(self) -> None:
        """Follow the topic. Parts that a process left without their item, as it ended in the middle, are deleted."""
        sweeping = asyncio.create_task(self._sweep(), name="saved items")
        try:
            await super().run()
        finally:
            sweeping.cancel()

    async def _sweep(self) -> None:
        while not await self.wait_until_reached():
            pass
        left = [(*at, item) for at, shelf in self._shelves.items() for item in shelf.values() if item.head is None]
        for owner, kind, item in left:
            with suppress(ApiProblem, AnotherLog):  # the next process tries again
                await self._erase(owner, kind, item)

    async def _erase(self, owner: str, kind: str, item: SavedItem) -> None:
        """The item first: from then on it is gone, whatever becomes of its parts."""
        keys = [SavedKey(owner, kind, item.id, part) for part in (None, *item.parts)]
        for first in range(0, len(keys), RECORDS_AT_ONCE):
            await self._publish(dict.fromkeys(keys[first : first + RECORDS_AT_ONCE]))

    async def _publish(self, bodies: Mapping[SavedKey, bytes | None]) -> None:
        """Confirmed, and read back. Raises ApiProblem."""
        records = [OutgoingRecord(key.encode(), body, partition=0) for key, body in bodies.items()]
        try:
            positions = await self._writer.publish(self._topic, records)
            await self.read_to(positions[-1].offset + 1)
        except (BrokerUnavailable, LogUnavailable) as error:
            raise log_unavailable(f"{error}. Send it again later.") from error
        except RecordRefused as error:
            raise ApiProblem(413, "Too large to save", str(error)) from error

    def _require_read(self) -> None:
        """Raises ApiProblem 503."""
        if not self.was_reached:
            why = f": {self.problem}" if self.problem else ""
            raise log_unavailable(f"What was saved has not been read yet{why}. Ask again in a moment.")

    def _begin(self, spans: Mapping[int, Span]) -> Mapping[int, int]:
        return {partition: max(first, self.reached + 1) for partition, first in super()._begin(spans).items()}

    def _forget(self) -> None:
        self._shelves.clear()
        self.kept_bytes.clear()

    async def _take(self, records: Sequence[FollowedRecord]) -> None:
        for record in records:
            if record.offset > self.reached:
                self._take_record(record)
        self._reach(records[-1].offset)

    def _take_record(self, record: FollowedRecord) -> None:
        """What is no saved item, as another may write to the topic, is passed over."""
        try:
            key = SavedKey.parse(record.key)
            if record.value is not None:
                msgspec.json.decode(record.value, type=dict[str, msgspec.Raw])
        except (MalformedEvent, msgspec.DecodeError):
            return
        shelf = self._shelves.setdefault((key.owner, key.kind), {})
        item = shelf.pop(key.id, None)
        if record.value is None and key.part is None:
            self.kept_bytes[key.owner] -= 0 if item is None else item.bytes
            return
        if item is None:
            if record.value is None or (self.was_reached and key.part is not None):  # of an item that was deleted
                return
            item = SavedItem(key.id)
        shelf[key.id] = item
        before = item.head if key.part is None else item.parts.pop(key.part, None)
        after = None if record.value is None else SavedRecord(record.offset, record.timestamp_ms, record.value)
        if key.part is None:
            item.head = after
        elif after is not None:
            item.parts[key.part] = after
        item.changed_at, item.changed_ms = record.offset, record.timestamp_ms
        self.kept_bytes[key.owner] += (after.bytes if after else 0) - (before.bytes if before else 0)
