"""The records of a round: seeded, self-describing, and what each of them means to the oracle."""

import random
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from kafka import KafkaProducer
from kafka.errors import KafkaError

from schemas.ids import is_canary
from tests.bench.poison import KINDS, poison
from tests.support.kafka import Sent, open_producer
from tests.support.oracles.outcome import Change, Outcome
from tests.support.processes.worker import partition_of

COLLECTION = "torture"
STATIONS = 40
ONCE = 0.25  # of the records are of documents that no later one repairs
NUMBER_HEADER = "number"
SEND_SECONDS = 150.0
AGAIN_SECONDS = 0.5
TIME_OUTS = {"request_timeout_ms": 10_000, "delivery_timeout_ms": 40_000}
BURST = 12  # records, at most, that are sent at once
RIVERS = ("Rhine", "Aare", "Thur", "Reuss", "Limmat", "Inn")
TOWNS = ("Basel", "Olten", "Andelfingen", "Luzern", "Zurich", "Scuol", "Brugg")
PEOPLE = ("Ada Lovelace", "Grace Hopper", "Mary Somerville", "Alan Turing", "Sophie Germain")


@dataclass(frozen=True)
class Record:
    """A record to send. `change` is what it means; None for poison, which is refused for `reason`."""

    number: int
    key: str
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    change: Change | None
    reason: str | None = None

    def sent(self) -> Sent:
        return Sent(self.key.encode(), self.value, self.headers, partition_of(self.key))


def title_of(key: str, number: int) -> str:
    """Each title names its document and the record it came with."""
    return f"{key} by record {number}"


def records(seed: int) -> Iterator[Record]:
    """The records of a seed, without end: new texts, the same again, deletes, late versions, poison."""
    random_ = random.Random(seed)
    newest: dict[str, tuple[str, str]] = {}
    versions: dict[str, int] = {}
    number = 0
    while True:
        number += 1
        is_once = random_.random() < ONCE
        name = f"once{number}" if is_once else f"d{random_.randrange(STATIONS)}"
        key = f"{COLLECTION}/{name}"
        header = ((NUMBER_HEADER, str(number).encode()),)
        kind = random_.random()
        is_versioned = not is_once and int(name[1:]) % 4 == 0
        if kind < 0.03:
            bad = poison(COLLECTION, name if kind < 0.015 else f"bad{number}", random_.randrange(KINDS))
            yield Record(number, bad.key, bad.value, (*header, *bad.headers), None, bad.reason)
        elif kind < 0.15 and not is_versioned:
            newest.pop(name, None)
            yield Record(number, key, None, header, Change(key, None, None))
        else:
            same = newest.get(name) if kind < 0.25 else None
            title, text = same or (title_of(key, number), text_of(name, number, random_))
            newest[name] = title, text
            version = None
            if is_versioned:
                late = kind > 0.85
                versions[name] = versions.get(name, 0) + (0 if late else 1)
                version = max(0, versions[name] - (2 if late else 0))
            envelope = {"id": name, "collection": COLLECTION, "title": title, "content": text, "version": version}
            yield Record(number, key, msgspec.json.encode(envelope), header, Change(key, title, version))


def text_of(name: str, number: int, random_: random.Random) -> str:
    """Some paragraphs; names, so that documents share entities; a link."""
    lines = [f"# Station {name}", ""]
    for _ in range(random_.randint(1, 4)):
        person, river, town = random_.choice(PEOPLE), random_.choice(RIVERS), random_.choice(TOWNS)
        seen = f"Station {name} stands at the {river} near {town}. {person} read its gauge at {number % 97} metres"
        told = f"and wrote to {random_.choice(PEOPLE)} in {random_.choice(TOWNS)} of it."
        lines += [f"{seen}, {told}", ""]
    return "\n".join([*lines, f"See [another station](d{random_.randrange(STATIONS)})."])


