"""Everything sent is confirmed, or sent again."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from aiokafka.errors import KafkaTimeoutError, MessageSizeTooLargeError
from faust.exceptions import ProducerSendError

from indexer.changes import encode_mark
from schemas.errors import MalformedEvent
from schemas.receipts import Receipt
from streams.errors import BrokerRefused
from streams.kafka.records import DeadLetter, SourceRecord
from tests.support.fakes.worker import CONTRIBUTIONS, GENERATION, NAMES, Bench


@pytest.fixture
async def bench() -> Iterator[Bench]:
    made = Bench()
    yield made
    made.close()


def letter(value: bytes = b"bytes") -> DeadLetter:
    error = MalformedEvent("not_json", "It is not JSON.")
    return SourceRecord(3, 8, 0, b"default/a", value).dead_letter(NAMES.documents, "decode", error)


async def test_mark_of_a_commit_follows_all_that_it_changes(bench: Bench) -> None:
    assert await bench.producer.send_commit([(b"default/a", b"1"), (b"default/b", b"2")], {0: (7, 1_000)}) == 2
    assert await bench.producer.send_commit([], {}) == 3
    sent = [(key, value) for key, value, *_ in bench.broker.topics[CONTRIBUTIONS]]
    mark, empty = encode_mark({0: (7, 1_000)}), encode_mark({})
    assert sent == [(b"default/a", b"1"), (b"default/b", b"2"), (None, mark), (None, empty)]


async def test_mark_is_not_sent_before_the_changes_are_confirmed(bench: Bench) -> None:
    failures = [KafkaTimeoutError()]

    def fail_once(_topic: str, value: bytes | None) -> None:
        if value == b"1" and failures:
            raise failures.pop()

    bench.broker.failing = fail_once
    await bench.producer.send_commit([(b"default/a", b"1"), (b"default/b", b"2")], {})
    assert bench.broker.topics[CONTRIBUTIONS][-1][0] is None
    assert len(bench.broker.topics[CONTRIBUTIONS]) == 3


async def test_what_was_not_confirmed_is_sent_again_and_the_rest_is_not(bench: Bench) -> None:
    failures = [KafkaTimeoutError(), ProducerSendError("the broker is away")]

    def fail_on_b(_topic: str, value: bytes | None) -> None:
        if value == b"b" and failures:
            raise failures.pop()

    bench.broker.failing = fail_on_b
    await bench.producer.send_curation([(b"1", b"a"), (b"2", b"b"), (b"3", b"c")])
    assert [value for _, value, *_ in bench.broker.topics[NAMES.curation]] == [b"a", b"b", b"c"]
    assert bench.metrics.registry.get_sample_value("thalweg_retries_total", {"target": "kafka"}) == 2
    assert not bench.progress.waiting_for


async def test_a_receipt_goes_to_the_partition_of_its_source(bench: Bench) -> None:
    await bench.producer.send_receipts(
        [Receipt(key="default/a", outcome="indexed", partition=3, offset=8, generation=GENERATION)]
    )
    [(key, _, partition, _)] = bench.broker.topics[NAMES.indexed]
    assert (key, partition) == (b"default/a", 3)


async def test_a_dead_letter_keeps_key_bytes_and_partition_and_is_counted(bench: Bench) -> None:
    await bench.producer.send_to_dlq([letter()])
    assert bench.broker.topics[NAMES.dead_letters][0][:3] == (b"default/a", b"bytes", 3)
    counted = bench.metrics.registry.get_sample_value("thalweg_dead_letters_total", {"reason": "not_json"})
    assert counted == 1


async def test_a_dead_letter_too_large_for_its_topic_is_sent_empty_and_says_so(bench: Bench) -> None:
    def refuse_large(_topic: str, value: bytes | None) -> None:
        if value:
            raise ProducerSendError("too large") from MessageSizeTooLargeError()

    bench.broker.failing = refuse_large
    await bench.producer.send_to_dlq([letter()])
    [(_, value, _, _)] = bench.broker.topics[NAMES.dead_letters]
    assert value == b""
    assert bench.broker.letters()[0]["thalweg.value.omitted"] == "5 bytes"


async def test_of_several_dead_letters_only_the_too_large_one_is_sent_empty_and_each_is_there_once(
    bench: Bench,
) -> None:
    def refuse_large(_topic: str, value: bytes | None) -> None:
        if value == b"large":
            raise ProducerSendError("too large") from MessageSizeTooLargeError()

    bench.broker.failing = refuse_large
    await bench.producer.send_to_dlq([replace(letter(), value=value) for value in (b"one", b"large", b"two")])
    assert [value for _, value, *_ in bench.broker.topics[NAMES.dead_letters]] == [b"one", b"", b"two"]
    counted = bench.metrics.registry.get_sample_value("thalweg_dead_letters_total", {"reason": "not_json"})
    assert counted == 3


async def test_a_topic_that_does_not_take_the_size_the_settings_allow_stops_the_worker(bench: Bench) -> None:
    def refuse(_topic: str, _value: bytes | None) -> None:
        raise MessageSizeTooLargeError

    bench.broker.failing = refuse
    with pytest.raises(BrokerRefused, match=r"max\.message\.bytes"):
        await bench.producer.send_commit([(b"default/a", b"{}")], {})
