"""How a collection is cut, chosen on a real curation topic and kept by a real worker."""

from pathlib import Path
from uuid import uuid4

from aiokafka import AIOKafkaProducer

from kafka_client.unreadable_batches import skip_none
from query_api.index.collection_settings import SettingsReader
from schemas.curation import (
    ChunkingChoice,
    ChunkingEvent,
    LinkingChoice,
    LinkingEvent,
    Relinking,
    chunking_key,
    encode_choice,
    linking_key,
    relink_key,
)
from schemas.topics import TopicSpec
from streams.kafka.partition_reader import SettingsTopic
from streams.kafka.topics import ensure_topics
from streams.runtime.progress import Unreadable
from tests.support.kafka import plaintext
from tests.support.processes.worker import Client, client, running_worker

TEXT = " ".join(f"Sentence {number} says that river {number} flows to the sea in its bed." for number in range(12))


async def choose(user: Client, value: bytes | None) -> None:
    await user.producer.send_and_wait(user.names.curation, value, key=chunking_key("rivers"))


async def test_a_choice_counts_for_the_next_document_and_for_all_when_the_stores_come_back_from_the_log(
    kafka: str, tmp_path: Path
) -> None:
    prefix = f"choice-{uuid4().hex[:8]}."
    with running_worker(kafka, prefix, tmp_path / "data"):
        async with client(kafka, prefix) as user:
            before = await user.receipt(await user.publish("rivers/rhine", TEXT))
            elsewhere = await user.receipt(await user.publish("seas/north", TEXT))
            await choose(user, encode_choice(ChunkingChoice(child_characters=120, child_overlap=0)))
            after = await user.receipt(await user.publish("rivers/rhine", TEXT))
            again = await user.receipt(await user.publish("rivers/rhine", TEXT))
            meaning = ChunkingChoice(method="semantic")
            await choose(user, encode_choice(meaning))
            semantic = await user.receipt(await user.publish("rivers/rhine", TEXT))
            await choose(user, b"{")
            kept = await user.receipt(await user.publish("rivers/rhine", TEXT))
            letters = await user.read_all(user.names.dead_letters)
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
    with running_worker(kafka, prefix, tmp_path / "other"):
        async with client(kafka, prefix) as user:
            rebuilt = await user.receipt((semantic.partition, kept.offset))
            letters = await user.read_all(user.names.dead_letters)
    assert rebuilt.revision == semantic.revision
    assert len(letters) == 1, "a malformed setting is buried once, however often the topic is read"


async def test_the_topic_is_read_to_its_end_whenever_asked_and_keeps_what_was_judged(kafka: str) -> None:
    name = f"curation-{uuid4().hex[:8]}"
    await ensure_topics(plaintext(kafka), [TopicSpec(name, 1, {"cleanup.policy": "compact"})])
    producer = AIOKafkaProducer(bootstrap_servers=kafka, acks="all")
    await producer.start()
    topic = SettingsTopic(plaintext(kafka), name, f"{name}.settings", skip_none, Unreadable())
    try:
        for value in (b"1", b"2"):
            await producer.send_and_wait(name, value, key=b"k", partition=0)
        assert [record.value for record in await topic.new_records()] == [b"1", b"2"]
        assert await topic.new_records() == []
        await producer.send_and_wait(name, None, key=b"k", partition=0)
        assert [(record.offset, record.value) for record in await topic.new_records()] == [(2, None)]
        assert await topic.checked_offset() == 0
        await topic.store_checked_offset(2)
        assert await topic.checked_offset() == 2
    finally:
        await topic.close()
        await producer.stop()


async def test_the_service_reads_the_newest_of_every_setting_and_passes_over_what_is_malformed(kafka: str) -> None:
    name = f"curation-{uuid4().hex[:8]}"
    await ensure_topics(plaintext(kafka), [TopicSpec(name, 1, {"cleanup.policy": "compact"})])
    producer = AIOKafkaProducer(bootstrap_servers=kafka, acks="all")
    await producer.start()
    semantic, tight = ChunkingChoice(method="semantic"), LinkingChoice(similar_above=0.9)
    try:
        for key, value in (
            (chunking_key("rivers"), encode_choice(ChunkingChoice(child_characters=120))),
            (chunking_key("rivers"), encode_choice(semantic)),
            (chunking_key("rivers"), b"{"),
            (linking_key("seas"), encode_choice(tight)),
            (linking_key("lakes"), encode_choice(tight)),
            (linking_key("lakes"), None),
            (relink_key("seas", "a1"), encode_choice(Relinking())),
        ):
            await producer.send_and_wait(name, value, key=key, partition=0)
    finally:
        await producer.stop()
    stated = await SettingsReader(lambda: plaintext(kafka), name).settings()
    assert [(one.event, one.position and one.position.offset) for one in stated] == [
        (ChunkingEvent("rivers", semantic), 1),
        (LinkingEvent("seas", tight), 3),
        (LinkingEvent("lakes", None), 5),
    ]
    assert (await SettingsReader(lambda: plaintext(kafka), name).newest(linking_key("seas"))).event == stated[1].event
