"""Orders on the curation topic, carried out between commits: documents linked, repaired or applied again from the log.

What is done for each is a generator of the order's states. One that is interrupted is repeated from its start, and
finds what was done already unchanged.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from schemas.curation import encode_choice
from schemas.ids import DocumentKey, Position, is_canary
from schemas.orders import Order, OrderEvent, OrderKind, Relinking, Repair, Replay, ReplayRange
from streams.errors import StartAgain
from streams.indexing.reapply import Reapplier
from streams.indexing.settings_reader import CollectionSettings
from streams.kafka.producer import ConfirmedProducer
from streams.runtime.retry import Retrier
from streams.worker_log import log

POLL_SECONDS = 1.0


Work = Callable[[str, Any], AsyncGenerator[Order, None]]
"""What is done for an order of a collection, or of `*`: its states until it is done."""


@dataclass(eq=False)
class OrderRunner:
    """Carries out the orders about one generation. `commit_lock` is the documents agent's."""

    generation: str
    topic: CollectionSettings
    work: Mapping[OrderKind, Work]
    producer: ConfirmedProducer
    retrier: Retrier
    commit_lock: asyncio.Lock
    _done: set[bytes] = field(default_factory=set)  # that they are done is read later

    def loops(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """To be run side by side until cancelled: an order that takes long holds up none of another kind. Any may raise
        StartAgain."""
        return [
            partial(self._repeat, self.read),
            *(partial(self._repeat, partial(self.process, k)) for k in self.work),
        ]

    async def read(self) -> None:
        """Learn of new orders."""
        async with self.commit_lock:
            await self.topic.current()

    async def process(self, kind: OrderKind) -> None:
        """Carry out every order of a kind that is known and not done."""
        for key, event in self.topic.orders.items():
            order = event.order
            if event.kind == kind and order is not None and order.concerns(self.generation) and key not in self._done:
                await self.retrier.retry_forever(partial(self._carry_out, key, event))
                self._done.add(key)

    async def _carry_out(self, key: bytes, event: OrderEvent) -> None:
        """1. publish each state; 2. publish that it is done: then, and only then, the order is removed."""
        state: Order | None = event.order
        async with aclosing(self.work[event.kind](event.collection, event.order)) as states:
            async for state in states:  # 1
                await self._publish(key, state)
        if state is not None:
            await self._publish(key, state.model_copy(update={"state": "done"}))  # 2
            counts = {name: value for name, value in state if isinstance(value, int)}
            log.info("order carried out", kind=event.kind, order=event.id, **counts)

    async def _publish(self, key: bytes, state: Order) -> None:
        await self.producer.send_curation([(key, encode_choice(state))])

    async def _repeat(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            await step()
            await asyncio.sleep(POLL_SECONDS)


async def relink(
    reapplier: Reapplier,
    live_positions: Callable[[str], Awaitable[Mapping[DocumentKey, Position]]],
    collection: str,
    _order: Relinking,
) -> AsyncGenerator[Relinking, None]:
    """Make the documents of a collection again by its current settings; those are `changed` that the graph or the
    tables had otherwise. Later commits link by the same rules."""
    sources = await live_positions(collection)
    state = Relinking(state="running", of=len(sources))
    yield state
    async for done in reapplier.renew(sources):
        yield (state := state.plus(documents=done.documents, changed=done.changed, skipped=done.kept + done.failed))


async def repair(
    reapplier: Reapplier, begin_graph: Callable[[], None], _collection: str, order: Repair
) -> AsyncGenerator[Repair, None]:
    """Bring these documents to the result of all their records. Where the graph is to be made again, `begin_graph` has
    the next start of the worker do so, and this raises StartAgain."""
    state = order.model_copy(update={"state": "running", "repaired": 0, "kept": 0, "failed": 0})
    if order.state == "ordered":
        if order.graph:
            await asyncio.to_thread(begin_graph)
        yield state
        if order.graph:
            raise StartAgain(f"The graph of {order.generation} is made again from the log.")
    named = (DocumentKey.of_record(each.encode("utf-8", "replace")) for each in order.documents)
    async for done in reapplier.apply([key for key in named if key is not None]):
        yield (state := state.plus(repaired=done.changed, kept=done.kept, failed=done.failed))
    await reapplier.publish_graph()


async def replay(reapplier: Reapplier, _collection: str, order: Replay) -> AsyncGenerator[Replay, None]:
    """Bring the documents with a record in the range to the result of all their records."""
    records, keys = await _documents(reapplier, ReplayRange(order))
    begun = {"state": "running", "records": records, "of": len(keys)}
    state = order.model_copy(update=begun | dict.fromkeys(("documents", "changed", "kept", "failed"), 0))
    yield state
    async for done in reapplier.apply(keys, only_changed=True, dry_run=order.dry_run):
        yield (state := state.plus(**done._asdict()))
    if state.changed and not order.dry_run:
        await reapplier.publish_graph()


async def _documents(reapplier: Reapplier, wanted: ReplayRange) -> tuple[int, list[DocumentKey]]:
    """How many records are in the range, of those that are indexed, and the documents that they are about."""
    records = 0
    keys: dict[DocumentKey, None] = {}
    for number, reached in sorted(reapplier.reached.items()):
        start = wanted.start(number)
        if start is None or number >= len(reapplier.partitions):
            continue
        async with aclosing(reapplier.partitions[number].records(start, wanted.since_ms)) as found:
            async for record in found:
                if record.offset > wanted.end(number, reached.offset):
                    break
                if record.is_gap or not wanted.includes(record.position, record.timestamp_ms):
                    continue
                key = DocumentKey.of_record(record.key)
                if key is not None and is_canary(str(key)):
                    continue
                records += 1
                if key is not None:
                    keys[key] = None
    return records, list(keys)
