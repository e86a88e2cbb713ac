"""Repairs: documents, and the graph, made again from the log, as ordered."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

import structlog

from schemas.curation import encode_choice
from schemas.errors import MalformedEvent
from schemas.ids import DocumentKey
from schemas.repairs import Repair, repair_key
from streams.errors import StartAgain
from streams.indexing.reapply import Reapplier
from streams.kafka.producer import ConfirmedProducer
from streams.runtime.retry import Retrier

POLL_SECONDS = 1.0


class RepairOrders(Protocol):
    """The orders that are not done, by id."""

    @property
    def repairs(self) -> Mapping[str, Repair]: ...


class Repairer:
    """Carries out the orders about one generation. `begin_graph` has the next start of the worker make the graph
    again."""

    def __init__(
        self,
        generation: str,
        orders: RepairOrders,
        reapplier: Reapplier,
        producer: ConfirmedProducer,
        retrier: Retrier,
        begin_graph: Callable[[], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._generation = generation
        self._orders = orders
        self._reapplier = reapplier
        self._producer = producer
        self._retrier = retrier
        self._begin_graph = begin_graph
        self._sleep = sleep
        self._done: set[str] = set()  # that it is done is read later
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
                raise StartAgain(f"The graph of {self._generation} is made again from the log.")
        keys = [key for key in map(_key, repair.documents) if key is not None]
        repair = repair.model_copy(update={"repaired": 0, "kept": 0, "failed": 0})
        async for done in self._reapplier.apply(keys):  # 2
            repair = repair.model_copy(
                update={
                    "repaired": repair.repaired + done.changed,
                    "kept": repair.kept + done.kept,
                    "failed": repair.failed + done.failed,
                }
            )
            await self._publish(name, repair)
        await self._reapplier.publish_graph()  # 3
        await self._publish(name, repair.model_copy(update={"state": "done"}))  # 4
        self._log.warning("repaired", order=name, **repair.model_dump(include={"repaired", "kept", "failed", "graph"}))

    async def _publish(self, name: str, repair: Repair) -> None:
        await self._producer.send_curation([(repair_key(name), encode_choice(repair))])


def _key(name: str) -> DocumentKey | None:
    try:
        return DocumentKey.parse(name)
    except MalformedEvent:
        return None
