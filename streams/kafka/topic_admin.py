"""Makes the topics on a cluster, and says where an existing one is not as it should be. Never changes one."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from schemas.exits import Failure, Unreachable
from schemas.topics import TopicSpec

_MOST_REPLICAS = 3
_CONNECT_TIMEOUT_SECONDS = 10.0
_VISIBLE_TIMEOUT_SECONDS = 15.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Difference:
    """A setting of an existing topic that is not as wanted; `partitions`, or Kafka's own name of the setting."""

    setting: str
    found: str
    wanted: str


@dataclass(frozen=True)
class TopicReport:
    """One topic after a look at it; `partitions` is what it has, 0 when it is missing."""

    name: str
    outcome: Literal["created", "exists", "missing"]
    partitions: int
    differences: tuple[Difference, ...] = ()

    def sentence(self) -> str:
        text = f"{self.name}: {self.outcome}"
        if self.outcome != "missing":
            text += f", {self.partitions} partition{'s' if self.partitions != 1 else ''}"
        for one in self.differences:
            text += f"; {one.setting} is {one.found}, wanted {one.wanted}"
        return text


async def ensure_topics(bootstrap_servers: str, specs: Sequence[TopicSpec]) -> list[TopicReport]:
    """Creates the missing topics and reports on all, in the order of `specs`.

    Returns when the new ones can be used. May be called again, and by several processes at once. A topic gets as many
    replicas as there are brokers, three at most.
    Raises Unreachable, or Failure when the cluster refuses a topic.
    """
    async with _connected(bootstrap_servers) as admin:
        before = await _inspect(admin, specs)
        missing = [spec for spec, report in zip(specs, before, strict=True) if report.outcome == "missing"]
        if not missing:
            return before
        await _create(admin, missing)
        await _wait_visible(admin, missing)
        names = {spec.name for spec in missing}
        after = await _inspect(admin, specs)
    return [
        TopicReport(report.name, "created", report.partitions, report.differences) if report.name in names else report
        for report in after
    ]


async def inspect_topics(bootstrap_servers: str, specs: Sequence[TopicSpec]) -> list[TopicReport]:
    """The same report, creating nothing. Raises Unreachable, or Failure when the cluster does not tell."""
    async with _connected(bootstrap_servers) as admin:
        return await _inspect(admin, specs)


@asynccontextmanager
async def _connected(bootstrap_servers: str) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap_servers, client_id="thalweg-topics")
    try:
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT_SECONDS):
                await admin.start()
        except (KafkaError, OSError, TimeoutError) as error:
            raise Unreachable(
                f"No Kafka broker answers at {bootstrap_servers}. Start one with `thalweg up` or `thalweg kafka`, "
                "or set THALWEG_KAFKA__BOOTSTRAP_SERVERS."
            ) from error
        try:
            yield admin
        except KafkaError as error:
            raise Failure(f"Kafka at {bootstrap_servers} refused: {error}.") from error
    finally:
        await admin.close()


async def _create(admin: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> None:
    brokers = len((await admin.describe_cluster())["brokers"])
    replicas = min(_MOST_REPLICAS, max(1, brokers))
    topics = [NewTopic(spec.name, spec.partitions, replicas, topic_configs=dict(spec.config)) for spec in specs]
    answer = await admin.create_topics(topics)
    for name, code, *message in answer.topic_errors:
        error = for_code(code)
        if code != 0 and error is not TopicAlreadyExistsError:  # another process may have been quicker
            raise Failure(f"Kafka did not create the topic {name}: {(message and message[0]) or error.__name__}")


async def _wait_visible(admin: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> None:
    deadline = time.monotonic() + _VISIBLE_TIMEOUT_SECONDS
    waiting = {spec.name for spec in specs}
    while waiting:
        found = await admin.describe_topics(sorted(waiting))
        waiting -= {topic["topic"] for topic in found if _is_usable(topic)}
        if waiting and time.monotonic() > deadline:
            raise Failure(f"Kafka created {', '.join(sorted(waiting))}, but no broker leads all of its partitions yet.")
        if waiting:
            await asyncio.sleep(_POLL_SECONDS)


def _is_usable(topic: dict[str, Any]) -> bool:
    partitions = topic["partitions"]
    return topic["error_code"] == 0 and bool(partitions) and all(one["leader"] >= 0 for one in partitions)


async def _inspect(admin: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> list[TopicReport]:
    present = {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}
    configs = await _configs(admin, [spec for spec in specs if spec.name in present])
    reports = []
    for spec in specs:
        if spec.name not in present:
            reports.append(TopicReport(spec.name, "missing", 0))
            continue
        differences = differences_of(spec, present[spec.name], configs.get(spec.name, {}))
        reports.append(TopicReport(spec.name, "exists", present[spec.name], differences))
    return reports


async def _configs(admin: AIOKafkaAdminClient, specs: Sequence[TopicSpec]) -> dict[str, dict[str, str]]:
    if not specs:
        return {}
    wanted = [ConfigResource(ConfigResourceType.TOPIC, spec.name, dict(spec.config)) for spec in specs]
    configs: dict[str, dict[str, str]] = {}
    for answer in await admin.describe_configs(wanted):
        for code, message, _kind, name, entries in answer.resources:
            if code != 0:
                raise Failure(f"Kafka does not tell the settings of {name}: {message or for_code(code).__name__}")
            configs[name] = {entry[0]: entry[1] for entry in entries}
    return configs


def differences_of(spec: TopicSpec, partitions: int, config: dict[str, str]) -> tuple[Difference, ...]:
    """What of `spec` an existing topic with so many partitions and such settings does not meet."""
    differences = []
    if partitions != spec.partitions:
        differences.append(Difference("partitions", str(partitions), str(spec.partitions)))
    for setting, wanted in spec.config.items():
        found = config.get(setting, "unset")
        if set(found.split(",")) != set(wanted.split(",")):
            differences.append(Difference(setting, found, wanted))
    return tuple(differences)
