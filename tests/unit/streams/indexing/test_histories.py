"""Whatever is delivered, how often, and wherever the worker dies: the stores end as one reader of the log would."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings

from schemas.ids import Position
from schemas.settings import LimitSettings
from streams.kafka.records import SourceRecord
from streams.verification.ledger import Ledger, Letters
from tests.support.effort import examples
from tests.support.fakes.worker import NAMES, Bench, upsert
from tests.support.oracles.document_log import BAD, Crash, History, countdown, deliver, good, histories
from tests.support.oracles.outcome import Outcome

TOPICS = {NAMES.contributions("g0001"): "graph", NAMES.indexed: "indexed", NAMES.dead_letters: "dead-letters"}


class Worker:
    """The indexer on stores in memory, which outlive it."""

    def __init__(self) -> None:
        self.bench = Bench()

    async def index(self, records: Sequence[SourceRecord], crash: Crash | None) -> None:
        come_to = countdown(crash)
        self.bench.documents.failing = come_to
        self.bench.broker.failing = lambda topic, _value: come_to(TOPICS[topic])
        await self.bench.indexer.index(records)

    def restart(self) -> None:
        self.bench = self.bench.restarted()


def content(bench: Bench) -> dict[str, Any]:
    """All that a digest of content is made of: no offsets, times or versions."""
    rows = {str(key): row for key, row in bench.documents.rows.items() if row.live}
    return {
        "documents": {key: (row.revision, row.title, row.chunks, row.passages) for key, row in rows.items()},
        "chunks": {str(key): chunks for key, chunks in bench.documents.chunks.items()},
        "graph": bench.broker.graph(),
    }


@settings(
    max_examples=examples(150, 5_000), deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=False
)
@given(histories)
async def test_any_delivery_leaves_what_the_log_says(history: History) -> None:
    log = history.log()
    worker = Worker()
    await deliver(log, history.takes, worker)
    outcome = Outcome.of(good(history.changes))

    fresh = Bench()
    for offset, (key, document) in enumerate(outcome.live.items()):
        await fresh.indexer.index([upsert(offset, key, document.text or "")])
    assert content(worker.bench) == content(fresh)
    rows = worker.bench.documents.rows
    assert {str(key): row.version for key, row in rows.items()} == {
        key: document.version for key, document in outcome.documents.items()
    }
    _check_receipts(worker.bench, log)
    _check_ledger(worker.bench, log)
    worker.bench.close()
    fresh.close()


def _check_receipts(bench: Bench, log: dict[int, list[SourceRecord]]) -> None:
    """Each record was accounted for, and only what is bad is in dead letters, with the bytes it came with."""
    told: dict[tuple[int, int], set[str]] = defaultdict(set)
    for receipt in bench.broker.receipts():
        told[receipt.partition, receipt.offset].add(receipt.outcome)
    records = {(record.partition, record.offset): record for records in log.values() for record in records}
    assert told.keys() == records.keys()
    bad = {place for place, record in records.items() if _is_bad(record)}
    for place, outcomes in told.items():
        allowed = {"dead_lettered", "superseded"} if place in bad else {"indexed", "unchanged", "deleted", "superseded"}
        assert outcomes <= allowed, f"the record at {place} was {outcomes}"
    for key, value, partition, headers in bench.broker.topics[NAMES.dead_letters]:
        place = (partition or 0, int(dict(headers)["__connect.errors.offset"]))
        assert place in bad
        assert (key, value) == (records[place].key, records[place].value)


def _check_ledger(bench: Bench, log: dict[int, list[SourceRecord]]) -> None:
    """It balances, of all records and of those that compaction leaves."""
    letters = {
        Position(partition or 0, int(dict(headers)["__connect.errors.offset"]))
        for _, _, partition, headers in bench.broker.topics[NAMES.dead_letters]
    }
    reached = {partition: stored.offset for partition, stored in bench.documents.stored.items()}
    whole = [record for partition in log.values() for record in partition]
    compacted = {(record.partition, record.key): record for record in whole}
    for records in (whole, list(compacted.values())):
        ledger = Ledger(bench.documents.rows.values(), reached, Letters(letters, {}), LimitSettings())
        for record in records:
            ledger.add(record)
        report = ledger.report()
        assert report.imbalances == ()
        outcomes = (report.indexed, report.superseded, report.deleted, report.dead_lettered)
        assert (sum(outcomes), report.pending, report.undecided) == (len(records), 0, 0)


def _is_bad(record: SourceRecord) -> bool:
    return any(text.encode() in (record.value or b"") for text in BAD)
