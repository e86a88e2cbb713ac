"""`python -m tests.bench.poison`: 20,000 small records with 1 % poison of twelve kinds, beside as many without.

They go in sixteen short rounds, clean, poisoned, poisoned, clean and so on, so that neither a store that grows nor a
machine that others use counts against one of them; the loss is that of the medians. Vectors come from feature hashing,
so that an encoder does not hide what poison costs. None of the kinds uses up a limit of the
parser: a document that does costs what the limits allow, by design.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition

from schemas.dead_letters import CONNECT_PREFIX, REASON_HEADER
from schemas.settings import KafkaSettings
from schemas.topics import TopicNames
from streams.loader.publishing import Published, follow, open_producer, open_receipts
from tests.bench.bench import commit, machine, say
from tests.support.kafka import plaintext
from tests.support.processes.installation import Installation, installation

NAMES = TopicNames(KafkaSettings().topic_prefix)
ROUNDS = ("clean", "poisoned", "poisoned", "clean") * 4
EVERY = 100  # one record in so many is poison
TOLD = ("topic", "partition", "offset", "connector.name", "task.id", "stage", "class.name", "exception.class.name",
        "exception.message")  # fmt: skip
TEXT = "Station {} measured the river at {} metres. The bed had moved since the last flood, and boats kept to the bank."


@dataclass(frozen=True)
class Sent:
    """A record to publish; `reason` is the one it is to be refused for, None for a good one."""

    key: str
    value: bytes
    content_type: str | None
    reason: str | None

    @property
    def headers(self) -> list[tuple[str, bytes]]:
        return [("origin", b"bench")] + ([("content-type", self.content_type.encode())] if self.content_type else [])


def envelope(collection: str, name: str, **fields: Any) -> bytes:
    return json.dumps({"id": name, "collection": collection, "content": "Words."} | fields).encode()


def nested(levels: int) -> Any:
    inner: Any = 1
    for _ in range(levels):
        inner = [inner]
    return inner


def poison(collection: str, name: str, kind: int) -> Sent:
    """One record of each of the twelve kinds."""
    key = f"{collection}/{name}"
    entity = b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/hosts">]><r>&a;</r>'
    kinds = (
        Sent(f"{collection}-{name}", b"x", "text/plain", "bad_key"),
        Sent(key, envelope(collection, "another"), None, "key_mismatch"),
        Sent(key, envelope(collection, name)[:-3], None, "not_json"),
        Sent(key, envelope(collection, name, content=7), None, "wrong_type"),
        Sent(key, envelope(collection, name, content=" "), None, "empty_content"),
        Sent(key, envelope(collection, name, metadata={"a": nested(100)}), None, "metadata_too_deep"),
        Sent(key, envelope(collection, name, metadata={"a": "x" * 100_000}), None, "metadata_too_large"),
        Sent(key, b"x", "image/unheard-of", "unknown_media_type"),
        Sent(key, b"%PDF-1.7 words", "text/plain", "media_type_mismatch"),
        Sent(key, b"[" * 5_000 + b"]" * 5_000, "application/json", "too_deep"),
        Sent(key, entity, "application/xml", "unsafe"),
        Sent(key, b"PK\x03\x04 and then nothing of it", DOCX, "malformed"),
    )
    return kinds[kind % len(kinds)]


DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
KINDS = 12


def records(collection: str, count: int, *, poisoned: bool) -> Iterator[Sent]:
    for number in range(count):
        name = f"{number:06}"
        if poisoned and number % EVERY == EVERY // 2:
            yield poison(collection, name, number // EVERY)
        else:
            text = TEXT.format(f"{collection} {number}", number % 97)
            yield Sent(f"{collection}/{name}", envelope(collection, name, content=text), None, None)


def publish(servers: str, sent: Sequence[Sent]) -> tuple[float, dict[tuple[int, int], Sent]]:
    """(records a second until every record has its receipt, what was sent where)."""
    kafka = KafkaSettings()
    published = Published()
    places: dict[tuple[int, int], Sent] = {}
    connection = plaintext(servers)
    with open_receipts(kafka, connection) as receipts, open_producer(kafka, connection) as producer:
        started = time.perf_counter()
        waiting = []
        for one in sent:
            key = one.key.encode()
            waiting.append(producer.send(NAMES.documents, one.value, key, headers=list(one.headers or ())))
        for one, confirmed in zip(sent, [each.get() for each in waiting], strict=True):
            published.first.setdefault(confirmed.partition, confirmed.offset)
            published.reached[confirmed.partition] = confirmed.offset
            places[confirmed.partition, confirmed.offset] = one
        followed = follow(receipts, published, timeout_seconds=300)
        seconds = time.perf_counter() - started
    counted = Counter(one.reason is None for one in sent)
    expected = {"indexed": counted[True]} | ({"dead_lettered": counted[False]} if counted[False] else {})
    if dict(followed.outcomes) != expected:
        raise SystemExit(f"The receipts say {dict(followed.outcomes)}; expected was {expected}.")
    return len(sent) / seconds, places


async def letters(servers: str) -> list[Any]:
    """Everything on the dead letters topic."""
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, enable_auto_commit=False, auto_offset_reset="earliest")
    await consumer.start()
    try:
        places = [TopicPartition(NAMES.dead_letters, number) for number in range(KafkaSettings().partitions)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        ends = await consumer.end_offsets(places)
        found: list[Any] = []
        while any([await consumer.position(place) < ends[place] for place in places]):
            for messages in (await consumer.getmany(timeout_ms=500)).values():
                found += messages
        return found
    finally:
        await consumer.stop()


def faults(found: Sequence[Any], places: dict[tuple[int, int], Sent]) -> list[str]:
    """What is wrong with the dead letters: each bad record once, as it came, with every header, and nothing else."""
    wrong = []
    seen: Counter[tuple[int, int]] = Counter()
    for letter in found:
        headers = {name: value.decode() for name, value in letter.headers}
        lacking = [name for name in TOLD if not headers.get(CONNECT_PREFIX + name)]
        if lacking:
            wrong.append(f"a dead letter of {letter.key!r} lacks the headers {lacking}")
            continue
        place = (int(headers[CONNECT_PREFIX + "partition"]), int(headers[CONNECT_PREFIX + "offset"]))
        seen[place] += 1
        sent = places.get(place)
        told = (letter.key, letter.value, headers.get(REASON_HEADER), headers.get("origin"))
        if sent is None or told != (sent.key.encode(), sent.value, sent.reason, "bench"):
            wrong.append(f"the record at {place} is there as {told[0]!r}, {told[2]}; sent was {sent and sent.reason}")
    bad = {place for place, sent in places.items() if sent.reason is not None}
    wrong += [f"the record at {place}, {places[place].reason}, is in no dead letter" for place in bad - seen.keys()]
    wrong += [f"the record at {place} is in {times} dead letters" for place, times in seen.items() if times > 1]
    return wrong


def measure(thalweg: Installation, count: int) -> dict[str, Any]:
    rates: dict[str, list[float]] = {"clean": [], "poisoned": []}
    places: dict[tuple[int, int], Sent] = {}
    publish(thalweg.kafka, list(records("warm", 500, poisoned=False)))
    worker = thalweg.child("worker")
    for number, name in enumerate(ROUNDS):
        sent = list(records(f"round{number}", count * 2 // len(ROUNDS), poisoned=name == "poisoned"))
        rate, put = publish(thalweg.kafka, sent)
        say(f"{name}: {rate:,.0f} records/s")
        rates[name].append(rate)
        places |= put
    wrong = faults(asyncio.run(letters(thalweg.kafka)), places)
    if thalweg.child("worker") != worker:
        wrong.append("the worker was started again")
    reasons = Counter(sent.reason for sent in places.values() if sent.reason)
    return {
        "records": count,
        "poison": dict(sorted(reasons.items())),
        "records_per_second": {name: [round(rate, 1) for rate in found] for name, found in rates.items()},
        "loss": round(1 - median(rates["poisoned"]) / median(rates["clean"]), 4),
        "faults": wrong,
        "machine": machine(),
        "commit": commit(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=20_000, help="of each sort, poisoned and clean")
    count = parser.parse_args().records
    with (
        tempfile.TemporaryDirectory() as folder,
        installation(Path(folder) / "data", THALWEG_EMBEDDING__PROVIDER="hashing") as thalweg,
    ):
        measured = measure(thalweg, count)
    print(json.dumps(measured))
    if measured["faults"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
