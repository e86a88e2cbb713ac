"""Which log is written to, by the cluster's own id of the documents topic, and whether stores are a view of it.

A topic that was deleted and made again, or that of another cluster, starts its offsets from 0. Positions of the old one
mean nothing there: records would be taken for known, and tokens for covered.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import structlog
from kafka.errors import KafkaError

from kafka_client.async_clients import LocateBroker
from kafka_client.sync_clients import AdminClient
from schemas.errors import Failure
from schemas.receipts import Token, log_name
from schemas.settings import KafkaConnection

log = structlog.get_logger(__name__)

LOOK_SECONDS = 2.0
SOON_SECONDS = 0.1  # while nothing is known yet: writes are about to get their first tokens
ANSWER_MS = 5_000


def id_of(topic: Mapping[str, Any]) -> str:
    """Of a topic as `describe_topics` has it, 32 hex digits; empty for a missing one, and before Kafka 2.8."""
    return str(topic["topic_id"] or "").replace("-", "")


def difference(topic: str, recorded: str, found: str) -> str | None:
    """A clause where a topic is not the one whose id was `recorded`; None where none was: brokers that know no ids
    cannot say."""
    if not recorded or recorded == found:
        return None
    return f"the topic {topic} had the id {recorded} and now {f'has {found}' if found else 'is missing or has none'}"


class LogIdentity:
    """`topic_id` is the newest one seen, 32 hex digits; empty until Kafka has answered, and where brokers know no ids
    (before Kafka 2.8). Then nothing is refused. `cluster_id` is the cluster's own, empty until it has answered."""

    def __init__(self, locate_broker: LocateBroker, topic: str, is_reachable: Callable[[], bool]) -> None:
        """Kafka is asked only while somebody else sees it answer."""
        self.topic_id = ""
        self.cluster_id = ""
        self._is_reachable = is_reachable
        self._locate_broker = locate_broker
        self._topic = topic

    async def run(self) -> None:
        """Ask again and again. While Kafka is away the last answer stays."""
        while True:
            servers = self._locate_broker()
            if servers is not None and self._is_reachable():
                try:
                    await self._ask_while_at(servers)
                except (KafkaError, Failure, OSError) as error:
                    log.debug("the documents topic's id is not known just now", error=str(error))
            await asyncio.sleep(LOOK_SECONDS if self.topic_id else SOON_SECONDS)

    def mismatch(self, recorded: str) -> str | None:
        """A sentence where stores were filled from another log, of the topic id `recorded`, than what is written to."""
        differs = difference(self._topic, recorded, self.topic_id) if self.topic_id else None
        if differs is None:
            return None
        return (
            f"The stores were filled from another log: {differs}. 'thalweg worker' on this data directory says how to "
            "go on."
        )

    def refusal(self, token: Token, recorded: str) -> str | None:
        """A sentence where the token cannot be compared with what stores of that log have reached."""
        if token.log is None:
            return self.mismatch(recorded)
        recorded = recorded or self.topic_id
        if not recorded or token.log == log_name(recorded):
            return None
        return (
            f"The token is of the log {token.log}, and what is searched here was filled from the log "
            f"{log_name(recorded)}: another cluster or topic prefix, or a topic that was made again. "
            "Ask the installation that the document was written to."
        )

    async def _ask_while_at(self, servers: KafkaConnection) -> None:
        admin = await asyncio.to_thread(AdminClient, servers, connect_ms=ANSWER_MS, request_ms=ANSWER_MS)
        try:
            with suppress(KafkaError):  # only shown
                self.cluster_id = str((await asyncio.to_thread(admin.describe_cluster))["cluster_id"] or "")
            while self._locate_broker() == servers and self._is_reachable():
                (topic,) = await asyncio.to_thread(admin.describe_topics, [self._topic])
                found = id_of(topic)
                if found and found != self.topic_id:
                    if self.topic_id:
                        log.warning("the documents topic is another one", before=self.topic_id, now=found)
                    self.topic_id = found
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            await asyncio.to_thread(admin.close)
