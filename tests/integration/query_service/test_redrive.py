"""Redriving on a real Kafka: what is sent again, and what never is. The stores are a double."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from aiokafka import AIOKafkaProducer, TopicPartition
from aiokafka.structs import ConsumerRecord

from indexer.schema import DocumentRow
from kafka_client.async_clients import open_consumer, read_range
from kafka_client.unreadable_batches import skip_none
from query_api.dead_letters.conditional_append import ConditionalAppender, TakenOver
from query_api.dead_letters.records import LetterRecord, summary
from query_api.dead_letters.redrive import Redriver, Selection
from query_api.dead_letters.resolution import Verdict
from query_api.ingest.producer import OutgoingRecord
from schemas.dead_letters import ATTEMPTS_HEADER, decode_attempts, skipped_batch_headers
from schemas.errors import MalformedEvent
from schemas.ids import DocumentKey, Position
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames, topic_specs
from streams.kafka.records import SourceRecord, letter_headers, omitted_headers
from streams.kafka.topics import ensure_topics
from tests.support.kafka import plaintext

HEADERS = [("content-type", b"text/plain"), ("origin", b"a test")]


class Stores:
    """`rows` are what they show of documents, `reached` up to which offset by partition."""

    def __init__(self) -> None:
        self.rows: dict[DocumentKey, DocumentRow] = {}
        self.reached: dict[int, int] = {}

    def snapshot(self) -> Any:
        rows = dict(self.rows)
        text = SimpleNamespace(documents=lambda keys: {key: rows[key] for key in keys if key in rows})
        return SimpleNamespace(reached=dict(self.reached), text=text)

    def hold(self, record: ConsumerRecord, *, version: int | None = None, deleted: bool = False) -> None:
        """Index the record, and show what is before it in its partition."""
        key = DocumentKey.parse(record.key.decode())
        gone = record.timestamp if deleted else None
        self.rows[key] = DocumentRow(
            key, version, record.partition, record.offset, record.timestamp, deleted_at_ms=gone
        )
        self.reached[record.partition] = max(record.offset, self.reached.get(record.partition, -1))


@dataclass
class Noted:
    """What a redrive reported."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    looked: int = 0
    of: int = 0

    def to_look_at(self, records: int) -> None:
        self.of = records

    def looked_at(self, letter: LetterRecord, *, matches: bool) -> None:
        self.looked += 1

    def judged(self, letter: LetterRecord, verdict: Verdict, appended: Position | None, topic: str | None) -> None:
        self.verdicts[f"{letter.partition}:{letter.offset}"] = verdict

    @property
    def outcomes(self) -> Counter[str]:
        return Counter(verdict.outcome for verdict in self.verdicts.values())


class Log:
    """Both topics, and the part of the worker that buries records."""

    def __init__(self, servers: str, prefix: str, producer: AIOKafkaProducer) -> None:
        self.servers = servers
        self.names = TopicNames(prefix)
        self.stores = Stores()
        self.producer = producer

    async def publish(
        self, key: str | None, value: bytes | None, headers: Any = HEADERS, partition: int = 0
    ) -> ConsumerRecord:
        sent = await self.producer.send_and_wait(
            self.names.documents, value, key=key and key.encode(), headers=headers, partition=partition
        )
        [record] = [each for each in await self.documents(partition) if each.offset == sent.offset]
        return record

    async def bury(self, record: ConsumerRecord, reason: str = "not_json", *, is_omitted: bool = False) -> str:
        """As the worker does it."""
        letter = source_of(record).dead_letter(record.topic, "decode", MalformedEvent(reason, "Repair it."))  # type: ignore[arg-type]
        return await self.letter(
            record.key,
            b"" if is_omitted else record.value,
            omitted_headers(letter) if is_omitted else letter_headers(letter),
            record.partition,
        )

    async def letter(self, key: bytes | None, value: bytes | None, headers: Any, partition: int = 0) -> str:
        sent = await self.producer.send_and_wait(
            self.names.dead_letters, value, key=key, headers=list(headers), partition=partition
        )
        return f"{sent.partition}:{sent.offset}"

    async def redrive(self, selection: Selection | None = None, *, dry_run: bool = False) -> Noted:
        noted = Noted()
        await self.redriver(noted, dry_run=dry_run).run(selection or Selection())
        return noted

    def redriver(self, noted: Noted, *, dry_run: bool = False) -> Redriver:
        async def read(work: Any) -> Any:
            return work()

        return Redriver(
            topics=self.names,
            locate_broker=lambda: plaintext(self.servers),
            snapshot=self.stores.snapshot,
            read=read,
            skip=skip_none,
            max_record_bytes=KafkaSettings().max_record_bytes,
            dry_run=dry_run,
            progress=noted,
        )

    async def documents(self, partition: int = 0) -> list[ConsumerRecord]:
        return await self.read(self.names.documents, partition)

    async def read(self, topic: str, partition: int = 0) -> list[ConsumerRecord]:
        """What is committed."""
        consumer = await open_consumer(plaintext(self.servers), group_id=None, auto_offset_reset="earliest")
        try:
            place = TopicPartition(topic, partition)
            end = (await consumer.end_offsets([place]))[place]
            return [record async for record in read_range(consumer, place, 0, end)]
        finally:
            await consumer.stop()


