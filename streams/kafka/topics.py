"""The topics on a cluster: creating missing ones, comparing settings, the default partitioner, added partitions.

An existing topic keeps its settings. Only partitions are added, by `grow_topics`.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TypeVar

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from kafka_client.log_identity import id_of
from kafka_client.security import require_answer
from kafka_client.sync_clients import AdminClient
from schemas.errors import Failure, Unreachable
from schemas.settings import KafkaConnection
from schemas.topics import DELETE_RETENTION, TopicSpec
from streams.errors import RestartNeeded

_MOST_REPLICAS = 3
_ADVICE = "Start one with `thalweg up` or `thalweg kafka`, or set THALWEG_KAFKA__BOOTSTRAP_SERVERS."
_VISIBLE_TIMEOUT_MS = 15_000
_NO_ERROR = 0

Result = TypeVar("Result")


@dataclass(frozen=True)
class Difference:
    """A setting of an existing topic that is not as required; `partitions`, or Kafka's own name of the setting."""

    setting: str
    found: str
    wanted: str


@dataclass(frozen=True)
class TopicReport:
    """One topic after a look at it; `partitions` is what it has, 0 when it is missing.

    `topic_id` is the cluster's own id of the topic, 32 hex digits: one that is deleted and made again gets another.
    Empty when the topic is missing, or the brokers are older than Kafka 2.8. `delete_retention_ms` is how long a
    compacted topic keeps tombstones.
    """

    name: str
    outcome: Literal["created", "exists", "missing"]
    partitions: int
    differences: tuple[Difference, ...] = ()
    topic_id: str = ""
    delete_retention_ms: int = 0

    def sentence(self) -> str:
        text = f"{self.name}: {self.outcome}"
        if self.outcome != "missing":
            text += f", {self.partitions} partition{'s' if self.partitions != 1 else ''}"
        for one in self.differences:
            text += f"; {one.setting} is {one.found}, should be {one.wanted}"
        return text


async def ensure_topics(connection: KafkaConnection, specs: Sequence[TopicSpec]) -> list[TopicReport]:
    """Creates the missing topics and reports on all, in the order of `specs`.

    Returns when the new ones can be used. May be called again, and by several processes at once. A topic gets as many
    replicas as there are brokers, three at most.
    Raises Unreachable, or Failure when the cluster refuses a topic.
    """

    def ensure(admin: AdminClient) -> list[TopicReport]:
        missing = [each.name for each in _inspect(admin, specs) if each.outcome == "missing"]
        if missing:
            _create(admin, [spec for spec in specs if spec.name in missing])
            admin.wait_for_topics(missing, timeout_ms=_VISIBLE_TIMEOUT_MS)
        return _inspect(admin, specs, created=missing)

    return await _with_admin(connection, ensure)


async def inspect_topics(connection: KafkaConnection, specs: Sequence[TopicSpec]) -> list[TopicReport]:
    """The same report, creating nothing. Raises Unreachable, or Failure when the cluster refuses to describe them."""
    return await _with_admin(connection, lambda admin: _inspect(admin, specs))


async def grow_topics(connection: KafkaConnection, names: Sequence[str], partitions: int) -> list[str]:
    """Add partitions to those of the topics that have fewer; the names of these.

    Returns when the new partitions can be used. May be called again. Raises Unreachable or Failure.
    """

    def grow(admin: AdminClient) -> list[str]:
        smaller = [
            topic["name"]
            for topic in admin.describe_topics(list(names))
            if topic["error_code"] == _NO_ERROR and len(topic["partitions"]) < partitions
        ]
        if smaller:
            admin.create_partitions(dict.fromkeys(smaller, partitions))
            admin.wait_for_topics(smaller, timeout_ms=_VISIBLE_TIMEOUT_MS)
        return smaller

    return await _with_admin(connection, grow)


