"""Redriving on a real Kafka: what is sent again, and what never is."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.structs import ConsumerRecord

from indexer.schema import DocumentRow
from kafka_client.async_clients import open_reader, read_range
from kafka_client.unreadable_batches import skip_none
from query_api.dead_letters.conditional_append import ConditionalAppender, TakenOver
from query_api.dead_letters.letter_follower import LetterFollower
from query_api.dead_letters.letter_table import LetterFilter
from query_api.dead_letters.redrive import Redrive, Redriver
from query_api.ingest.producer import OutgoingRecord
from query_api.service_health import readiness
from schemas.dead_letters import ATTEMPTS_HEADER, REASON_HEADER, decode_attempts, skipped_batch_headers
from schemas.errors import MalformedEvent
from schemas.ids import DocumentKey, Position
from schemas.redrive import RedriveOrder
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames, topic_specs
from streams.kafka.records import SourceRecord, letter_headers, omitted_headers
from streams.kafka.topics import ensure_topics
from tests.bench.poison import KINDS, TEXT, Sent, envelope, poison
from tests.integration.query_service.live_service import serving, settings_for
from tests.support.kafka import Sent as KafkaRecord
from tests.support.kafka import plaintext, send_with
from tests.support.processes.repaired_worker import REPAIRED
from tests.support.processes.worker import WorkerProcess, client, partition_of, running_worker
from tests.support.waiting import eventually

HEADERS = [("content-type", b"text/plain"), ("origin", b"a test")]


class Log:
    """The topics, the part of the worker that makes dead letters, and stores that show `rows` and have read the
    documents up to `reached` by partition."""

    def __init__(self, servers: str, prefix: str, producer: AIOKafkaProducer) -> None:
        self.locate = lambda: plaintext(servers)
        self.names = TopicNames(prefix)
        self.producer = producer
        self.rows: dict[DocumentKey, DocumentRow] = {}
        self.reached: dict[int, int] = {}

    async def publish(self, key: str, value: bytes, headers: Any = HEADERS, partition: int = 0) -> ConsumerRecord:
        topic = self.names.documents
        sent = await self.producer.send_and_wait(topic, value, key.encode(), partition, headers=headers)
        [record] = [each for each in await self.documents(partition) if each.offset == sent.offset]
        return record

    def index(self, record: ConsumerRecord) -> None:
        key = DocumentKey.parse(record.key.decode())
        self.rows[key] = DocumentRow(key, None, record.partition, record.offset, record.timestamp)
        self.reached[record.partition] = record.offset

    def snapshot(self) -> Any:
        rows = dict(self.rows)
        text = SimpleNamespace(documents=lambda keys: {key: rows[key] for key in keys if key in rows})
        return SimpleNamespace(reached=dict(self.reached), text=text)

    async def refuse(self, record: ConsumerRecord, reason: Any = "not_json", *, is_omitted: bool = False) -> str:
        """The position of the record's dead letter."""
        letter = dead_letter(record, reason)
        value, headers = (b"", omitted_headers) if is_omitted else (record.value, letter_headers)
        return await self.letter(record.key, value, headers(letter), record.partition)

    async def letter(self, key: bytes | None, value: bytes | None, headers: Any, partition: int = 0) -> str:
        sent = await self.producer.send_and_wait(self.names.dead_letters, value, key, partition, headers=list(headers))
        return f"{sent.partition}:{sent.offset}"

    async def redrive(self, *, dry_run: bool = False, remembered: int = 100, **wanted: Any) -> Redrive:
        """As of another process, which remembers so many letters."""
        redrive = Redrive(id="d", order=RedriveOrder(all=True, dry_run=dry_run), wanted=LetterFilter(**wanted))
        redriver = self.redriver(redrive, remembered)
        await redriver.run()
        redrive.failed_again = await redriver.count_failed_again()
        return redrive

    def redriver(self, redrive: Redrive, remembered: int = 100) -> Redriver:
        async def read(work: Any) -> Any:
            return work()

        return Redriver(
            redrive=redrive,
            follower=LetterFollower(self.locate, self.names, capacity=remembered),
            snapshot=self.snapshot,
            read=read,
            skip=skip_none,
            max_record_bytes=KafkaSettings().max_record_bytes,
        )

    async def documents(self, partition: int = 0) -> list[ConsumerRecord]:
        return await self.read(self.names.documents, partition)

    async def read(self, topic: str, partition: int = 0) -> list[ConsumerRecord]:
        """What is committed."""
        place = TopicPartition(topic, partition)
        async with open_reader(self.locate(), group_id=None) as consumer:
            end = (await consumer.end_offsets([place]))[place]
            return [record async for record in read_range(consumer, place, 0, end)]