def source_of(record: ConsumerRecord) -> SourceRecord:
    return SourceRecord(
        record.partition, record.offset, record.timestamp, record.key, record.value, tuple(record.headers)
    )


@pytest.fixture
async def log(kafka: str, topic_prefix: str) -> AsyncIterator[Log]:
    settings = KafkaSettings.model_validate({"topic_prefix": topic_prefix, "partitions": 2})
    await ensure_topics(plaintext(kafka), topic_specs(settings))
    async with AIOKafkaProducer(bootstrap_servers=kafka) as producer:
        yield Log(kafka, topic_prefix, producer)


async def test_the_original_record_goes_back_to_where_it_came_from(log: Log) -> None:
    await log.publish("docs/other", b"something", partition=1)
    poison = await log.publish("docs/a", b"\x00\xffcut", partition=1)
    letter = await log.bury(poison)
    looked = await log.redrive(dry_run=True)
    assert looked.verdicts == {letter: Verdict("redriven")}
    assert (looked.looked, looked.of) == (1, 1)
    assert len(await log.documents(1)) == 2, "a dry run sends nothing"
    assert (await log.redrive()).verdicts == {letter: Verdict("redriven")}
    again = (await log.documents(1))[-1]
    assert (again.key, again.value) == (poison.key, poison.value)
    own, added = dict(again.headers), dict(again.headers).pop(ATTEMPTS_HEADER)
    assert own == dict(HEADERS) | {ATTEMPTS_HEADER: added}
    [attempt] = decode_attempts(added)
    assert (attempt.number, attempt.letter, attempt.reason) == (1, letter, "not_json")
    assert (attempt.source, attempt.stage) == (f"1:{poison.offset}", "decode")


async def test_redriven_letter_is_not_sent_again(log: Log) -> None:
    poison = await log.publish("docs/a", b"cut")
    letter = await log.bury(poison)
    await log.redrive()
    in_the_log = await log.redrive()
    again = (await log.documents())[-1]
    assert in_the_log.verdicts[letter] == ("already_redriven", f"It was redriven as 0:{again.offset} of {again.topic}.")
    log.stores.hold(again)
    assert (await log.redrive()).verdicts[letter] == ("already_redriven", f"It was redriven as 0:{again.offset}.")
    newer = await log.publish("docs/a", b"newer")
    log.stores.hold(newer)
    replaced = (await log.redrive()).verdicts[letter]
    assert replaced == ("resolved", f"It was indexed since, by the record at 0:{newer.offset}.")
    assert len(await log.documents()) == 3


async def test_record_that_fails_again_is_a_letter_with_its_history(log: Log) -> None:
    record = await log.publish("docs/a", b"cut")
    letters = []
    for number in (1, 2):
        letters.append(await log.bury(record, f"reason_{number}"))
        log.stores.reached = {0: record.offset}
        noted = await log.redrive()
        assert noted.verdicts.pop(letters[-1]).outcome == "redriven"
        assert {verdict.outcome for verdict in noted.verdicts.values()} <= {"already_redriven"}
        record = (await log.documents())[-1]
    await log.bury(record)
    last = summary(LetterRecord.of((await log.read(log.names.dead_letters))[-1]))
    assert last.attempt == 3
    assert [(each.number, each.reason) for each in last.earlier_attempts] == [(1, "reason_1"), (2, "reason_2")]
    assert [each.letter for each in last.earlier_attempts] == letters
    assert len(await log.documents()) == 3


@pytest.mark.parametrize("where", ["stores", "log"])
async def test_newer_record_is_not_replaced_by_a_redriven_older_one(log: Log, where: str) -> None:
    poison = await log.publish("docs/a", b"cut")
    newer = await log.publish("docs/a", b"newer")
    letter = await log.bury(poison)
    if where == "stores":
        log.stores.hold(newer)
    verdict = (await log.redrive()).verdicts[letter]
    assert verdict.outcome == "resolved"
    assert f"0:{newer.offset}" in (verdict.message or "")
    assert len(await log.documents()) == 2


