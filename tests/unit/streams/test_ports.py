"""Free and taken ports."""

import socket
from collections.abc import Iterator

import pytest

from schemas.errors import Exit, InUse
from streams.ports import answers, free_port, is_free, require_free


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_free_port_is_free() -> None:
    port = free_port()

    assert is_free(port)
    assert not answers(port)
    require_free(port, "--port")


def test_a_taken_port_is_named_with_the_option_that_chooses_another(taken_port: int) -> None:
    assert not is_free(taken_port)
    assert answers(taken_port)
    with pytest.raises(InUse, match=f"Port {taken_port} .*--kafka-port") as failure:
        require_free(taken_port, "--kafka-port")
    assert failure.value.exit_code == Exit.IN_USE
