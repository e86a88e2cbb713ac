"""What the clients keep to themselves: still named as `client_internals` takes it, and taken nowhere else."""

import ast
import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import Fetcher, FetchResult, PartitionRecords
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import GroupLoadInProgressError, NotCoordinatorForGroupError
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.structs import OffsetAndMetadata
from kafka.admin import KafkaAdminClient

from kafka_client import client_internals
from kafka_client.client_internals import raise_group_errors
from kafka_client.unreadable_batches import skip_none

ROOT = Path(__file__).parents[3]
PRODUCT = ("kafka_client", "streams", "query_api")
OWNER = ROOT / "kafka_client" / "client_internals.py"
LIBRARY = re.compile(r"(aiokafka|kafka|faust)\b")
OF_NAMED_TUPLES = {"_replace", "_asdict", "_fields"}

PARTITION = TopicPartition("documents", 2)
SEND = GroupCoordinator._send_req
BROKER_TAKES = {OffsetFetchRequest.API_KEY: (1, 9)}  # Kafka 4


class LoadingCoordinator:
    """Answers as Kafka does: with these errors first, then with the offset 42."""

    group_id = "worker"
    coordinator_id = 0
    _retry_backoff_ms = 0
    _do_fetch_commit_offsets = GroupCoordinator._do_fetch_commit_offsets

    def __init__(self, *errors: type[Any]) -> None:
        self.errors = [error.errno for error in errors]
        self.looked_for = 0

    async def ensure_coordinator_known(self) -> None:
        pass

    def coordinator_dead(self) -> None:
        self.looked_for += 1

    @property
    def _client(self) -> "LoadingCoordinator":
        return self

    async def _send_req(self, request: OffsetFetchRequest) -> Any:
        return await GroupCoordinator._send_req(self, request)

    async def send(self, _node: int, request: OffsetFetchRequest, *, group: Any) -> Any:
        prepared = request.prepare(BROKER_TAKES)
        answer = prepared.RESPONSE_TYPE
        error = self.errors.pop(0) if self.errors else 0
        topics = [] if error else [(PARTITION.topic, [(PARTITION.partition, 42, "", 0)])]
        return answer(throttle_time_ms=0, topics=topics, error_code=error)


async def fetched(coordinator: LoadingCoordinator) -> Any:
    return await GroupCoordinator.fetch_committed_offsets(coordinator, [PARTITION])


async def test_coordinator_that_is_loading_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GroupCoordinator, "_send_req", SEND)
    assert await fetched(LoadingCoordinator(GroupLoadInProgressError)) == {}, (
        "repaired in aiokafka: then drop our own way"
    )
    raise_group_errors()
    coordinator = LoadingCoordinator(GroupLoadInProgressError, NotCoordinatorForGroupError)
    assert await fetched(coordinator) == {PARTITION: OffsetAndMetadata(42, "")}
    assert coordinator.looked_for == 1
    assert coordinator.errors == []


@asynccontextmanager
async def unstarted_consumer() -> AsyncIterator[Any]:
    """With a fetcher, which it makes when it starts."""
    consumer = AIOKafkaConsumer(bootstrap_servers="127.0.0.1:1")
    assert consumer._fetcher is None
    consumer._fetcher = Fetcher(consumer._client, consumer._subscription)
    try:
        yield consumer
    finally:
        await consumer.stop()


async def test_end_of_a_consumer_with_a_fetch_in_flight_does_not_cancel_who_ends_it() -> None:
    async with unstarted_consumer() as consumer:
        closings = [consumer._fetcher.close, lambda: client_internals.abort_connections(consumer)]
        is_cancelled = []
        await asyncio.sleep(0)  # its own task begins
        for close in closings:
            fetch = asyncio.create_task(asyncio.sleep(60))
            consumer._fetcher._pending_tasks.add(fetch)
            closing = asyncio.create_task(close())
            await asyncio.wait([closing])
            assert fetch.cancelled()
            is_cancelled.append(closing.cancelled())
        assert is_cancelled == [True, False], "both False: repaired in aiokafka: then drop our own way"