async def test_newer_of_two_letters_wins_in_any_order_of_redrives(
    log: Log,
) -> None:
    older, newer = await log.publish("docs/a", b"older"), await log.publish("docs/a", b"newer")
    late, early = await log.bury(newer), await log.bury(older)
    log.stores.reached = {0: newer.offset}
    only = await log.redrive(Selection(ids=frozenset({Position(0, 1)})))
    assert only.verdicts == {early: Verdict("redriven")}
    again = (await log.documents())[-1]
    assert again.value == b"older"
    log.stores.hold(again)
    assert (await log.redrive()).verdicts[late].outcome == "redriven", "it came after the one that is indexed"
    newest = (await log.documents())[-1]
    assert newest.value == b"newer"
    log.stores.hold(newest)
    assert (await log.redrive()).outcomes == {"already_redriven": 1, "resolved": 1}


async def test_letters_of_one_document_are_sent_in_their_first_order(log: Log) -> None:
    records = [await log.publish("docs/a", str(number).encode()) for number in range(3)]
    for record in (records[1], records[2], records[0]):
        await log.bury(record)
    log.stores.reached = {0: 2}
    await log.redrive()
    assert [record.value for record in (await log.documents())[3:]] == [b"0", b"1", b"2"]


async def test_higher_version_is_redriven_past_a_later_lower_one(log: Log) -> None:
    envelopes = [
        msgspec.json.encode({"id": name, "collection": "docs", "content": "x", "version": 7}) for name in ("a", "b")
    ]
    letters = [await log.bury(await log.publish(f"docs/{name}", envelopes[at], [])) for at, name in enumerate("ab")]
    for name, version in (("a", 6), ("b", 8)):
        log.stores.hold(await log.publish(f"docs/{name}", b"newer"), version=version)
    noted = await log.redrive()
    assert [noted.verdicts[each].outcome for each in letters] == ["redriven", "resolved"]


async def test_two_dead_letters_of_one_record_are_one_redrive(log: Log) -> None:
    poison = await log.publish("docs/a", b"cut")
    first, second = await log.bury(poison), await log.bury(poison)
    noted = await log.redrive()
    assert [noted.verdicts[each].outcome for each in (first, second)] == ["redriven", "already_redriven"]
    assert len(await log.documents()) == 2


