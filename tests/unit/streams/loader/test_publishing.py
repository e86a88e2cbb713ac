"""What a load says while it waits for Kafka."""

import asyncio

import pytest

from streams.loader.publishing import telling_of_a_wait


async def test_a_broker_that_stands_still_is_told_of_while_it_is_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    told = ""
    with telling_of_a_wait("127.0.0.1:9092", after_seconds=0):
        async with asyncio.timeout(5):
            while not told:
                await asyncio.sleep(0)
                told = capsys.readouterr().err
    assert told == (
        "thalweg: Waiting for the Kafka broker at 127.0.0.1:9092, which does not answer. Ctrl-C ends the wait.\n"
    )


async def test_a_broker_that_answers_is_not_spoken_of(capsys: pytest.CaptureFixture[str]) -> None:
    with telling_of_a_wait("127.0.0.1:9092", after_seconds=0):
        pass
    for _ in range(3):
        await asyncio.sleep(0)
    assert capsys.readouterr().err == ""
