"""Dead letters are read beside searches, and do not hold them up."""

import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from query_api.dead_letters import reader
from query_api.dead_letters.open_letters import OpenLetters, WantedLetters
from query_api.dead_letters.reader import DeadLetterReader
from query_api.dead_letters.records import PREVIEW_BYTES, LetterRecord, detail, escaped, summary
from query_api.index.follower import Span
from schemas.dead_letters import OMITTED_HEADER, DeadLetterSummary
from schemas.topics import TopicNames
from tests.support.kafka import plaintext


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
    summary = reader.summary

    def noted(record: LetterRecord) -> DeadLetterSummary:
        threads.append(threading.current_thread())
        return summary(record)

    @asynccontextmanager
    async def connected(*_: Any, **__: Any) -> AsyncIterator[OneLetter]:
        yield OneLetter()

    async def one_partition(*_: Any) -> dict[int, Span]:
        return {0: Span(0, 1)}

    monkeypatch.setattr(reader, "summary", noted)
    monkeypatch.setattr(reader, "connected", connected)
    monkeypatch.setattr(reader, "spans_of", one_partition)
    topics = TopicNames("t.")
    letters = DeadLetterReader(lambda: plaintext("broker"), topics, OpenLetters(topics))
    page = await letters.page(WantedLetters(), since_ms=None, before={}, limit=5)
    assert [(letter.position, letter.key) for letter in page.dead_letters] == [("0:0", "c/a")]
    assert threading.main_thread() not in threads
    assert len(threads) == 1


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"caf\xc3\xa9", "café"),
        (b"\x1b]0;owned\x07", "\\x1b]0;owned\\x07"),
        (b"\xff\x00", "\\xff\\x00"),
        ("\u202eright to left\u2066".encode(), "\\u202eright to left\\u2066"),
        (b"one\ntwo", "one\\ntwo"),
    ],
)
def test_what_does_not_print_is_escaped(content: bytes, text: str) -> None:
    assert escaped(content, 100) == text


def test_a_beginning_ends_between_characters() -> None:
    assert escaped("é".encode() * 3, 3) == "é"
    assert escaped("é".encode()[:1], 3) == "\\xc3"


ENVELOPE = b'{"id": "a", "collection": "c", "content": "caf\xc3\xa9", "content_type": "application/pdf"}'


@pytest.mark.parametrize(
    ("value", "headers", "content_bytes"),
    [
        (ENVELOPE, [], 5),
        (ENVELOPE.replace(b'content": "caf\xc3\xa9', b'content_base64": "AP8='), [], 2),
        (ENVELOPE.replace(b'"c"', b'"other"'), [], None),
        (b"%PDF-", [("content-type", b"application/pdf")], 5),
        (b"{", [], None),
        (b"", [(OMITTED_HEADER, b"9 bytes"), ("content-type", b"text/plain")], None),
        (None, [], None),
    ],
)
def test_the_size_is_told_of_the_record_and_of_the_document_in_it(
    value: bytes | None, headers: list[tuple[str, bytes]], content_bytes: int | None
) -> None:
    shown = summary(LetterRecord(0, 5, 0, b"c/a", value, headers))
    assert (shown.bytes, shown.content_bytes) == (None if value is None else len(value), content_bytes)


def test_a_record_that_nobody_wrote_as_a_dead_letter_is_shown_all_the_same() -> None:
    shown = detail(LetterRecord(0, 5, -1, None, b"x" * (PREVIEW_BYTES + 1), [("note", b"\x00")]))
    assert (shown.position, shown.key, shown.source, shown.reason) == ("0:5", None, None, "unknown")
    assert (len(shown.preview), shown.preview_is_all, shown.headers) == (PREVIEW_BYTES, False, {"note": "\\x00"})
