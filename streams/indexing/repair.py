"""Repairs: documents written again from the log, and the graph made again from its topic, as ordered."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import structlog

from indexer.errors import DamagedStore
from schemas.curation import encode_choice
from schemas.errors import MalformedEvent
from schemas.ids import DocumentKey
from schemas.repairs import Repair, repair_key
from streams.errors import RestartNeeded, StartAgain
from streams.indexing.commit import DocumentIndexer, Rewritten
from streams.kafka.partition_reader import AWAY, PartitionReader
from streams.kafka.producer import ConfirmedProducer
from streams.kafka.records import SourceRecord
from streams.runtime.retry import Retrier, bisect

BATCH_DOCUMENTS = 50
POLL_SECONDS = 1.0
_FATAL = (RestartNeeded, DamagedStore, *AWAY)


class RepairOrders(Protocol):
    """The orders that are not done, by id."""

    @property
    def repairs(self) -> Mapping[str, Repair]: ...


class Repairer:
    """Carries out the orders about one generation. `commit_lock` is the documents agent's.

    `begin_graph` has the next start of the worker make the graph again; `graph_is_current` tells whether it has what
    the tables have, and `make_snapshot` publishes it.
    """

    def __init__(
        self,
        *,
        generation: str,
        orders: RepairOrders,
        partitions: Sequence[PartitionReader],
        indexer: DocumentIndexer,
        begin_graph: Callable[[], None],
        graph_is_current: Callable[[], Awaitable[bool]],
        make_snapshot: Callable[[], Awaitable[None]],
        producer: ConfirmedProducer,
        retrier: Retrier,
        commit_lock: asyncio.Lock,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._generation = generation
        self._orders = orders
        self._partitions = partitions
        self._indexer = indexer
        self._begin_graph = begin_graph
        self._graph_is_current = graph_is_current
        self._make_snapshot = make_snapshot
        self._producer = producer
        self._retrier = retrier
        self._commit_lock = commit_lock
        self._sleep = sleep
        self._done: set[str] = set()
        self._log = structlog.get_logger("thalweg.worker")

    async def run(self) -> None:
        """Carry out orders until cancelled. Raises StartAgain where the graph has to be made again."""
        while True:
            await self.process_orders()
            await self._sleep(POLL_SECONDS)

    async def process_orders(self) -> None:
        """One that is interrupted is repeated from its start, and does no harm."""
        for name, repair in self._orders.repairs.items():
            if repair.generation == self._generation and name not in self._done:
                await self._retrier.retry_forever(lambda n=name, r=repair: self._carry_out(n, r))  # type: ignore[misc]
                self._done.add(name)

    async def _carry_out(self, name: str, repair: Repair) -> None:
        """1. publish that it is begun; where the graph is to be made again, start again to do so; 2. the documents;
        3. the graph; 4. publish that it is done: then, and only then, the order is removed."""
        if repair.state == "ordered":
            if repair.graph:
                await asyncio.to_thread(self._begin_graph)
            repair = repair.model_copy(update={"state": "running"})
            await self._publish(name, repair)  # 1
            if repair.graph:
                raise StartAgain(f"The graph of {self._generation} is made again from its topic.")
        wanted = {key: str(key).encode() for key in map(_key, repair.documents) if key is not None}
        found, read_to = await self._records(wanted)
        is_whole = all([await partition.beginning() == 0 for partition in self._partitions])
        keys = [key for key in wanted if is_whole or found[key]]  # of a log cut short, nothing is deleted
        repaired, kept, failed = 0, len(wanted) - len(keys), 0

        async def rewrite(some: Sequence[DocumentKey]) -> list[Rewritten | None]:
            async with self._commit_lock:
                await self._catch_up(wanted, found, read_to)
                return [await self._indexer.rewrite({key: found[key] for key in some})]

        async def leave(key: DocumentKey, error: Exception) -> None:
            self._log.error("a document cannot be repaired", document=str(key), error=type(error).__name__)

        for start in range(0, len(keys), BATCH_DOCUMENTS):  # 2
            batch = keys[start : start + BATCH_DOCUMENTS]
            for each in await bisect(batch, rewrite, leave, fatal=_FATAL, name="repair"):
                if each is None:
                    failed += 1
                else:
                    repaired, kept = repaired + each.documents, kept + each.kept
            repair = repair.model_copy(update={"repaired": repaired, "kept": kept, "failed": failed})
            await self._publish(name, repair)
        repair = repair.model_copy(update={"repaired": repaired, "kept": kept, "failed": failed})
        while not await self._graph_is_current():  # 3
            await self._sleep(POLL_SECONDS)
        await self._make_snapshot()
        await self._publish(name, repair.model_copy(update={"state": "done"}))  # 4
        self._log.warning("repaired", order=name, documents=repaired, kept=kept, failed=failed, graph=repair.graph)

    async def _records(
        self, wanted: Mapping[DocumentKey, bytes]
    ) -> tuple[dict[DocumentKey, list[SourceRecord]], list[int]]:
        """The documents' records, and up to where each partition was read."""
        found: dict[DocumentKey, list[SourceRecord]] = {key: [] for key in wanted}
        read_to = [0] * len(self._partitions)
        if wanted:
            for number in range(len(self._partitions)):
                await self._read(number, wanted, found, read_to)
        return found, read_to

    async def _catch_up(
        self,
        wanted: Mapping[DocumentKey, bytes],
        found: dict[DocumentKey, list[SourceRecord]],
        read_to: list[int],
    ) -> None:
        """Read what was committed since; nothing is committed meanwhile."""
        for number, reached in self._indexer.reached.items():
            if number < len(read_to) and reached.offset >= read_to[number]:
                await self._read(number, wanted, found, read_to)

    async def _read(
        self,
        number: int,
        wanted: Mapping[DocumentKey, bytes],
        found: dict[DocumentKey, list[SourceRecord]],
        read_to: list[int],
    ) -> None:
        names = {name: key for key, name in wanted.items()}
        start = read_to[number]
        end = await self._partitions[number].end()
        async for record in self._partitions[number].records(start):
            key = names.get(record.key or b"")
            if key is not None and record.offset < end:
                found[key].append(record)
        read_to[number] = end

    async def _publish(self, name: str, repair: Repair) -> None:
        await self._producer.send_curation(repair_key(name), encode_choice(repair))


def _key(name: str) -> DocumentKey | None:
    try:
        return DocumentKey.parse(name)
    except MalformedEvent:
        return None
