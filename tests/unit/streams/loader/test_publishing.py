"""What a load says while it waits for Kafka."""

import pytest

from streams.loader.publishing import announcing_a_wait
from tests.support.kafka import plaintext
from tests.support.waiting import wait_until


def test_a_broker_that_stands_still_is_announced_while_it_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    said: list[str] = []

    def has_said() -> bool:
        said.append(capsys.readouterr().err)
        return any(said)

    with announcing_a_wait(plaintext("127.0.0.1:9092"), after_seconds=0):
        wait_until(has_said, "the wait is announced")
    assert "".join(said) == (
        "thalweg: Waiting for the Kafka broker at 127.0.0.1:9092, which does not answer. Ctrl-C ends the wait.\n"
    )


def test_a_broker_that_answers_is_not_spoken_of(capsys: pytest.CaptureFixture[str]) -> None:
    with announcing_a_wait(plaintext("127.0.0.1:9092"), after_seconds=3600):
        pass
    assert capsys.readouterr().err == ""