class Stream:
    """Sends the records of a seed until it is stopped, some at a time, whatever becomes of the broker meanwhile."""

    def __init__(self, servers: str, topic: str, seed: int, records_per_second: float) -> None:
        self.made: dict[int, Record] = {}
        self.confirmed: set[int] = set()
        self._servers = servers
        self._topic = topic
        self._records = records(seed)
        self._pace = random.Random(seed)
        self._rate = records_per_second
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        self._thread.start()

    def abandon(self) -> None:
        """Send no more."""
        self._stop.set()

    def stop(self) -> None:
        """Returns when all that was made is confirmed."""
        self.abandon()
        self._thread.join()
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        """As producers do: what is not confirmed in time is sent again with what follows it, and may so be in the log
        twice."""
        missing: list[Record] = []
        try:
            while missing or not self._stop.is_set():
                with suppress(KafkaError, OSError), open_producer(self._servers, **TIME_OUTS) as producer:
                    missing = self._send_rest(producer, missing)
                    while not missing and not self._stop.is_set():
                        burst = [next(self._records) for _ in range(self._pace.randint(1, BURST))]
                        self.made |= {record.number: record for record in burst}
                        missing = self._send_rest(producer, burst)
                        self._stop.wait(len(burst) / self._rate)
                self._stop.wait(AGAIN_SECONDS)
        except BaseException as error:  # noqa: BLE001 -- shown by `stop`
            self.failure = error

    def _send_rest(self, producer: KafkaProducer, burst: Sequence[Record]) -> list[Record]:
        """Those from the first on that was not confirmed."""
        try:
            futures: list[Any] = []
            for record in burst:
                sent = record.sent()
                futures.append(producer.send(self._topic, sent.value, sent.key, list(sent.headers), sent.partition))
            for record, future in zip(burst, futures, strict=True):
                future.get(SEND_SECONDS)
                self.confirmed.add(record.number)
        except (KafkaError, OSError):
            return [record for record in burst if record.number not in self.confirmed]
        return []


@dataclass(frozen=True)
class Expected:
    """What the log means: the oracle's documents, and by position the outcomes that its receipt may say."""

    outcome: Outcome
    receipts: dict[tuple[int, int], frozenset[str]]
    poison: dict[tuple[int, int], Record]


WON = frozenset({"indexed", "unchanged", "superseded"})
DELETED = frozenset({"deleted", "superseded"})
LATE = frozenset({"superseded"})
REFUSED = frozenset({"dead_lettered"})
FOUND_WHEN_PARSED = frozenset({"unknown_media_type", "media_type_mismatch", "too_deep", "unsafe", "malformed"})
"""Poison that a later record of its document in the same batch replaces before it is parsed."""


def expected(log: Sequence[Any], made: dict[int, Record]) -> Expected:
    """Read the log as a dictionary would be filled from it. `log` are the consumer's records."""
    outcome = Outcome()
    receipts: dict[tuple[int, int], frozenset[str]] = {}
    poison_at: dict[tuple[int, int], Record] = {}
    last: dict[str, tuple[int, int]] = {}
    parsed: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for logged in sorted(log, key=lambda each: (each.partition, each.offset)):
        place = logged.partition, logged.offset
        if is_canary(logged.key.decode(errors="replace")):  # the service sends one after a quiet minute
            receipts[place] = DELETED | WON
            continue
        record = made[int(dict(logged.headers)[NUMBER_HEADER])]
        change = record.change
        if change is None:
            receipts[place], poison_at[place] = REFUSED, record
            if record.reason in FOUND_WHEN_PARSED:
                parsed[record.key].append(place)
        elif not outcome.apply(change):
            receipts[place] = LATE
        else:
            receipts[place] = DELETED if change.text is None else WON
            last[change.document] = place
            for earlier in parsed.pop(change.document, []):
                receipts[earlier] = REFUSED | LATE
    for place in last.values():
        receipts[place] = receipts[place] - LATE
    return Expected(outcome, receipts, poison_at)