async def test_record_that_comes_during_a_redrive_wins(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = [await log.bury(await log.publish(f"docs/{number}", b"cut")) for number in range(3)]
    log.stores.reached = {0: 2}
    append = ConditionalAppender.append

    async def late(self: ConditionalAppender, *arguments: Any, **named: Any) -> list[int]:
        if len(await log.documents()) == 3:
            await log.publish("docs/1", b"newer")
        return await append(self, *arguments, **named)

    monkeypatch.setattr(ConditionalAppender, "append", late)
    noted = await log.redrive()
    assert [noted.verdicts[each].outcome for each in letters] == ["redriven", "resolved", "redriven"]
    newest = {record.key: record.value for record in await log.documents()}
    assert newest[b"docs/1"] == b"newer"
    assert len(await log.documents()) == 6


async def test_redrive_killed_before_its_commit_leaves_nothing(log: Log) -> None:
    letter = await log.bury(await log.publish("docs/a", b"cut"))
    log.stores.reached = {0: 0}
    place = TopicPartition(log.names.documents, 0)
    killed = ConditionalAppender(lambda: plaintext(log.servers), f"{log.names.prefix}redrive", 1024 * 1024)
    stuck, go_on = asyncio.Event(), asyncio.Event()

    async def pause(*_: Any) -> bool:
        stuck.set()
        await go_on.wait()
        return False

    killed._is_overtaken = pause  # type: ignore[method-assign]
    record = OutgoingRecord(b"docs/a", b"cut", (("from", b"the killed one"),))
    appending = asyncio.create_task(killed.append(place, [record], looked_to=0, keyed=True))
    await stuck.wait()
    try:
        assert (await log.redrive()).verdicts[letter].outcome == "redriven"
        go_on.set()
        with pytest.raises(TakenOver):
            await appending
    finally:
        go_on.set()
        await killed.close()
    _, again = await log.documents()
    assert "from" not in dict(again.headers)


async def test_two_redrives_at_the_same_time_send_each_record_once(log: Log) -> None:
    sent = [
        log.producer.send(log.names.documents, b"cut", key=f"docs/{number}".encode(), partition=number % 2)
        for number in range(900)
    ]
    await asyncio.gather(*[await each for each in sent])
    for partition in (0, 1):
        for record in await log.documents(partition):
            letter = source_of(record).dead_letter(record.topic, "decode", MalformedEvent("not_json", "Repair it."))
            await log.producer.send(
                log.names.dead_letters, record.value, record.key, partition, headers=letter_headers(letter)
            )
    await log.producer.flush()
    log.stores.reached = {0: 449, 1: 449}
    one, other = await asyncio.gather(log.redrive(), log.redrive())
    keys = Counter(record.key for record in [*await log.documents(0), *await log.documents(1)])
    assert set(keys.values()) == {2}
    assert one.outcomes["redriven"] + other.outcomes["redriven"] == 900
    assert one.outcomes + other.outcomes == {"redriven": 900, "already_redriven": 900}


async def test_what_cannot_be_sent_again_says_why(log: Log) -> None:
    poison = await log.publish("docs/a", b"cut")

    def moved(**headers: str) -> list[tuple[str, bytes]]:
        letter = source_of(poison).dead_letter(poison.topic, "decode", MalformedEvent("not_json", "Repair it."))
        changed = {f"__connect.errors.{name}": text.encode() for name, text in headers.items()}
        return [(name, changed.get(name, value)) for name, value in letter_headers(letter)]

    graph = log.names.contributions("g0009")
    expected = {
        await log.bury(poison, is_omitted=True): "too large to be kept (3 bytes)",
        await log.letter(None, b"", skipped_batch_headers(poison.topic, 0, 3, 7, "checksum")): "a batch that nobody",
        await log.letter(b"k", b"x", [("a", b"b")]): "do not say which topic it came from",
        await log.letter(b"k", b"x", moved(topic="foreign.v1")): "came from foreign.v1, which is no topic",
        await log.letter(b"k", b"x", moved(topic=graph)): f"The topic {graph} is gone",
        await log.letter(b"k", b"x", moved(partition="7")): "has no partition 7 any more",
        await log.letter(b"k", b"x", moved(offset="900")): f"came from an earlier topic {poison.topic}",
    }
    noted = await log.redrive()
    for letter, why in expected.items():
        verdict = noted.verdicts[letter]
        assert verdict.outcome == "refused", verdict
        assert why in (verdict.message or ""), verdict
    assert len(await log.documents()) == 1


async def test_record_too_large_with_its_history_is_refused_alone(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"docs/a": 10, "docs/b": 90_000, "docs/c": 20}
    letters = [await log.bury(await log.publish(key, b"x" * size)) for key, size in sizes.items()]
    log.stores.reached = {0: 2}
    monkeypatch.setattr("query_api.dead_letters.conditional_append.RECORD_OVERHEAD_BYTES", 60_000)
    noted = Noted()
    redriver = log.redriver(noted)
    redriver._appender = ConditionalAppender(lambda: plaintext(log.servers), f"{log.names.prefix}redrive", 0)
    await redriver.run(Selection())
    assert [noted.verdicts[each].outcome for each in letters] == ["redriven", "refused", "redriven"]
    assert [len(record.value) for record in (await log.documents())[3:]] == [10, 20]


async def test_letters_are_chosen_by_id_reason_collection_and_time(log: Log) -> None:
    keys = {"docs/a": "not_json", "notes/b": "not_json", "docs/c": "too_large"}
    letters = {key: await log.bury(await log.publish(key, b"x"), reason) for key, reason in keys.items()}
    log.stores.reached = {0: 2}
    now_ms = (await log.read(log.names.dead_letters))[-1].timestamp

    async def chosen(**named: Any) -> Mapping[str, Verdict]:
        return (await log.redrive(Selection(**named), dry_run=True)).verdicts

    assert set(await chosen(ids=frozenset({Position(0, 1)}))) == {letters["notes/b"]}
    assert set(await chosen(reasons=frozenset({"not_json"}))) == {letters["docs/a"], letters["notes/b"]}
    assert set(await chosen(collection="docs")) == {letters["docs/a"], letters["docs/c"]}
    assert set(await chosen(collection="docs", reasons=frozenset({"not_json"}))) == {letters["docs/a"]}
    assert set(await chosen(since_ms=now_ms + 1)) == set()
    assert set(await chosen(since_ms=0)) == set(letters.values())


async def test_the_other_topics_are_redriven_too(log: Log) -> None:
    producer, names = log.producer, log.names
    for topic in (names.curation, names.provenance):
        for _ in range(2):
            await producer.send_and_wait(topic, b"bad", key=b"same", partition=0)
        for record in (await log.read(topic))[:1]:
            await log.bury(record)
    noted = await log.redrive()
    assert [verdict.outcome for verdict in noted.verdicts.values()] == ["resolved", "redriven"]
    assert (len(await log.read(names.curation)), len(await log.read(names.provenance))) == (2, 3)
