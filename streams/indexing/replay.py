"""Replays: the documents of a part of the log brought to what all of their records say, as ordered."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Protocol

import structlog

from schemas.curation import encode_choice
from schemas.errors import MalformedEvent
from schemas.ids import DocumentKey, is_canary
from schemas.replays import Replay, ReplayRange, replay_key
from streams.indexing.reapply import Reapplier
from streams.kafka.producer import ConfirmedProducer
from streams.runtime.retry import Retrier

POLL_SECONDS = 1.0


class ReplayOrders(Protocol):
    """The orders that are not done, by id."""

    @property
    def replays(self) -> Mapping[str, Replay]: ...


class Replayer:
    """Carries out the orders about one generation."""

    def __init__(
        self,
        generation: str,
        orders: ReplayOrders,
        reapplier: Reapplier,
        producer: ConfirmedProducer,
        retrier: Retrier,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._generation = generation
        self._orders = orders
        self._reapplier = reapplier
        self._producer = producer
        self._retrier = retrier
        self._sleep = sleep
        self._done: set[str] = set()  # that it is done is read later
        self._log = structlog.get_logger("thalweg.worker")

    async def run(self) -> None:
        """Carry out orders until cancelled."""
        while True:
            await self.process_orders()
            await self._sleep(POLL_SECONDS)

    async def process_orders(self) -> None:
        """One that is interrupted is repeated from its start, and finds what was done already unchanged."""
        for name, replay in self._orders.replays.items():
            if replay.generation == self._generation and name not in self._done:
                await self._retrier.retry_forever(lambda n=name, r=replay: self._carry_out(n, r))  # type: ignore[misc]
                self._done.add(name)

    async def _carry_out(self, name: str, order: Replay) -> None:
        """1. find the documents with a record in the range; 2. bring them to what all of their records say, batch by
        batch, publishing the progress; 3. the graph; 4. publish that it is done: then, and only then, the order is
        removed."""
        records, keys = await self._documents(ReplayRange(order))  # 1
        begun = {"state": "running", "records": records, "of": len(keys)}
        replay = order.model_copy(update=begun | dict.fromkeys(("documents", "changed", "kept", "failed"), 0))
        await self._publish(name, replay)
        async for done in self._reapplier.apply(keys, only_changed=True, dry_run=order.dry_run):  # 2
            replay = replay.model_copy(
                update={
                    "documents": replay.documents + done.documents,
                    "changed": replay.changed + done.changed,
                    "kept": replay.kept + done.kept,
                    "failed": replay.failed + done.failed,
                }
            )
            await self._publish(name, replay)
        if replay.changed and not order.dry_run:
            await self._reapplier.publish_graph()  # 3
        await self._publish(name, replay.model_copy(update={"state": "done"}))  # 4
        self._log.info(
            "replayed",
            order=name,
            documents=replay.of,
            changed=replay.changed,
            kept=replay.kept,
            failed=replay.failed,
            dry_run=order.dry_run,
        )

    async def _documents(self, wanted: ReplayRange) -> tuple[int, list[DocumentKey]]:
        """How many records are in the range, of those that are indexed, and the documents that they are about."""
        records = 0
        keys: dict[DocumentKey, None] = {}
        for number, reached in sorted(self._reapplier.reached.items()):
            start = wanted.start(number)
            if start is None or number >= len(self._reapplier.partitions):
                continue
            async with aclosing(self._reapplier.partitions[number].records(start, wanted.since_ms)) as found:
                async for record in found:
                    if record.offset > wanted.end(number, reached.offset):
                        break
                    if record.is_gap or not wanted.includes(record.position, record.timestamp_ms):
                        continue
                    try:
                        key = DocumentKey.parse((record.key or b"").decode())
                    except (MalformedEvent, UnicodeDecodeError):  # a dead letter, and no document
                        records += 1
                        continue
                    if not is_canary(str(key)):
                        records += 1
                        keys[key] = None
        return records, list(keys)

    async def _publish(self, name: str, replay: Replay) -> None:
        await self._producer.send_curation([(replay_key(name), encode_choice(replay))])
