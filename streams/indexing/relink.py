"""Orders to link a collection again, carried out between commits."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Protocol

import structlog

from schemas.curation import RelinkEvent, Relinking, encode_choice, relink_key
from schemas.ids import DocumentKey, Position
from streams.indexing.reapply import Reapplier
from streams.kafka.producer import ConfirmedProducer
from streams.runtime.retry import Retrier
from streams.runtime.store_thread import StoreThread

POLL_SECONDS = 1.0


class RelinkOrders(Protocol):
    """The orders that are not done, once `current` has read the topic."""

    async def current(self) -> object: ...
    @property
    def orders(self) -> Sequence[RelinkEvent]: ...


class LiveDocuments(Protocol):
    """The part of the vector store that is read."""

    def live_positions(self, collection: str | None = None) -> dict[DocumentKey, Position]: ...


class Relinker:
    """Makes the documents of a collection again by its current settings; those are `changed` that the graph or the
    tables had otherwise. `commit_lock` is the documents agent's. Later commits link by the same rules."""

    def __init__(
        self,
        orders: RelinkOrders,
        documents: LiveDocuments,
        thread: StoreThread,
        reapplier: Reapplier,
        producer: ConfirmedProducer,
        retrier: Retrier,
        commit_lock: asyncio.Lock,
    ) -> None:
        self._orders = orders
        self._documents = documents
        self._thread = thread
        self._reapplier = reapplier
        self._producer = producer
        self._retrier = retrier
        self._commit_lock = commit_lock
        self._log = structlog.get_logger("thalweg.worker")

    async def run(self) -> None:
        """Carry out orders until cancelled."""
        while True:
            await self.process_orders()
            await asyncio.sleep(POLL_SECONDS)

    async def process_orders(self) -> None:
        """Carry out every order that is not done. One that is interrupted is repeated from its start, and finds what
        was linked already unchanged."""
        async with self._commit_lock:
            await self._orders.current()
        for order in self._orders.orders:
            await self._retrier.retry_forever(lambda order=order: self._carry_out(order))  # type: ignore[misc]

    async def _carry_out(self, order: RelinkEvent) -> None:
        """1. find the documents; 2. make them again batch by batch, publishing the progress; 3. publish that it is
        done: then, and only then, the order is removed."""
        sources: Mapping[DocumentKey, Position] = await self._thread.run(
            self._documents.live_positions, order.collection
        )  # 1
        progress = Relinking(state="running", of=len(sources))
        await self._publish(order, progress)
        async for done in self._reapplier.renew(sources):  # 2
            progress = progress.model_copy(
                update={
                    "documents": progress.documents + done.documents,
                    "changed": progress.changed + done.changed,
                    "skipped": progress.skipped + done.kept + done.failed,
                }
            )
            await self._publish(order, progress)
        done_state = progress.model_copy(update={"state": "done"})
        await self._publish(order, done_state)  # 3
        self._log.info("linked again", order=order.id, **done_state.model_dump(exclude={"state"}))

    async def _publish(self, order: RelinkEvent, progress: Relinking) -> None:
        await self._producer.send_curation([(relink_key(order.collection, order.id), encode_choice(progress))])