def dead_letter(record: ConsumerRecord, reason: Any = "not_json") -> Any:
    headers = tuple(record.headers)
    source = SourceRecord(record.partition, record.offset, record.timestamp, record.key, record.value, headers)
    return source.dead_letter(record.topic, "decode", MalformedEvent(reason, "Repair it."))


def outcomes(redrive: Redrive) -> dict[str, str]:
    return {letter.position: letter.outcome for letter in redrive.letters}


@pytest.fixture
async def log(kafka: str, topic_prefix: str) -> AsyncIterator[Log]:
    settings = KafkaSettings.model_validate({"topic_prefix": topic_prefix, "partitions": 2})
    await ensure_topics(plaintext(kafka), topic_specs(settings))
    async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
        yield Log(kafka, topic_prefix, producer)


async def test_original_record_goes_back_once_with_its_history(log: Log) -> None:
    await log.publish("docs/other", b"something", partition=1)
    refused = await log.publish("docs/a", b"\x00\xffcut", partition=1)
    letter = await log.refuse(refused)
    dry = await log.redrive(dry_run=True)
    assert (outcomes(dry), dry.looked_at, dry.to_look_at) == ({letter: "redriven"}, 1, 1)
    assert len(await log.documents(1)) == 2, "a dry run sends nothing"
    assert outcomes(await log.redrive()) == {letter: "redriven"}
    again = (await log.documents(1))[-1]
    assert (again.key, again.value) == (refused.key, refused.value)
    *own, (name, attempts) = again.headers
    assert (own, name) == (HEADERS, ATTEMPTS_HEADER)
    [attempt] = decode_attempts(attempts)
    assert (attempt.number, attempt.letter, attempt.source) == (1, letter, f"1:{refused.offset}")
    assert outcomes(await log.redrive()) == {letter: "already_redriven"}, "it is in the log"
    log.index(again)
    assert outcomes(await log.redrive()) == {letter: "already_redriven"}, "it is in the stores"
    assert len(await log.documents(1)) == 3


async def test_forgotten_letters_are_redriven_and_counted_again(log: Log) -> None:
    letters = [await log.refuse(await log.publish(f"docs/{number}", b"cut")) for number in range(4)]
    log.reached = {0: 3}
    first = await log.redrive(remembered=1)
    assert (outcomes(first), first.looked_at) == (dict.fromkeys(letters, "redriven"), 4)
    letters += [await log.refuse(record) for record in (await log.documents())[4:]]
    log.reached = {0: 7}
    for remembered in (1, 3, 100):
        again = await log.redrive(remembered=remembered, dry_run=True)
        expected = dict.fromkeys(letters[:4], "already_redriven") | dict.fromkeys(letters[4:], "redriven")
        assert outcomes(again) == expected, remembered
    since_ms = (await log.read(log.names.dead_letters))[5].timestamp
    late = await log.redrive(remembered=1, since_ms=since_ms, reasons={"not_json"}, collection="docs", dry_run=True)
    assert set(letters[5:]) <= outcomes(late).keys() <= set(letters[4:])
    one = await log.redrive(remembered=1, ids={Position(0, 1)}, dry_run=True)
    assert outcomes(one) == {letters[1]: "already_redriven"}
    assert outcomes(await log.redrive(collection="other")) == {}


async def test_redriven_records_that_fail_again_are_counted(log: Log) -> None:
    for number in range(3):
        await log.refuse(await log.publish(f"docs/{number}", b"cut"))
    log.reached = {0: 2}
    redrive = Redrive(id="d", order=RedriveOrder(all=True), wanted=LetterFilter())
    redriver = log.redriver(redrive, remembered=1)
    await redriver.run()
    for record in (await log.documents())[3:5]:
        await log.refuse(record)
    assert await redriver.count_failed_again() == 2


