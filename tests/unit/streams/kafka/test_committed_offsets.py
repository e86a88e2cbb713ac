"""What a consumer makes of a coordinator that cannot tell yet which offsets are committed."""

from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import GroupLoadInProgressError, NotCoordinatorForGroupError
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.structs import OffsetAndMetadata

from streams.kafka.committed_offsets import ask_for_offsets_by_partition

PARTITION = TopicPartition("documents", 2)
BROKER_TAKES = {OffsetFetchRequest.API_KEY: (1, 9)}  # Kafka 4


class LoadingCoordinator:
    """Answers as Kafka does: with these errors first, then with the offset 42."""

    group_id = "worker"
    _retry_backoff_ms = 0
    _do_fetch_commit_offsets = GroupCoordinator._do_fetch_commit_offsets

    def __init__(self, *errors: type[Any]) -> None:
        self.errors = [error.errno for error in errors]
        self.looked_for = 0

    async def ensure_coordinator_known(self) -> None:
        pass

    def coordinator_dead(self) -> None:
        self.looked_for += 1

    async def _send_req(self, request: OffsetFetchRequest) -> Any:
        prepared = request.prepare(BROKER_TAKES)
        answer = prepared.RESPONSE_TYPE
        error = self.errors.pop(0) if self.errors else 0
        if prepared.API_VERSION == 1:
            offset = -1 if error else 42
            return answer(topics=[(PARTITION.topic, [(PARTITION.partition, offset, "", error)])])
        topics = [] if error else [(PARTITION.topic, [(PARTITION.partition, 42, "", 0)])]
        return answer(throttle_time_ms=0, topics=topics, error_code=error)


async def fetched(coordinator: LoadingCoordinator) -> Any:
    return await GroupCoordinator.fetch_committed_offsets(coordinator, [PARTITION])


async def test_a_coordinator_that_cannot_tell_yet_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OffsetFetchRequest, "_CLASSES", OffsetFetchRequest._CLASSES)
    assert await fetched(LoadingCoordinator(GroupLoadInProgressError)) == {}, (
        "mended in aiokafka: then drop our own way"
    )
    ask_for_offsets_by_partition()
    coordinator = LoadingCoordinator(GroupLoadInProgressError, NotCoordinatorForGroupError)
    assert await fetched(coordinator) == {PARTITION: OffsetAndMetadata(42, "")}
    assert coordinator.looked_for == 1
    assert coordinator.errors == []
