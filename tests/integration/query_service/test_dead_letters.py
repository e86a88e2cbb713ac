"""Dead letters on a real Kafka: as the worker leaves them, and as they are listed, filtered, paged and shown."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer

from query_api.dead_letters import reader
from query_api.dead_letters.recent import RecentDeadLetters
from schemas.errors import MalformedEvent
from schemas.topics import TopicNames, topic_specs
from streams.kafka.records import SourceRecord, letter_headers, omitted_headers
from streams.kafka.topics import ensure_topics
from tests.integration.query_service.live_service import serving, settings_for
from tests.support.kafka import Sent, open_producer, plaintext, send_with

BEGAN_MS = 1_790_000_000_000
POISON = b'\x1b[31m{"id": \x00\xff "caf\xc3\xa9"\n'


class Burials:
    """Buries records as the worker does, and asks the service for them."""

    def __init__(self, http: httpx.AsyncClient, producer: KafkaProducer, topic: str) -> None:
        self.http = http
        self._producer = producer
        self.topic = topic

    def bury(
        self, number: int, reason: str = "not_json", value: bytes | None = POISON, *, is_omitted: bool = False
    ) -> str:
        """Number n is buried n seconds after the first, in partitions by turns; its position."""
        source_headers = (("content-type", b"text/plain"),)
        source = SourceRecord(number % 2, number, 0, f"docs/{number}".encode(), value, source_headers)
        letter = source.dead_letter("t.documents.v1", "decode", MalformedEvent(reason, f"Mend {number}."))
        headers = omitted_headers(letter) if is_omitted else letter_headers(letter)
        record = Sent(letter.key, b"" if is_omitted else value, headers, number % 2, BEGAN_MS + 1_000 * number)
        [(partition, offset)] = send_with(self._producer, self.topic, [record])
        return f"{partition}:{offset}"

    async def page(self, **params: Any) -> dict[str, Any]:
        response = await self.http.get("/v1/dead-letters", params=params)
        assert response.status_code == 200, response.text
        page: dict[str, Any] = response.json()
        return page

    async def keys(self, **params: Any) -> list[str]:
        return [letter["key"] for letter in (await self.page(**params))["dead_letters"]]


@pytest.fixture
async def burials(kafka: str, topic_prefix: str, tmp_path: Path) -> AsyncIterator[Burials]:
    settings = settings_for(kafka, topic_prefix, tmp_path)
    await ensure_topics(plaintext(kafka), topic_specs(settings.kafka))
    with open_producer(kafka) as producer:
        async with serving(settings) as (http, _):
            yield Burials(http, producer, TopicNames(topic_prefix).dead_letters)


async def test_they_are_listed_newest_first_page_by_page_whatever_the_partition(
    burials: Burials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "WINDOW_RECORDS", 3)
    assert await burials.page() == {"dead_letters": [], "next_cursor": None, "looked_at": 0}
    for number in range(20):
        burials.bury(number, "bad_key" if number % 5 == 0 else "not_json")
    newest_first = [f"docs/{number}" for number in reversed(range(20))]
    assert await burials.keys() == newest_first
    seen: list[str] = []
    cursor: str | None = None
    while True:
        page = await burials.page(limit=7, **({"cursor": cursor} if cursor else {}))
        seen += [letter["key"] for letter in page["dead_letters"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        burials.bury(100 + len(seen))
    assert seen == newest_first, "what is buried meanwhile moves no page"


async def test_they_are_found_by_reason_and_by_time(burials: Burials, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        burials.bury(number, "bad_key" if number % 5 == 0 else "not_json")
    assert await burials.keys(reason="bad_key") == ["docs/10", "docs/5", "docs/0"]
    assert await burials.keys(reason="bad_key", limit=1) == ["docs/10"]
    since = datetime.fromtimestamp(BEGAN_MS / 1000 + 9, UTC).isoformat()
    assert await burials.keys(since=since) == ["docs/11", "docs/10", "docs/9"]
    assert await burials.keys(since=since, reason="bad_key") == ["docs/10"]
    weeks = int(time.time() - BEGAN_MS / 1000) // (7 * 24 * 60 * 60)
    assert await burials.keys(since=f"{weeks}w") == []
    assert len(await burials.keys(since=f"{weeks + 1}w")) == 12
    monkeypatch.setattr(reader, "LOOKED_AT_MOST", 4)
    monkeypatch.setattr(reader, "WINDOW_RECORDS", 2)
    page = await burials.page(reason="unheard_of")
    assert (page["dead_letters"], page["looked_at"], page["next_cursor"]) == ([], 4, "0:4,1:4")


async def test_those_of_a_day_are_counted_by_reason_and_what_came_since_is_added(burials: Burials, kafka: str) -> None:
    day_later_ms = BEGAN_MS + 24 * 60 * 60 * 1000
    for number in range(0, 600, 100):
        burials.bury(number, "bad_key" if number == 500 else "not_json")
    recent = RecentDeadLetters(lambda: plaintext(kafka), burials.topic, lambda: day_later_ms + 200_000)
    assert (recent.count, recent.notes()) == (None, [])
    await recent.count_new()
    assert (recent.count, recent.reasons) == (4, {"not_json": 3, "bad_key": 1}), "two are older than a day"
    burials.bury(600, "bad_key")
    await recent.count_new()
    assert recent.reasons == {"not_json": 3, "bad_key": 2}
    assert "5 records became dead letters within a day (3 not_json, 2 bad_key)" in recent.notes()[0]


async def test_one_is_shown_with_its_source_its_reason_and_its_bytes(burials: Burials) -> None:
    burials.bury(0)
    position = burials.bury(7)
    shown = (await burials.http.get(f"/v1/dead-letters/{position}")).json()
    assert shown["source"] == {"topic": "t.documents.v1", "partition": 1, "offset": 7, "last_offset": None}
    assert (shown["key"], shown["stage"], shown["reason"], shown["message"]) == (
        "docs/7",
        "decode",
        "not_json",
        "Mend 7.",
    )
    assert (shown["bytes"], shown["headers"]) == (len(POISON), {"content-type": "text/plain"})
    assert (shown["preview"], shown["preview_is_all"]) == ('\\x1b[31m{"id": \\x00\\xff "café"\n', True)
    assert shown["at"].startswith("2026-09-2")
    raw = await burials.http.get(f"/v1/dead-letters/{position}", params={"raw": True})
    assert (raw.content, raw.headers["content-type"]) == (POISON, "application/octet-stream")


async def test_what_has_no_bytes_says_so(burials: Burials) -> None:
    nothing = burials.bury(0, value=None)
    large = burials.bury(1, value=b"x" * 1_000, is_omitted=True)
    shown = (await burials.http.get(f"/v1/dead-letters/{large}")).json()
    assert (shown["omitted"], shown["preview_is_all"]) == ("1000 bytes", False)
    assert (await burials.http.get(f"/v1/dead-letters/{nothing}")).json()["bytes"] is None
    for position, says in ((nothing, "no value"), (large, "t.documents.v1 at 1:1 may still hold them")):
        raw = await burials.http.get(f"/v1/dead-letters/{position}?raw=true")
        assert raw.status_code == 404
        assert says in raw.json()["detail"]


async def test_a_question_that_does_not_fit_is_refused(burials: Burials) -> None:
    for path, status in {
        "/v1/dead-letters?since=yesterday": 422,
        "/v1/dead-letters?cursor=x": 400,
        "/v1/dead-letters/x": 400,
        "/v1/dead-letters/0:1,1:1": 400,
        "/v1/dead-letters/0:99": 404,
        "/v1/dead-letters/9:0": 404,
    }.items():
        response = await burials.http.get(path)
        assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json"), path