async def test_letters_of_one_document_are_sent_in_its_order(log: Log) -> None:
    records = [await log.publish("docs/a", str(number).encode()) for number in range(3)]
    letters = [await log.refuse(records[at]) for at in (1, 2, 0, 0)]
    log.reached = {0: 2}
    redrive = await log.redrive()
    assert Counter(outcomes(redrive).values()) == {"redriven": 3, "already_redriven": 1}
    assert set(outcomes(redrive)) == set(letters), "two letters of one record are one redrive"
    assert [record.value for record in (await log.documents())[3:]] == [b"0", b"1", b"2"]


async def test_record_that_comes_before_the_append_wins(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = [await log.refuse(await log.publish(f"docs/{number}", b"cut")) for number in range(3)]
    log.reached = {0: 2}
    append = ConditionalAppender.append

    async def late(self: ConditionalAppender, *arguments: Any, **named: Any) -> list[int]:
        if len(await log.documents()) == 3:
            await log.publish("docs/1", b"newer")
        return await append(self, *arguments, **named)

    monkeypatch.setattr(ConditionalAppender, "append", late)
    found = outcomes(await log.redrive())
    assert [found[each] for each in letters] == ["redriven", "resolved", "redriven"]
    newest = {record.key: record.value for record in await log.documents()}
    assert (newest[b"docs/1"], len(await log.documents())) == (b"newer", 6)


async def test_redrive_killed_before_its_commit_leaves_nothing(log: Log) -> None:
    letter = await log.refuse(await log.publish("docs/a", b"cut"))
    log.reached = {0: 0}
    killed = ConditionalAppender(log.locate, f"{log.names.prefix}redrive", 1024 * 1024)
    stuck, go_on = asyncio.Event(), asyncio.Event()

    async def pause(*_: Any) -> bool:
        stuck.set()
        await go_on.wait()
        return False

    killed._is_overtaken = pause  # type: ignore[method-assign]
    record = OutgoingRecord(b"docs/a", b"cut", (("from", b"the killed one"),))
    place = TopicPartition(log.names.documents, 0)
    appending = asyncio.create_task(killed.append(place, [record], looked_to=0, keyed=True))
    await stuck.wait()
    try:
        assert outcomes(await log.redrive()) == {letter: "redriven"}
        go_on.set()
        with pytest.raises(TakenOver):
            await appending
    finally:
        go_on.set()
        await killed.close()
    _, again = await log.documents()
    assert "from" not in dict(again.headers)


async def test_two_redrives_at_once_send_each_record_once(log: Log) -> None:
    producer, dead_letters = log.producer, log.names.dead_letters
    keys = [f"docs/{number}".encode() for number in range(900)]
    sent = [await producer.send(log.names.documents, b"cut", key, partition=at % 2) for at, key in enumerate(keys)]
    await asyncio.gather(*sent)
    for record in [*await log.documents(0), *await log.documents(1)]:
        headers = list(letter_headers(dead_letter(record)))
        await producer.send(dead_letters, record.value, record.key, record.partition, headers=headers)
    await producer.flush()
    log.reached = {0: 449, 1: 449}
    one, other = await asyncio.gather(log.redrive(), log.redrive())
    copies = Counter(record.key for record in [*await log.documents(0), *await log.documents(1)])
    assert set(copies.values()) == {2}
    assert one.outcomes["redriven"] + other.outcomes["redriven"] == 900
    assert one.outcomes + other.outcomes == {"redriven": 900, "already_redriven": 900}


async def test_letter_that_cannot_be_sent_again_states_why(log: Log) -> None:
    refused = await log.publish("docs/a", b"cut")

    def moved(**headers: str) -> list[tuple[str, bytes]]:
        changed = {f"__connect.errors.{name}": text.encode() for name, text in headers.items()}
        return [(name, changed.get(name, value)) for name, value in letter_headers(dead_letter(refused))]

    graph = log.names.contributions("g0009")
    expected = {
        await log.refuse(refused, is_omitted=True): "too large to be kept (3 bytes)",
        await log.letter(None, b"", skipped_batch_headers(refused.topic, 0, 3, 7, "checksum")): "a batch that nobody",
        await log.letter(b"k", b"x", [("a", b"b")]): "do not say which topic it came from",
        await log.letter(b"k", b"x", moved(topic="foreign.v1")): "came from foreign.v1, which is not a topic",
        await log.letter(b"k", b"x", moved(topic=graph)): f"The topic {graph} is gone",
        await log.letter(b"k", b"x", moved(partition="7")): "has no partition 7 any more",
        await log.letter(b"k", b"x", moved(offset="900")): f"came from an earlier topic {refused.topic}",
    }
    found = {letter.position: letter for letter in (await log.redrive()).letters}
    for position, why in expected.items():
        assert (found[position].outcome, why in (found[position].message or "")) == ("refused", True), why
    assert len(await log.documents()) == 1


async def test_record_too_large_with_its_history_is_refused_alone(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"docs/a": 10, "docs/b": 90_000, "docs/c": 20}
    letters = [await log.refuse(await log.publish(key, b"x" * size)) for key, size in sizes.items()]
    log.reached = {0: 2}
    monkeypatch.setattr("query_api.dead_letters.conditional_append.RECORD_OVERHEAD_BYTES", 60_000)
    redrive = Redrive(id="d", order=RedriveOrder(all=True), wanted=LetterFilter())
    redriver = log.redriver(redrive)
    redriver._appender = ConditionalAppender(log.locate, f"{log.names.prefix}redrive", 0)
    await redriver.run()
    assert [outcomes(redrive)[each] for each in letters] == ["redriven", "refused", "redriven"]
    assert [len(record.value) for record in (await log.documents())[3:]] == [10, 20]


async def test_settings_and_provenance_are_redriven_too(log: Log) -> None:
    for topic in (log.names.curation, log.names.provenance):
        for _ in range(2):
            await log.producer.send_and_wait(topic, b"bad", b"same", 0)
        await log.refuse((await log.read(topic))[0])
    assert list(outcomes(await log.redrive()).values()) == ["resolved", "redriven"]
    assert (len(await log.read(log.names.curation)), len(await log.read(log.names.provenance))) == (2, 3)


GOOD = 200
SMALL = {"THALWEG_LIMITS__MAX_DOCUMENT_BYTES": "20000"}


def records() -> list[Sent]:
    """Good ones, among them one of each kind that is refused; the last one is good but for a limit."""
    good = [
        Sent(f"mixed/{name}", envelope("mixed", name, content=TEXT.format(name, 7)), None, None)
        for name in map(str, range(GOOD))
    ]
    refused = [poison("mixed", f"kind-{kind}", kind) for kind in range(KINDS)]
    content = TEXT.format("large", 7) + " The river rose." * 2_000
    large = Sent("mixed/large", envelope("mixed", "large", content=content), None, "too_large")
    return [*good[::2], *refused, *good[1::2], large]


class Service:
    """What a person asks of it."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def get(self, path: str, **params: Any) -> Any:
        response = await self._http.get(path, params=params)
        assert response.is_success, response.text
        return response.json()

    async def redrive(self, **order: Any) -> dict[str, Any]:
        """The state once it has ended."""
        begun = await self._http.post("/v1/dead-letters/redrive", json=order)
        assert begun.status_code == 202, begun.text
        state: dict[str, Any] = begun.json()
        async with asyncio.timeout(60):
            while state["state"] == "running":
                state = await self.get(begun.headers["Location"])
        assert state["state"] == "done", state
        return state

    async def refused(self, status: int, **order: Any) -> str:
        response = await self._http.post("/v1/dead-letters/redrive", json=order)
        assert response.status_code == status, response.text
        return str(response.json()["detail"])


def counts(state: Mapping[str, Any]) -> dict[str, int]:
    names = ("matched", "redriven", "resolved", "already_redriven", "refused", "failed_again")
    return {name: state[name] for name in names if state[name]}


async def test_refused_records_are_indexed_once_repaired_and_redriven(
    kafka: str, topic_prefix: str, tmp_path: Path
) -> None:
    """Twelve kinds of them among good records, a worker that is repaired, and redrives."""
    data_dir, sent = tmp_path / "data", records()
    refused = [each for each in sent if each.reason]
    with running_worker(kafka, topic_prefix, data_dir, **SMALL) as worker:
        with client(kafka, topic_prefix) as user:
            made = [
                KafkaRecord(each.key.encode(), each.value, each.headers or (), partition_of(each.key)) for each in sent
            ]
            receipts = user.receipts_of(dict.fromkeys(send_with(user.producer, user.names.documents, made)))
            assert Counter(each.outcome for each in receipts) == {
                "indexed": len(sent) - len(refused),
                "dead_lettered": len(refused),
            }
            letters = user.read_all(user.names.dead_letters)
        worker.stop()
    assert sorted((each.key.decode(), each.value, dict(each.headers)[REASON_HEADER].decode()) for each in letters) == (
        sorted((each.key, each.value, each.reason) for each in refused)
    )
    with running_worker(kafka, topic_prefix, data_dir, "tests.support.processes.repaired_worker") as repaired:
        async with serving(settings_for(kafka, topic_prefix, data_dir)) as (http, app):
            await eventually(lambda: readiness(app.state.service).ready, seconds=60)
            await eventually(lambda: app.state.service.log_identity.topic_id)
            await redrive_all(Service(http), repaired, len(refused))


async def redrive_all(service: Service, repaired: WorkerProcess, refused: int) -> None:
    dry = await service.redrive(all=True, dry_run=True)
    assert (counts(dry), dry["token"]) == ({"matched": refused, "redriven": refused}, None)
    by_limit = await service.redrive(reason="too_large")  # the limit is raised
    assert counts(by_limit) == {"matched": 1, "redriven": 1}
    found = await service.get("/v1/search", q="station large", collection="mixed", after=by_limit["token"])
    assert "large" in {hit["document_id"] for hit in found["hits"]}
    by_release = await service.redrive(all=True)  # the program takes the others, but for the key
    assert counts(by_release) == {
        "matched": refused, "redriven": refused - 1, "already_redriven": 1, "failed_again": 1
    }  # fmt: skip
    documents = await service.get("/v1/documents", collection="mixed", limit=1_000)
    assert documents["next_cursor"] is None
    assert len(documents["documents"]) == GOOD + KINDS, "all but the one without a collection"
    detail = await service.get("/v1/documents/kind-1", collection="mixed")
    assert detail["text"].startswith(REPAIRED)

    listed = (await service.get("/v1/dead-letters", limit=100))["dead_letters"]
    assert len(listed) == refused + 1
    [again] = [letter for letter in listed if letter["attempt"] == 2]
    [before] = again["earlier_attempts"]
    assert (again["reason"], before["number"], before["reason"], before["stage"]) == ("bad_key", 1, "bad_key", "decode")
    once = [letter["position"] for letter in listed if letter is not again]
    assert before["letter"] in once
    open_now = (await service.get("/v1/dead-letters", state="open", limit=100))["dead_letters"]
    assert [letter["position"] for letter in open_now] == [again["position"]], "all others were repaired"
    shown = await service.get(f"/v1/dead-letters/{again['position']}")
    assert shown["headers"] == {"origin": "bench", "content-type": "text/plain"}

    with client(repaired.kafka, repaired.prefix) as user:
        state = await service.redrive(ids=once)
        assert counts(state) == {"matched": refused, "already_redriven": refused}
        newer = user.publish("mixed/kind-1", TEXT.format("newest", 3))
        user.receipt(newer)
        await service.get("/v1/search", q="newest", after=f"{newer[0]}:{newer[1]}")
        state = await service.redrive(collection="mixed")
        assert counts(state) == {"matched": refused - 1, "already_redriven": refused - 2, "resolved": 1}
        [resolved] = [letter for letter in state["letters"] if letter["outcome"] == "resolved"]
        assert (resolved["key"], f"{newer[0]}:{newer[1]}" in resolved["message"]) == ("mixed/kind-1", True)

    assert "There is no dead letter at 0:900 (partition 0 holds 0 to" in await service.refused(404, ids=["0:900"])
    assert "7:1 (the partitions are 0 to 1)" in await service.refused(404, ids=["0:1", "7:1"])
    unheard = await service.redrive(reason="unheard_of")
    assert unheard["matched"] == 0
    assert "no dead letter with the reason unheard_of. Among those there are: " in unheard["message"]