async def test_positions_are_of_assigned_partitions_that_have_one() -> None:
    async with unstarted_consumer() as consumer:
        assert client_internals.positions(consumer) == {}
        consumer.assign([PARTITION])
        assert client_internals.positions(consumer) == {}
        consumer.seek(PARTITION, 5)
        assert client_internals.positions(consumer) == {PARTITION: 5}


async def test_consumer_and_fetcher_have_isolation_levels() -> None:
    async with unstarted_consumer() as consumer:
        assert (consumer._isolation_level, consumer._fetcher._isolation_level) == ("read_uncommitted", 0)
        client_internals.read_committed(consumer)
        assert consumer._isolation_level == "read_committed"
        assert hasattr(consumer._fetcher, "end_offsets")
        assert hasattr(consumer._client, "fetch_all_metadata")


async def test_connections_of_consumer_are_aborted() -> None:
    async with unstarted_consumer() as consumer:
        connection = consumer._client._conns[0] = AIOKafkaConnection("localhost", 1)
        assert connection._writer is None
        assert not client_internals.was_connected(connection)
        await client_internals.abort_connections(consumer)
        consumer._client._conns.clear()


async def test_guarded_fetcher_overrides_what_is_called() -> None:
    async with unstarted_consumer() as consumer:
        client_internals.GuardedFetcher.guard(consumer, skip_none)
        assert hasattr(Fetcher, "_proc_fetch_request")
        assert hasattr(consumer._fetcher, "_set_error")
        assert hasattr(consumer._fetcher, "_records")
    records = PartitionRecords(PARTITION, "batches", None, 0, None, None, False, 0)
    result = FetchResult(PARTITION, assignment=None, partition_records=records, backoff=0)
    assert client_internals._batches(result) == "batches"


async def test_producer_has_a_transaction_manager() -> None:
    producer = AIOKafkaProducer(bootstrap_servers="127.0.0.1:1", transactional_id="one")
    assert not client_internals.is_in_transaction(producer)
    client_internals.see_end_of_transaction(producer)
    await producer.stop()


def test_admin_client_is_closed_by_its_own_mark() -> None:
    admin = KafkaAdminClient.__new__(KafkaAdminClient)
    client_internals.make_closable(admin)
    with pytest.raises(AttributeError):  # it goes on, to what was never opened
        admin.close()


def test_private_attributes_of_clients_are_used_in_one_module() -> None:
    files = [file for package in PRODUCT for file in (ROOT / package).rglob("*.py") if file != OWNER]
    found = {f"{file.relative_to(ROOT)}: {name}" for file in files for name in foreign_private(file.read_text())}
    assert found == set()


def foreign_private(source: str) -> set[str]:
    """Private names that a module which imports clients uses, and does not define: of any object, and of `self` in
    classes that derive from those of a library."""
    if not re.search(r"^from (aiokafka|kafka|faust|kafka_client)\b", source, re.MULTILINE):
        return set()
    module = ast.parse(source)
    imports = [node for node in ast.walk(module) if isinstance(node, ast.ImportFrom)]
    theirs = {name.asname or name.name for node in imports if LIBRARY.match(node.module or "") for name in node.names}
    classes = [node for node in ast.walk(module) if isinstance(node, ast.ClassDef)]
    derived = [each for each in classes if theirs & {ast.unparse(base) for base in each.bases}]
    used = {node for part in derived for node in private_in(part)}
    used |= {node for node in private_in(module) if ast.unparse(node.value) not in {"self", "cls", "os"}}
    own = {node.name for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    own |= {node.attr for node in private_in(module) if isinstance(node.ctx, ast.Store)}
    return {node.attr for node in used} - own - OF_NAMED_TUPLES


def private_in(part: ast.AST) -> set[ast.Attribute]:
    attributes = [node for node in ast.walk(part) if isinstance(node, ast.Attribute)]
    return {node for node in attributes if re.match("_[a-z]", node.attr)}
