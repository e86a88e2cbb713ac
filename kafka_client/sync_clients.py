"""kafka-python's clients, for code that blocks: commands, and rare requests in a thread."""

from socket import socket as Socket  # noqa: N812  # a method here is called `socket`
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.admin import KafkaAdminClient
from kafka.errors import KafkaError
from kafka.net.inet import KafkaNetSocket

from kafka_client.client_internals import make_closable
from kafka_client.security import kafka_python_options, require_access_blocking
from schemas.settings import KafkaConnection

CLIENT_ID = "thalweg"
CONNECT_MS = 10_000
_DIRECTLY = "direct://"


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

    Blocks; raises KafkaError or OSError, and AccessDenied where waiting does not help.
    """

    def __init__(self, connection: KafkaConnection, *, connect_ms: int = CONNECT_MS, request_ms: int = 30_000) -> None:
        require_access_blocking(connection)
        try:
            super().__init__(
                **_options(connection, connect_ms), client_id=f"{CLIENT_ID}-admin", request_timeout_ms=request_ms
            )
        except (KafkaError, OSError):
            make_closable(self)
            self.close()
            raise


def open_producer(connection: KafkaConnection, *, connect_ms: int = CONNECT_MS, **settings: Any) -> KafkaProducer:
    """A producer whose sends wait for all replicas, and are written once. Raises as AdminClient does."""
    require_access_blocking(connection)
    return KafkaProducer(**_options(connection, connect_ms), client_id=CLIENT_ID, enable_idempotence=True, **settings)


def open_consumer(connection: KafkaConnection, *, connect_ms: int = CONNECT_MS, **settings: Any) -> KafkaConsumer:
    """A consumer of committed records without a group. Raises as AdminClient does."""
    require_access_blocking(connection)
    return KafkaConsumer(
        **_options(connection, connect_ms),
        client_id=CLIENT_ID,
        group_id=None,
        enable_auto_commit=False,
        isolation_level="read_committed",
        **settings,
    )


def answers_metadata(connection: KafkaConnection, *, seconds: float) -> bool:
    """Whether a broker there answers and names a broker that lives. Blocks; raises AccessDenied."""
    try:
        admin = AdminClient(connection, connect_ms=int(seconds * 1000), request_ms=int(seconds * 1000))
    except (KafkaError, OSError):
        return False
    try:
        return bool(admin.describe_cluster()["brokers"])
    except (KafkaError, OSError):
        return False
    finally:
        admin.close()


def _options(connection: KafkaConnection, connect_ms: int) -> dict[str, Any]:
    return {**kafka_python_options(connection), "bootstrap_timeout_ms": connect_ms, "proxy_url": _DIRECTLY}
