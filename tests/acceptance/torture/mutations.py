"""Mistakes that the worker does not make, each put back to see that the harness finds it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from typing import Any

import pyarrow as pa

ENVIRONMENT = "TORTURE_MUTATION"
BETWEEN_SECONDS = 1.5  # a snapshot comes in between


def plain_take() -> None:
    """Faust's own batches, which are acknowledged also where their work fails."""
    from streams import worker_agents

    def attach_agent(
        app: Any, name: str, topic: str, run: Any, records: int, seconds: float, *, fail: Any, **_: Any
    ) -> None:
        channel = app.topic(topic, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

        async def take(stream: Any) -> None:
            try:
                async with aclosing(stream.take_events(records, seconds)) as batches:
                    await run(batches)
            except Exception as error:
                fail(error)
                raise

        take.__name__ = name
        app.agent(channel, name=name, concurrency=1)(take)

    worker_agents.attach_agent = attach_agent


def commit_before_write() -> None:
    """The positions are stored before the rows."""
    from streams.indexing.commit import DocumentIndexer

    write = DocumentIndexer._write

    async def store_and_write(
        self: DocumentIndexer, changes: Any, encoded: Any, reached: Any, watch: Any, **how: Any
    ) -> Any:
        await self.thread.run(self.writer.store_positions, reached)
        return await write(self, changes, encoded, reached, watch, **how)

    DocumentIndexer._write = store_and_write  # type: ignore[method-assign]


def no_version_guard() -> None:
    """Whatever comes later in the log wins."""
    from schemas import versioning

    versioning.decide = lambda *_: "wins"


def no_declared_key() -> None:
    """Tables without the key by which two writers conflict."""
    from indexer.write import lance_writer as lance

    def without_key(schema: pa.Schema) -> pa.Schema:
        return pa.schema([field.remove_metadata() for field in schema])

    for name in ("PASSAGES", "RETRIEVALS", "FEEDBACK", "POSITIONS", "DOCUMENTS"):
        setattr(lance, f"{name}_SCHEMA", without_key(getattr(lance, f"{name}_SCHEMA")))
    chunks_schema = lance.chunks_schema
    lance.chunks_schema = lambda dimension: without_key(chunks_schema(dimension))


def nothing_kept() -> None:
    """`cleanup_older_than=0`: maintenance removes what readers still read."""
    from indexer.write.lance_maintenance import Maintainer

    Maintainer._removable_after = lambda *_: 0.0  # type: ignore[method-assign]


def position_outside() -> None:
    """The graph's position is set before its changes are applied."""
    from streams.agents.graph_agent import GraphAgent

    apply = GraphAgent._apply

    async def store_and_apply(self: GraphAgent, contributed: Sequence[Any]) -> list[None]:
        self.writer._position = contributed[-1].offset  # type: ignore[attr-defined]
        self.snapshots.schedule.changed()
        await asyncio.sleep(BETWEEN_SECONDS)
        return await apply(self, contributed)

    GraphAgent._apply = store_and_apply  # type: ignore[method-assign]


def deletes_not_merged() -> None:
    """A merge keeps the documents that were deleted."""
    from indexer.graph import store
    from schemas.ids import DocumentKey

    merge = store.merge

    def merge_changed(base: Any, gone: Any, added: Any) -> Any:
        rows = added.documents.select(["collection", "document_id"]).to_pylist()
        return merge(base, {DocumentKey(**row) for row in rows}, added)

    store.merge = merge_changed


def unconfirmed_letters() -> None:
    """Nobody waits for the dead letters."""
    from streams.kafka.producer import ConfirmedProducer

    send = ConfirmedProducer.send_to_dlq
    sending: set[asyncio.Task[None]] = set()

    async def send_some_time(self: ConfirmedProducer, letters: Sequence[Any]) -> None:
        sending.add(asyncio.create_task(send(self, letters)))

    ConfirmedProducer.send_to_dlq = send_some_time  # type: ignore[method-assign]


MUTATIONS: dict[str, Callable[[], None]] = {
    "plain stream.take": plain_take,
    "commit before write": commit_before_write,
    "no version guard": no_version_guard,
    "no declared key": no_declared_key,
    "cleanup_older_than=0": nothing_kept,
    "position outside the transaction": position_outside,
    "deletes not merged": deletes_not_merged,
    "ack before the dead letter is confirmed": unconfirmed_letters,
}
