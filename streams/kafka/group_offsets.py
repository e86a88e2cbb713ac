"""The consumer group's offsets, compared with the stores: the stores' own positions are the truth, the group's follow.

Where a store was deleted, or restored from an older copy, the group's offsets are set back before the consumers start,
so that it is rebuilt from the log.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from aiokafka.errors import KafkaError

from indexer.errors import IncompatibleGeneration
from kafka_client.async_clients import LogConsumer, open_reader
from kafka_client.topic_offsets import TopicPartition, spans_at
from schemas.errors import Failure
from schemas.settings import KafkaConnection
from streams.runtime.retry import retry_for
from streams.worker_log import log

_GROUP_WAIT_SECONDS = 45.0
_RETRY_SECONDS = 0.5


class StoresAheadOfLog(Failure):
    """The stores hold records the log does not have: they belong to another cluster, or its topics were deleted."""


@dataclass(frozen=True)
class LogState:
    """A partition at the broker: `end` is the offset after the last record, `committed` the group's, None for never,
    `beginning` the first offset that retention has left."""

    end: int
    committed: int | None
    beginning: int = 0


def set_back(
    stored: Mapping[TopicPartition, int | None],
    log: Mapping[TopicPartition, LogState],
    advice: str,
    *,
    is_restored: bool = False,
) -> dict[TopicPartition, int]:
    """The offsets to commit, by partition, where the group is ahead of the store.

    `stored` are the last offsets the stores hold, -1 for none; None where the group's offsets count. A group
    that lags behind stays there: records it reads again are known and only get their receipts again. But the group of
    stores that are restored begins behind them.
    Raises StoresAheadOfLog, whose message ends with `advice`, and IncompatibleGeneration where records after the
    stores' are gone.
    """
    resets: dict[TopicPartition, int] = {}
    for partition, state in log.items():
        position = stored[partition]
        if position is None:
            continue
        if position >= state.end:
            raise StoresAheadOfLog(
                f"The stores hold {partition.topic} partition {partition.partition} up to offset {position}, but the "
                f"topic ends at {state.end}: the log was cut off, or this is not the cluster they were filled from "
                f"(see THALWEG_KAFKA__BOOTSTRAP_SERVERS and THALWEG_KAFKA__TOPIC_PREFIX). {advice}"
            )
        if 0 <= position < state.beginning - 1:
            raise IncompatibleGeneration(
                "The log no longer holds what follows these stores: they end at offset "
                f"{position} of {partition.topic} partition {partition.partition}, which begins at {state.beginning}; "
                "what was between was removed. "
                "Searches are answered from them. 'thalweg export' takes their documents out, and 'thalweg rebuild' "
                "makes the stores of what the log still holds."
            )
        if (is_restored and state.committed is None) or (state.committed or 0) > position + 1:
            resets[partition] = position + 1
    return resets


async def reconcile(
    connection: KafkaConnection,
    group: str,
    stored: Mapping[TopicPartition, int | None],
    advice: str,
    *,
    is_restored: bool = False,
) -> dict[TopicPartition, LogState]:
    """Set the group's offsets to what the stores need; returns the state of the log after that. See `set_back`.

    Waits for the sessions of stopped workers to expire, ten seconds after their last heartbeat.
    Raises what `set_back` does, and Failure when the group is still in use after 45 s.
    """
    async with open_reader(connection, group_id=group) as consumer:
        consumer.assign(list(stored))
        states = {
            partition: LogState(span.end, await consumer.committed(partition), span.beginning)
            for partition, span in (await spans_at(consumer, stored)).items()
        }
        resets = set_back(stored, states, advice, is_restored=is_restored)
        if resets:
            log.warning(
                "the group continues where the stores are",
                offsets={f"{partition.topic}:{partition.partition}": offset for partition, offset in resets.items()},
            )
            await _commit(consumer, resets, group)
        return {
            partition: replace(state, committed=resets.get(partition, state.committed))
            for partition, state in states.items()
        }


async def _commit(consumer: LogConsumer, offsets: Mapping[TopicPartition, int], group: str) -> None:
    try:
        await retry_for(
            _GROUP_WAIT_SECONDS, lambda: consumer.commit(dict(offsets)), KafkaError, every_seconds=_RETRY_SECONDS
        )
    except KafkaError as error:
        raise Failure(
            f"The consumer group {group} is in use, so its offsets cannot be set back to what the stores hold. "
            f"Stop every other worker of this installation and start again. ({type(error).__name__})"
        ) from error
