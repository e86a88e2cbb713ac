"""Dead letters are read beside searches, and do not hold them up."""

import threading
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from query_api.dead_letters import topic_reader
from query_api.dead_letters.description import LetterRecord
from query_api.dead_letters.topic_reader import DeadLetterReader
from query_api.index.follower import Span
from schemas.dead_letters import DeadLetterSummary
from tests.connections import plaintext


class OneLetter:
    """A consumer of a topic that holds one record."""

    def __init__(self) -> None:
        self._at = 0

    def assign(self, places: list[TopicPartition]) -> None:
        self._at = 0

    def seek(self, place: TopicPartition, offset: int) -> None:
        self._at = offset

    async def position(self, place: TopicPartition) -> int:
        return self._at

    async def getmany(self, place: TopicPartition, **_: Any) -> dict[TopicPartition, list[Any]]:
        self._at = 1
        return {place: [ConsumerRecord("d", 0, 0, 7, 0, b"c/a", b"{}", None, 3, 2, ())]}

    async def stop(self) -> None:
        pass


async def test_letters_are_decoded_outside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that were refused for their metadata are just those that take a second."""
    threads = []
    summary = topic_reader.summary

    def noted(record: LetterRecord) -> DeadLetterSummary:
        threads.append(threading.current_thread())
        return summary(record)

    async def connected(*_: Any, **__: Any) -> OneLetter:
        return OneLetter()

    async def one_partition(*_: Any) -> dict[int, Span]:
        return {0: Span(0, 1)}

    monkeypatch.setattr(topic_reader, "summary", noted)
    monkeypatch.setattr(topic_reader, "connect", connected)
    monkeypatch.setattr(topic_reader, "spans_of", one_partition)
    page = await DeadLetterReader(lambda: plaintext("broker"), "d").page(reason=None, since_ms=None, before={}, limit=5)
    assert [(letter.position, letter.key) for letter in page.dead_letters] == [("0:0", "c/a")]
    assert threading.main_thread() not in threads
    assert len(threads) == 1
