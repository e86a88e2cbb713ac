"""The Faust app and its settings: no tables, no web server, long time-outs, committed reads."""

import asyncio
import hashlib
import socket
from pathlib import Path

import faust

from kafka_client.unreadable_batches import Skip
from schemas.settings import MIB, KafkaConnection
from streams.kafka.transport import LogTransport, credentials
from streams.settings import WorkerSettings

_SESSION_SECONDS = 10.0
_HEARTBEAT_SECONDS = 3.0
_REQUEST_SECONDS = 40.0
_DAY_SECONDS = 24 * 60 * 60.0
_BUFFERED_RECORDS = 1_000
_CRASH_POLL_SECONDS = 0.25
COMMIT_INTERVAL_SECONDS = 1.0  # of offsets to Kafka; a restart repeats so much, harmlessly
# What one fetch brings of a partition, or one record where that is larger. A client returns all it has fetched of one
# partition before it turns to the next, so with megabytes of small documents buffered the graph waited for minutes.
_FETCH_BYTES = 64 * 1024
# A contribution alone fills the 16 KiB that a client sends at once: a slice of documents then took dozens of requests,
# and each follower of the graph dozens of steps.
_SENT_TOGETHER_BYTES = 256 * 1024


def group_name(topic_prefix: str, generation: str) -> str:
    """The consumer group of all workers that fill one generation."""
    return f"{topic_prefix}worker.{generation}"


def instance_name(data_dir: Path, partitions: int) -> str:
    """The worker's name in its group, the same after a restart: at most one worker runs on a data directory.

    By this static membership the broker gives the partitions of a killed worker to the next one at once, not only when
    the session expires. The name includes the documents topic's number of `partitions`: a member that comes back under
    the same name gets the same partitions, so added ones need another name.
    """
    identity = f"{socket.gethostname()}:{data_dir.resolve()}:{partitions}"
    return f"worker-{hashlib.sha256(identity.encode()).hexdigest()[:16]}"


def build_app(
    settings: WorkerSettings,
    connection: KafkaConnection,
    group: str,
    skip: Skip,
    *,
    partitions: int,
) -> faust.App:
    """An app without a web server, tables or exactly-once; topics exist already, made by the admin client.

    It skips the unreadable batches that `skip` names, and stops a partition at others. `partitions` are those of the
    documents topic.
    """
    kafka = settings.kafka
    largest = kafka.max_record_bytes + MIB
    app = faust.App(
        group,
        broker=[f"kafka://{server}" for server in connection.servers],
        broker_credentials=credentials(connection),
        datadir=settings.storage.data_dir / "faust",
        autodiscover=False,
        web_enabled=False,
        topic_disable_leader=True,
        topic_allow_declare=False,
        table_standby_replicas=0,
        key_serializer="raw",
        value_serializer="raw",
        agent_supervisor="mode.supervisors.CrashingSupervisor",
        stream_wait_empty=False,
        stream_buffer_maxsize=_BUFFERED_RECORDS,
        stream_processing_timeout=_DAY_SECONDS,
        broker_commit_interval=COMMIT_INTERVAL_SECONDS,
        broker_commit_livelock_soft_timeout=_DAY_SECONDS,
        broker_heartbeat_interval=_HEARTBEAT_SECONDS,
        broker_session_timeout=_SESSION_SECONDS,
        consumer_group_instance_id=instance_name(settings.storage.data_dir, partitions),
        broker_request_timeout=_REQUEST_SECONDS,
        broker_max_poll_interval=_DAY_SECONDS,
        consumer_auto_offset_reset="earliest",
        consumer_max_fetch_size=_FETCH_BYTES,
        producer_acks=-1,
        producer_max_batch_size=_SENT_TOGETHER_BYTES,
        producer_max_request_size=largest,
        producer_request_timeout=_REQUEST_SECONDS,
    )
    app.transport = LogTransport(app, skip)
    return app


async def until_crashed(app: faust.App) -> None:
    """Raises what made a part of Faust end."""
    while not app.crashed:  # noqa: ASYNC110 -- Faust offers no event for it
        await asyncio.sleep(_CRASH_POLL_SECONDS)
    raise app.crash_reason or RuntimeError("Faust ended without saying why.")
