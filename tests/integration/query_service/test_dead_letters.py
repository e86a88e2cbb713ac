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
from schemas.clock import rfc3339
from schemas.errors import MalformedEvent
from schemas.ids import Position
from schemas.receipts import parse_token
from schemas.refusals import explanation
from schemas.topics import TopicNames, topic_specs
from streams.kafka.records import SourceRecord, letter_headers, omitted_headers
from streams.kafka.topics import ensure_topics
from tests.integration.query_service.live_service import LiveService, serving, settings_for
from tests.support.kafka import Sent, open_producer, plaintext, send_with
from tests.support.waiting import eventually

BEGAN_MS = (int(time.time()) - 20 * 24 * 60 * 60) * 1000  # the topic keeps what is not older than 30 days
POISON = b'\x1b[31m{"id": \x00\xff "caf\xc3\xa9"\n'


class Burials:
    """Buries records as the worker does, and asks the service for them."""

    def __init__(
        self, http: httpx.AsyncClient, producer: KafkaProducer, names: TopicNames, recent: RecentDeadLetters
    ) -> None:
        self.http = http
        self.recent = recent
        self.producer = producer
        self.names = names
        self.topic = names.dead_letters

    def bury(
        self,
        number: int,
        reason: str = "not_json",
        value: bytes | None = POISON,
        *,
        is_omitted: bool = False,
        key: str | None = None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> str:
        """Number n is buried n seconds after the first, in partitions by turns; its position."""
        source_headers = (("content-type", b"text/plain"),)
        key = f"docs/{number}" if key is None else key
        partition = number % 2 if partition is None else partition
        source = SourceRecord(partition, number, 0, key.encode(), value, source_headers)
        letter = source.dead_letter(topic or self.names.documents, "decode", MalformedEvent(reason, f"Fix {number}."))
        headers = omitted_headers(letter) if is_omitted else letter_headers(letter)
        record = Sent(letter.key, b"" if is_omitted else value, headers, partition, BEGAN_MS + 1_000 * number)
        [(partition, offset)] = send_with(self.producer, self.topic, [record])
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
        async with serving(settings) as (http, app):
            yield Burials(http, producer, TopicNames(topic_prefix), app.state.service.recent_dead_letters)


async def test_dead_letters_are_listed_newest_first_over_partitions(
    burials: Burials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "WINDOW_RECORDS", 3)
    assert await burials.page() == {
        "dead_letters": [],
        "next_cursor": None,
        "looked_at": 0,
        "open": 0,
        "open_reasons": [],
    }
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
    assert (page["dead_letters"], page["looked_at"], page["next_cursor"]) == ([], 0, None), "it is known where none are"
    burials.recent.letters.complete_from.clear()  # as of letters that are too old to be remembered
    page = await burials.page(reason="unheard_of")
    assert (page["dead_letters"], page["looked_at"], page["next_cursor"]) == ([], 4, "0:4,1:4")


async def test_dead_letters_of_a_collection_or_document_are_found(
    burials: Burials, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "WINDOW_RECORDS", 1)
    burials.bury(0, key="notes/lost")
    for number in range(1, 30):
        burials.bury(number)
    burials.bury(30, key="notes/kept")
    page = await burials.page(collection="notes")
    assert [letter["key"] for letter in page["dead_letters"]] == ["notes/kept", "notes/lost"]
    assert page["looked_at"] <= 4, "the others are not read"
    [lost] = (await burials.page(document="lost"))["dead_letters"]
    assert (lost["collection"], lost["document_id"]) == ("notes", "lost")
    assert await burials.keys(document="lost", collection="docs") == []
    assert await burials.keys(collection="notes", limit=1) == ["notes/kept"]
    first = await burials.page(collection="notes", limit=1)
    assert await burials.keys(collection="notes", cursor=first["next_cursor"]) == ["notes/lost"]


async def test_of_one_document_only_the_newest_is_open(burials: Burials) -> None:
    first, again = burials.bury(0, key="docs/a"), burials.bury(2, "malformed", key="docs/a")
    other = burials.bury(4, key="docs/b")
    page = await burials.page()
    assert {letter["position"]: letter["state"] for letter in page["dead_letters"]} == {
        first: "superseded",
        again: "open",
        other: "open",
    }
    assert await burials.keys(state="open") == ["docs/b", "docs/a"]
    assert await burials.keys(state="superseded") == ["docs/a"]
    assert await burials.keys(state="resolved") == []
    shown = (await burials.http.get(f"/v1/dead-letters/{first}")).json()
    assert (shown["state"], shown["state_message"]) == (
        "superseded",
        f"It was refused again later: dead letter {again}.",
    )
    assert (shown["reason_title"], shown["advice"].endswith(".")) == ("Not JSON", True)


async def test_refused_setting_is_open_until_another_is_accepted(burials: Burials) -> None:
    key = "docs/settings/chunking"

    def choose(*, is_refused: bool) -> None:
        [(_, offset)] = send_with(burials.producer, burials.names.curation, [Sent(key.encode(), b"{", (), 0)])
        if is_refused:
            burials.bury(offset, key=key, topic=burials.names.curation, partition=0)

    choose(is_refused=True)
    assert await burials.keys(state="open", collection="docs") == [key]
    choose(is_refused=False)
    [letter] = (await burials.page(state="resolved"))["dead_letters"]
    assert (letter["key"], letter["state_message"]) == (key, "It was accepted since, by the record at 0:1.")
    choose(is_refused=True)
    page = await burials.page()
    assert [letter["state"] for letter in page["dead_letters"]] == ["open", "resolved"]
    assert (page["open"], await burials.keys(state="resolved", document="settings/chunking")) == (1, [])


async def test_later_write_resolves_a_letter_also_after_a_restart(live: LiveService) -> None:
    """The stand-in worker refuses nothing: letters are of records that it never saw."""
    kept = Position(*next(iter(parse_token(await live.put("kept.md", "An older text.")).positions.items())))
    await live.search("x", after=str(kept), wait_seconds=20)
    with open_producer(live.kafka) as producer:
        newer = refuse(live, producer, "kept.md", Position(kept.partition, kept.offset + 1))
        first = {name: refuse(live, producer, name, Position(0, 0)) for name in ("repaired.md", "gone.md", "lost.md")}
    page = (await live.http.get("/v1/dead-letters", params={"state": "open"})).json()
    assert (len(page["dead_letters"]), page["open"]) == (4, 4)
    assert page["open_reasons"] == [{"reason": "malformed", "title": explanation("malformed").title, "open": 4}]
    [shown] = (await live.http.get("/v1/documents")).json()["documents"]
    assert (shown["newer_refused"]["dead_letter"], shown["newer_refused"]["reason"]) == (newer, "malformed")
    lost = (await live.http.get("/v1/documents/lost.md")).json()
    assert (lost["status"], lost["dead_letter"], lost["reason"]) == (404, first["lost.md"], "malformed")

    repaired = await live.put("repaired.md", "It was repaired.")
    gone = (await live.http.delete("/v1/documents/gone.md")).json()["token"]
    for token in (repaired, gone):
        await live.search("x", after=token, wait_seconds=20)
    expected = {"kept.md": "open", "repaired.md": "resolved", "gone.md": "resolved", "lost.md": "open"}
    recent = live.service.recent_dead_letters
    await eventually(lambda: recent.open_count == 2)
    assert await states(live.http) == expected
    status = (await live.http.get("/v1/status")).json()
    assert (status["dead_letters_open"], status["dead_letters_open_by_reason"]) == (2, {"malformed": 2})
    assert status["dead_letters_last_day"] == 4
    async with serving(settings_for(live.kafka, live.names.prefix, live.data_dir)) as (http, app):
        later = app.state.service.recent_dead_letters
        await eventually(lambda: later.open_count == 2)
        assert await states(http) == expected


async def states(http: httpx.AsyncClient) -> dict[str, str]:
    letters = (await http.get("/v1/dead-letters")).json()["dead_letters"]
    return {letter["document_id"]: letter["state"] for letter in letters}


def refuse(live: LiveService, producer: KafkaProducer, name: str, position: Position) -> str:
    """The position of a letter for a record of this document that would have stood there."""
    source = SourceRecord(*position, 0, f"default/{name}".encode(), b"x")
    dead = source.dead_letter(live.names.documents, "parse", MalformedEvent("malformed", "Repair it."))
    letter = Sent(dead.key, b"x", letter_headers(dead), position.partition)
    [(partition, offset)] = send_with(producer, live.names.dead_letters, [letter])
    return f"{partition}:{offset}"


async def test_dead_letters_of_a_day_are_counted_by_reason(burials: Burials, kafka: str) -> None:
    day_later_ms = BEGAN_MS + 24 * 60 * 60 * 1000
    for number in range(0, 600, 100):
        burials.bury(number, "bad_key" if number == 500 else "not_json")
    recent = RecentDeadLetters(lambda: plaintext(kafka), burials.names, now_ms=lambda: day_later_ms + 200_000)
    assert (recent.count, recent.open_count, recent.note()) == (None, None, None)
    await recent.count_new()
    assert (recent.count, recent.reasons) == (4, {"not_json": 3, "bad_key": 1}), "two are older than a day"
    burials.bury(600, "bad_key")
    await recent.count_new()
    assert recent.reasons == {"not_json": 3, "bad_key": 2}
    letters = recent.letters
    assert (len(letters.open()), letters.is_judged) == (7, False), "there are no stores that could be asked"
    letters.judge(letters.unjudged(10), {})
    await recent.count_new()
    assert (recent.open_count, recent.open_reasons) == (7, {"not_json": 5, "bad_key": 2})
    note = recent.note() or ""
    assert note.startswith(
        "5 records were refused within a day and are not indexed (Not JSON: 3, No valid document id: 2)"
    )


async def test_one_is_shown_with_its_source_its_reason_and_its_bytes(burials: Burials) -> None:
    burials.bury(0)
    position = burials.bury(7)
    shown = (await burials.http.get(f"/v1/dead-letters/{position}")).json()
    assert shown["source"] == {"topic": burials.names.documents, "partition": 1, "offset": 7, "last_offset": None}
    assert (shown["key"], shown["stage"], shown["reason"], shown["message"]) == (
        "docs/7",
        "decode",
        "not_json",
        "Fix 7.",
    )
    assert (shown["bytes"], shown["headers"]) == (len(POISON), {"content-type": "text/plain"})
    assert (shown["preview"], shown["preview_is_all"]) == ('\\x1b[31m{"id": \\x00\\xff "café"\n', True)
    assert shown["at"] == rfc3339(BEGAN_MS + 7_000)
    raw = await burials.http.get(f"/v1/dead-letters/{position}", params={"raw": True})
    assert (raw.content, raw.headers["content-type"]) == (POISON, "application/octet-stream")


async def test_what_has_no_bytes_says_so(burials: Burials) -> None:
    nothing = burials.bury(0, value=None)
    large = burials.bury(1, value=b"x" * 1_000, is_omitted=True)
    shown = (await burials.http.get(f"/v1/dead-letters/{large}")).json()
    assert (shown["omitted"], shown["preview_is_all"]) == ("1000 bytes", False)
    assert (await burials.http.get(f"/v1/dead-letters/{nothing}")).json()["bytes"] is None
    for position, says in ((nothing, "no value"), (large, f"{burials.names.documents} at 1:1 may still hold them")):
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
