"""How a collection is cut, chosen on a real curation topic and kept by a real worker."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from aiokafka import AIOKafkaProducer

from kafka_client.async_clients import open_producer
from kafka_client.topic_lag import LagMonitor
from kafka_client.unreadable_batches import skip_none
from query_api.index.curation_follower import CurationFollower
from schemas.curation import (
    ChunkingChoice,
    ChunkingEvent,
    LinkingChoice,
    LinkingEvent,
    chunking_key,
    encode_choice,
    linking_key,
)
from schemas.orders import Relinking, relink_key
from schemas.settings import KafkaConnection
from schemas.topics import TopicSpec
from streams.kafka.partition_reader import SettingsTopic
from streams.kafka.topics import ensure_topics
from streams.runtime.partition_progress import Unreadable
from tests.support.kafka import Sent, plaintext, send
from tests.support.processes.worker import Client, client, running_worker
from tests.support.waiting import eventually

TEXT = " ".join(f"Sentence {number} says that river {number} flows to the sea in its bed." for number in range(12))


def choose(user: Client, value: bytes | None) -> None:
    user.send(user.names.curation, chunking_key("rivers"), value)


def test_chunking_choice_applies_to_next_documents_and_rebuilds(kafka: str, tmp_path: Path) -> None:
    prefix = f"choice-{uuid4().hex[:8]}."
    with running_worker(kafka, prefix, tmp_path / "data"), client(kafka, prefix) as user:
        before = user.receipt(user.publish("rivers/rhine", TEXT))
        elsewhere = user.receipt(user.publish("seas/north", TEXT))
        choose(user, encode_choice(ChunkingChoice(child_characters=120, child_overlap=0)))
        after = user.receipt(user.publish("rivers/rhine", TEXT))
        again = user.receipt(user.publish("rivers/rhine", TEXT))
        meaning = ChunkingChoice(method="semantic")
        choose(user, encode_choice(meaning))
        semantic = user.receipt(user.publish("rivers/rhine", TEXT))
        choose(user, b"{")
        kept = user.receipt(user.publish("rivers/rhine", TEXT))
        letters = user.read_all(user.names.dead_letters)
    assert [one.outcome for one in (before, after, again, semantic, kept)] == [
        "indexed",
        "indexed",
        "unchanged",
        "indexed",
        "unchanged",
    ]
    assert after.chunks > before.chunks == elsewhere.chunks
    assert len({before.revision, after.revision, semantic.revision}) == 3
    assert [(dict(letter.headers)["thalweg.reason"], letter.value) for letter in letters] == [(b"not_json", b"{")]
    with running_worker(kafka, prefix, tmp_path / "other"), client(kafka, prefix) as user:
        rebuilt = user.receipt((semantic.partition, kept.offset))
        letters = user.read_all(user.names.dead_letters)
    assert rebuilt.revision == semantic.revision
    assert len(letters) == 1, "a malformed setting is buried once, however often the topic is read"


async def test_settings_topic_returns_new_records_and_keeps_its_offset(kafka: str) -> None:
    name = f"curation-{uuid4().hex[:8]}"
    await ensure_topics(plaintext(kafka), [TopicSpec(name, 1, {"cleanup.policy": "compact"})])
    topic = SettingsTopic(plaintext(kafka), name, f"{name}.settings", skip_none, Unreadable())
    try:
        send(kafka, name, Sent(b"k", b"1"), Sent(b"k", b"2"))
        assert [record.value for record in await topic.new_records()] == [b"1", b"2"]
        assert await topic.new_records() == []
        send(kafka, name, Sent(b"k", None))
        assert [(record.offset, record.value) for record in await topic.new_records()] == [(2, None)]
        assert await topic.checked_offset() == 0
        await topic.store_checked_offset(2)
        assert await topic.checked_offset() == 2
    finally:
        await topic.close()


async def test_follower_keeps_the_newest_of_each_well_formed_setting(kafka: str) -> None:
    name = f"curation-{uuid4().hex[:8]}"
    await ensure_topics(plaintext(kafka), [TopicSpec(name, 1, {"cleanup.policy": "compact"})])
    semantic, tight = ChunkingChoice(method="semantic"), LinkingChoice(similar_above=0.9)
    send(
        kafka,
        name,
        Sent(chunking_key("rivers"), encode_choice(ChunkingChoice(child_characters=120))),
        Sent(chunking_key("rivers"), encode_choice(semantic)),
        Sent(chunking_key("rivers"), b"{"),
        Sent(linking_key("seas"), encode_choice(tight)),
        Sent(linking_key("lakes"), encode_choice(tight)),
        Sent(linking_key("lakes"), None),
        Sent(relink_key("seas", "a1"), encode_choice(Relinking())),
    )
    watch = LagMonitor(lambda: plaintext(kafka), dict)
    follower = CurationFollower(name, lambda: plaintext(kafka), lambda: None, lambda _: None, skip_none)
    async with background(watch.run()), background(follower.run()):
        await follower.read_to(await watch.end_now(name))
        assert follower.events(ChunkingEvent) == [ChunkingEvent("rivers", semantic)]
        assert follower.events(LinkingEvent) == [LinkingEvent("seas", tight), LinkingEvent("lakes", None)]
        assert follower.newest(linking_key("seas")) == (LinkingEvent("seas", tight), (0, 3))
        for position in range(7, 17):
            send(kafka, name, Sent(linking_key("seas"), None if position % 2 else encode_choice(tight)))
            await follower.read_to(await watch.end_now(name))
            assert follower.newest(linking_key("seas")).position == (0, position)
        async with producer_of(plaintext(kafka), transactional_id=name) as producer:
            await producer.begin_transaction()
            await producer.send(name, encode_choice(tight), linking_key("lakes"))
            await producer.commit_transaction()  # its mark comes a moment later: the last offset, and no record
        await eventually(lambda: follower.reached == 18)
        assert follower.newest(linking_key("lakes")) == (LinkingEvent("lakes", tight), (0, 17))
        assert (await watch.end_now(name), follower.linking) == (19, {"seas": tight, "lakes": tight})


@asynccontextmanager
async def background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def producer_of(connection: KafkaConnection, **settings: Any) -> AsyncIterator[AIOKafkaProducer]:
    producer = await open_producer(connection, **settings)
    try:
        yield producer
    finally:
        await producer.stop()
