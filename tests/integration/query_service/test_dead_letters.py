"""Dead letters on a real Kafka: as the worker leaves them, and as they are listed, filtered, paged and shown."""

import threading
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from kafka import KafkaProducer

from query_api.dead_letters import letter_pages
from query_api.dead_letters.letter_follower import LetterFollower
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


class Letters:
    """Refuses records as the worker does, and asks the service for their dead letters."""

    def __init__(
        self, http: httpx.AsyncClient, producer: KafkaProducer, names: TopicNames, follower: LetterFollower
    ) -> None:
        self.http = http
        self.follower = follower
        self.producer = producer
        self.names = names

    def refuse(
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
        """Number n is refused n seconds after the first, in partitions by turns; its position."""
        key = f"docs/{number}" if key is None else key
        partition = number % 2 if partition is None else partition
        source = SourceRecord(partition, number, 0, key.encode(), value, (("content-type", b"text/plain"),))
        letter = source.dead_letter(topic or self.names.documents, "decode", MalformedEvent(reason, f"Fix {number}."))
        headers = omitted_headers(letter) if is_omitted else letter_headers(letter)
        record = Sent(letter.key, b"" if is_omitted else value, headers, partition, BEGAN_MS + 1_000 * number)
        [(partition, offset)] = send_with(self.producer, self.names.dead_letters, [record])
        return f"{partition}:{offset}"

    async def page(self, **params: Any) -> dict[str, Any]:
        response = await self.http.get("/v1/dead-letters", params=params)
        assert response.status_code == 200, response.text
        page: dict[str, Any] = response.json()
        return page

    async def keys(self, **params: Any) -> list[str]:
        return [letter["key"] for letter in (await self.page(**params))["dead_letters"]]


@pytest.fixture
async def letters(kafka: str, topic_prefix: str, tmp_path: Path) -> AsyncIterator[Letters]:
    settings = settings_for(kafka, topic_prefix, tmp_path)
    await ensure_topics(plaintext(kafka), topic_specs(settings.kafka))
    with open_producer(kafka) as producer:
        async with serving(settings) as (http, app):
            yield Letters(http, producer, TopicNames(topic_prefix), app.state.service.dead_letters)


async def test_pages_are_newest_first_across_partitions(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: set[threading.Thread] = set()
    summary = letter_pages.summary
    monkeypatch.setattr(letter_pages, "WINDOW_RECORDS", 3)
    monkeypatch.setattr(
        letter_pages, "summary", lambda *of, **known: threads.add(threading.current_thread()) or summary(*of, **known)
    )
    nothing = {"dead_letters": [], "next_cursor": None, "looked_at": 0, "open": 0, "open_reasons": []}
    assert await letters.page() == nothing
    for number in range(20):
        letters.refuse(number, "bad_key" if number % 5 == 0 else "not_json")
    newest_first = [f"docs/{number}" for number in reversed(range(20))]
    assert await letters.keys() == newest_first
    assert threading.main_thread() not in threads, "large metadata take a second to decode"
    seen: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await letters.page(limit=7, **cursor)
        seen += [letter["key"] for letter in page["dead_letters"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
        letters.refuse(100 + len(seen))
    assert seen == newest_first, "what is refused meanwhile moves no page"


async def test_letters_are_found_by_reason_and_time(letters: Letters, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(12):
        letters.refuse(number, "bad_key" if number % 5 == 0 else "not_json")
    assert await letters.keys(reason="bad_key") == ["docs/10", "docs/5", "docs/0"]
    assert await letters.keys(reason="bad_key", limit=1) == ["docs/10"]
    since = datetime.fromtimestamp(BEGAN_MS / 1000 + 9, UTC).isoformat()
    assert await letters.keys(since=since) == ["docs/11", "docs/10", "docs/9"]
    assert await letters.keys(since=since, reason="bad_key") == ["docs/10"]
    weeks = int(time.time() - BEGAN_MS / 1000) // (7 * 24 * 60 * 60)
    assert await letters.keys(since=f"{weeks}w") == []
    assert len(await letters.keys(since=f"{weeks + 1}w")) == 12
    monkeypatch.setattr(letter_pages, "LOOKED_AT_MOST", 4)
    monkeypatch.setattr(letter_pages, "WINDOW_RECORDS", 2)
    page = await letters.page(reason="unheard_of")
    assert (page["dead_letters"], page["looked_at"], page["next_cursor"]) == ([], 0, None), "it is known where none are"
    letters.follower.table.complete_from.clear()  # as of letters that are too old to be remembered
    page = await letters.page(reason="unheard_of")
    assert (page["dead_letters"], page["looked_at"], page["next_cursor"]) == ([], 4, "0:4,1:4")


async def test_letters_of_one_collection_are_found_among_others(
    letters: Letters, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letter_pages, "WINDOW_RECORDS", 1)
    letters.refuse(0, key="notes/lost")
    for number in range(1, 30):
        letters.refuse(number)
    letters.refuse(30, key="notes/kept")
    page = await letters.page(collection="notes")
    assert [letter["key"] for letter in page["dead_letters"]] == ["notes/kept", "notes/lost"]
    assert page["looked_at"] <= 4, "the others are not read"
    [lost] = (await letters.page(document="lost"))["dead_letters"]
    assert (lost["collection"], lost["document_id"]) == ("notes", "lost")
    assert await letters.keys(document="lost", collection="docs") == []
    first = await letters.page(collection="notes", limit=1)
    assert [letter["key"] for letter in first["dead_letters"]] == ["notes/kept"]
    assert await letters.keys(collection="notes", cursor=first["next_cursor"]) == ["notes/lost"]


async def test_only_newest_letter_of_a_document_is_open(letters: Letters) -> None:
    first, again = letters.refuse(0, key="docs/a"), letters.refuse(2, "malformed", key="docs/a")
    letters.refuse(4, key="docs/b")
    assert await letters.keys(state="open") == ["docs/b", "docs/a"]
    assert await letters.keys(state="resolved") == []
    [superseded] = (await letters.page(state="superseded"))["dead_letters"]
    shown = (await letters.http.get(f"/v1/dead-letters/{first}")).json()
    for each in (superseded, shown):
        assert (each["position"], each["state"]) == (first, "superseded")
        assert each["state_message"] == f"It was refused again later: dead letter {again}."
        assert (each["reason_title"], each["advice"].endswith(".")) == ("Not JSON", True)


async def test_refused_setting_is_open_until_another_is_accepted(letters: Letters) -> None:
    key = "docs/settings/chunking"

    def choose(*, is_refused: bool) -> None:
        [(_, offset)] = send_with(letters.producer, letters.names.curation, [Sent(key.encode(), b"{", (), 0)])
        if is_refused:
            letters.refuse(offset, key=key, topic=letters.names.curation, partition=0)

    choose(is_refused=True)
    assert await letters.keys(state="open", collection="docs") == [key]
    choose(is_refused=False)
    [letter] = (await letters.page(state="resolved"))["dead_letters"]
    assert (letter["key"], letter["state_message"]) == (key, "It was accepted since, by the record at 0:1.")
    choose(is_refused=True)
    page = await letters.page()
    assert [letter["state"] for letter in page["dead_letters"]] == ["open", "resolved"]
    assert (page["open"], await letters.keys(state="resolved", document="settings/chunking")) == (1, [])


async def test_record_indexed_or_deleted_since_resolves_its_letter(live: LiveService) -> None:
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
    recent = live.service.dead_letters
    await eventually(lambda: recent.open_count() == 2)
    assert await states(live.http) == expected
    status = (await live.http.get("/v1/status")).json()
    assert (status["dead_letters_open"], status["dead_letters_open_by_reason"]) == (2, {"malformed": 2})
    assert status["dead_letters_last_day"] == 4
    async with serving(settings_for(live.kafka, live.names.prefix, live.data_dir)) as (http, app):
        later = app.state.service.dead_letters
        await eventually(lambda: later.open_count() == 2)
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


async def test_letters_of_a_day_are_counted_by_reason(letters: Letters, kafka: str) -> None:
    day_later_ms = BEGAN_MS + 24 * 60 * 60 * 1000
    for number in range(0, 600, 100):
        letters.refuse(number, "bad_key" if number == 500 else "not_json")
    recent = LetterFollower(lambda: plaintext(kafka), letters.names, now_ms=lambda: day_later_ms + 200_000)
    assert (recent.count, recent.open_count(), recent.note()) == (None, None, None)
    await recent.count_new()
    assert (recent.count, recent.reasons) == (4, {"not_json": 3, "bad_key": 1}), "two are older than a day"
    letters.refuse(600, "bad_key")
    await recent.count_new()
    assert recent.reasons == {"not_json": 3, "bad_key": 2}
    table = recent.table
    assert (len(table.open()), table.is_asked) == (7, False), "there are no stores that could be asked"
    table.note_rows(table.to_ask(10), {})
    await recent.count_new()
    assert (recent.open_count(), recent.open_reasons()) == (7, {"not_json": 5, "bad_key": 2})
    note = recent.note() or ""
    assert note.startswith(
        "5 records were refused within a day and are not indexed (Not JSON: 3, No valid document id: 2)"
    )


async def test_letter_is_shown_with_its_source_reason_and_bytes(letters: Letters) -> None:
    letters.refuse(0)
    position = letters.refuse(7)
    shown = (await letters.http.get(f"/v1/dead-letters/{position}")).json()
    assert shown["source"] == {"topic": letters.names.documents, "partition": 1, "offset": 7, "last_offset": None}
    assert (shown["key"], shown["stage"], shown["reason"], shown["message"]) == (
        "docs/7",
        "decode",
        "not_json",
        "Fix 7.",
    )
    assert (shown["bytes"], shown["headers"]) == (len(POISON), {"content-type": "text/plain"})
    assert (shown["preview"], shown["preview_is_all"]) == ('\\x1b[31m{"id": \\x00\\xff "café"\n', True)
    assert shown["at"] == rfc3339(BEGAN_MS + 7_000)
    raw = await letters.http.get(f"/v1/dead-letters/{position}", params={"raw": True})
    assert (raw.content, raw.headers["content-type"]) == (POISON, "application/octet-stream")


async def test_letter_without_bytes_states_why(letters: Letters) -> None:
    nothing = letters.refuse(0, value=None)
    large = letters.refuse(1, value=b"x" * 1_000, is_omitted=True)
    shown = (await letters.http.get(f"/v1/dead-letters/{large}")).json()
    assert (shown["omitted"], shown["preview_is_all"]) == ("1000 bytes", False)
    assert (await letters.http.get(f"/v1/dead-letters/{nothing}")).json()["bytes"] is None
    for position, says in ((nothing, "no value"), (large, f"{letters.names.documents} at 1:1 may still hold them")):
        raw = await letters.http.get(f"/v1/dead-letters/{position}?raw=true")
        assert raw.status_code == 404
        assert says in raw.json()["detail"]


async def test_malformed_question_is_refused(letters: Letters) -> None:
    for path, status in {
        "/v1/dead-letters?since=yesterday": 422,
        "/v1/dead-letters?cursor=x": 400,
        "/v1/dead-letters/x": 400,
        "/v1/dead-letters/0:1,1:1": 400,
        "/v1/dead-letters/0:99": 404,
        "/v1/dead-letters/9:0": 404,
    }.items():
        response = await letters.http.get(path)
        assert (response.status_code, response.headers["content-type"]) == (status, "application/problem+json"), path
