"""An admin client where no broker answers leaves nothing open behind."""

import gc
import threading
from pathlib import Path

import pytest
from kafka.errors import KafkaError

from kafka_client.sync_clients import AdminClient
from streams.ports import free_port
from tests.support.kafka import plaintext


def open_sockets() -> set[str]:
    """The kernel's names of this process's sockets."""
    return {link for each in Path("/proc/self/fd").iterdir() if (link := _target(each)).startswith("socket:")}


def _target(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:  # the descriptor of the listing itself
        return ""


def test_refused_connections_are_closed_without_the_garbage_collector() -> None:
    port = free_port()
    before, threads = open_sockets(), threading.active_count()
    gc.disable()
    try:
        for _ in range(3):
            with pytest.raises(KafkaError):
                AdminClient(plaintext(f"127.0.0.1:{port}"), connect_ms=300)
        assert open_sockets() == before
    finally:
        gc.enable()
    assert threading.active_count() == threads
