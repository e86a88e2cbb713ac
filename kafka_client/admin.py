"""The admin client, from kafka-python: aiokafka's protocol knows no topic ids."""

from collections.abc import Mapping
from socket import socket as Socket  # noqa: N812  # a method here is called `socket`
from typing import Any

from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.inet import KafkaNetSocket

CLIENT_ID = "thalweg-admin"


class ClosingSocket(KafkaNetSocket):  # type: ignore[misc]  # kafka-python is not typed
    """Connects directly, and closes a socket whose connection failed: kafka-python leaves it to the garbage collector.

    kafka-python chooses this class by the scheme of its setting `proxy_url`.
    """

    SCHEMES = ("direct",)

    def socket(self, *address: int) -> Socket:
        self._opened = Socket(*address)
        return self._opened

    async def sock_connect(self, *call: Any, **options: Any) -> Socket:
        try:
            await super().sock_connect(*call, **options)
        except BaseException:
            self._opened.close()
            raise
        return self._opened


class AdminClient(KafkaAdminClient):  # type: ignore[misc]  # kafka-python is not typed
    """Connects when it is made, and closes what it has opened where no broker answers: kafka-python leaves its thread
    and its sockets behind then.

    Blocks; raises KafkaError or OSError.
    """

    def __init__(self, bootstrap_servers: str, *, connect_ms: int, request_ms: int = 30_000) -> None:
        try:
            super().__init__(
                bootstrap_servers=[server.strip() for server in bootstrap_servers.split(",")],
                client_id=CLIENT_ID,
                bootstrap_timeout_ms=connect_ms,
                request_timeout_ms=request_ms,
                proxy_url="direct://",
            )
        except (KafkaError, OSError):
            self._closed = False  # what `close` looks at
            self.close()
            raise


def id_of(topic: Mapping[str, Any]) -> str:
    """Of a topic as `describe_topics` has it, 32 hex digits; empty for a missing one, and before Kafka 2.8."""
    return str(topic["topic_id"] or "").replace("-", "")