def delete_topics(connection: KafkaConnection, names: Sequence[str]) -> None:
    """Delete topics with all records; those that are missing are not an error. Raises Unreachable or Failure."""
    with _admin(connection) as admin:
        there = [topic["name"] for topic in admin.describe_topics(list(names)) if topic["error_code"] == _NO_ERROR]
        if there:
            admin.delete_topics(there)


async def _with_admin(connection: KafkaConnection, work: Callable[[AdminClient], Result]) -> Result:
    def connected() -> Result:
        with _admin(connection) as admin:
            return work(admin)

    return await asyncio.to_thread(connected)


@contextmanager
def _admin(connection: KafkaConnection) -> Iterator[AdminClient]:
    try:
        admin = AdminClient(connection)
    except (KafkaError, OSError) as error:
        require_answer(connection, _ADVICE)  # says why none does
        raise Unreachable(f"No Kafka broker answers at {connection} in time. {_ADVICE}") from error
    try:
        yield admin
    except KafkaError as error:
        raise Failure(f"Kafka at {connection} refused: {error}.") from error
    finally:
        admin.close()


def _create(admin: AdminClient, specs: Sequence[TopicSpec]) -> None:
    replicas = min(_MOST_REPLICAS, max(1, len(admin.describe_cluster()["brokers"])))
    wanted = {
        spec.name: {
            "num_partitions": spec.partitions,
            "replication_factor": replicas,
            "configs": dict(spec.config),
        }
        for spec in specs
    }
    for topic in admin.create_topics(wanted, raise_errors=False)["topics"]:
        error = for_code(topic["error_code"])
        if topic["error_code"] != _NO_ERROR and error is not TopicAlreadyExistsError:  # another may have been quicker
            raise Failure(f"Kafka did not create the topic {topic['name']}: {topic['error_message'] or error.__name__}")


def _inspect(admin: AdminClient, specs: Sequence[TopicSpec], created: Sequence[str] = ()) -> list[TopicReport]:
    if not specs:
        return []
    described = admin.describe_topics([spec.name for spec in specs])
    present = {topic["name"]: topic for topic in described if topic["error_code"] == _NO_ERROR}
    configs = _configs(admin, list(present))
    reports = []
    for spec in specs:
        topic, config = present.get(spec.name), configs.get(spec.name, {})
        if topic is None:
            reports.append(TopicReport(spec.name, "missing", 0))
            continue
        partitions = len(topic["partitions"])
        outcome: Literal["created", "exists"] = "created" if spec.name in created else "exists"
        differences = differences_of(spec, partitions, config)
        retention_ms = int(config.get(DELETE_RETENTION, 0))
        reports.append(TopicReport(spec.name, outcome, partitions, differences, id_of(topic), retention_ms))
    return reports


def _configs(admin: AdminClient, names: Sequence[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
    described = admin.describe_configs(resources, config_filter="all")["topic"]
    return {name: {key: entry["value"] for key, entry in entries.items()} for name, entries in described.items()}


def differences_of(spec: TopicSpec, partitions: int, config: Mapping[str, str]) -> tuple[Difference, ...]:
    """What of `spec` an existing topic with so many partitions and such settings does not meet."""
    differences = []
    if partitions != spec.partitions:
        differences.append(Difference("partitions", str(partitions), str(spec.partitions)))
    for setting, wanted in spec.config.items():
        found = config.get(setting, "unset")
        if set(found.split(",")) != set(wanted.split(",")):
            differences.append(Difference(setting, found, wanted))
    return tuple(differences)


LOOK_SECONDS = 10.0


class PartitionsAdded(RestartNeeded):
    """The documents topic has more partitions than when the worker started: it follows them from its next start on."""


async def watch_partitions(count: Callable[[], int | None], topic: str, partitions: int) -> None:
    """Poll until cancelled; `count` gives the number that was last seen. Raises PartitionsAdded."""
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        found = count() or 0
        if found > partitions:
            raise PartitionsAdded(
                f"{topic} now has {found} partitions and had {partitions}: the worker starts again to follow them."
            )
