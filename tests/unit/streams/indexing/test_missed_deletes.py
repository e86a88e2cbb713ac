"""Tombstones that compaction took before the worker had read them."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from indexer.schema import StoredPosition
from schemas.ids import DocumentKey
from streams.indexing.missed_deletes import MissedDeletes, may_have_missed_deletes
from streams.kafka.partition_reader import AWAY
from streams.kafka.records import SourceRecord
from streams.runtime.retry import Retrier
from tests.support.fakes.worker import Bench, upsert

DAY_MS = 86_400_000
RETENTION_MS = 90 * DAY_MS
NOW_MS = 1_000 * DAY_MS
LONG_AGO = NOW_MS - 100 * DAY_MS
YESTERDAY = NOW_MS - DAY_MS


@dataclass
class CompactedPartition:
    """What a partition holds after compaction; `end_offset` is where the next record goes."""

    held: Sequence[SourceRecord]
    end_offset: int
    partition: int = 0

    async def records(self, start: int = 0) -> AsyncIterator[SourceRecord]:
        for record in self.held:
            if record.offset >= start:
                yield record

    async def end(self) -> int:
        return self.end_offset


def record(offset: int, at_ms: int, key: str = "default/a", value: bytes | None = b"{}") -> SourceRecord:
    return SourceRecord(0, offset, at_ms, key.encode(), value)


@pytest.mark.parametrize(
    ("held", "end", "stored", "expected"),
    [
        ([], 11, StoredPosition(10, 0, LONG_AGO), False),  # nothing came since
        ([record(11, YESTERDAY)], 12, StoredPosition(10, 0, LONG_AGO), False),  # no number is missing
        ([record(13, YESTERDAY)], 14, StoredPosition(10, 0, LONG_AGO), True),
        ([record(13, YESTERDAY)], 14, StoredPosition(10, 0, YESTERDAY), False),  # all behind it is young
        ([record(11, LONG_AGO), record(13, YESTERDAY)], 14, StoredPosition(10, 0, LONG_AGO), True),
        ([record(11, YESTERDAY), record(13, YESTERDAY)], 14, StoredPosition(10, 0, LONG_AGO), False),
        ([], 14, StoredPosition(10, 0, LONG_AGO), True),  # the newest records are gone themselves
        ([record(13, YESTERDAY)], 14, StoredPosition(10, 0, 0), True),  # without a time
        ([record(13, YESTERDAY)], 14, StoredPosition(-1, -1), False),  # nothing is stored that could be missed
    ],
)
async def test_missing_offsets_older_than_tombstones_are_kept_are_suspicious(
    held: Sequence[SourceRecord], end: int, stored: StoredPosition, *, expected: bool
) -> None:
    horizon_ms = NOW_MS - RETENTION_MS
    assert await may_have_missed_deletes(CompactedPartition(held, end), stored, horizon_ms) is expected


@dataclass
class Away:
    """A worker that was stopped with three documents, and the log it finds when it comes back."""

    folder: Path
    bench: Bench = field(default_factory=Bench)
    log: CompactedPartition = field(default_factory=lambda: CompactedPartition([], 0))

    def missed_deletes(self) -> MissedDeletes:
        return MissedDeletes(
            open_partition=lambda _partition: self.log,
            documents=self.bench.documents,
            thread=self.bench.thread,
            indexer=self.bench.indexer,
            retrier=Retrier("kafka", AWAY, self.bench.metrics, self.bench.progress, first_wait_seconds=0.001),
            commit_lock=self.bench.commit_lock,
            to_check=self.folder / "missed-deletes.json",
            now_ms=lambda: NOW_MS,
        )

    @property
    def live(self) -> set[str]:
        return {key.document_id for key, row in self.bench.documents.rows.items() if row.live}


@pytest.fixture
async def away(tmp_path: Path) -> Iterator[Away]:
    made = Away(tmp_path)
    await made.bench.indexer.index([upsert(number, f"default/{name}") for number, name in enumerate("abc")])
    yield made
    made.bench.close()


async def test_documents_that_the_log_holds_no_more_are_deleted_from_both_stores(away: Away) -> None:
    away.log = CompactedPartition([record(0, 1_000, "default/a"), record(5, YESTERDAY, "default/d")], 6)
    missed = away.missed_deletes()
    await missed.find(away.bench.documents.positions(), RETENTION_MS)
    assert away.live == {"a", "b", "c"}  # found before the worker reads on, made up for beside it
    await missed.delete()
    assert away.live == {"a"}
    assert set(away.bench.broker.graph()) == {"default/a"}
    later = away.missed_deletes()
    assert later.were_found  # until another generation is live
    away.log = CompactedPartition([], 0)
    await later.delete()
    assert away.live == {"a"}


async def test_what_was_found_is_made_up_for_after_a_restart_that_came_between(away: Away) -> None:
    away.log = CompactedPartition([record(5, YESTERDAY, "default/d")], 6)
    await away.missed_deletes().find(away.bench.documents.positions(), RETENTION_MS)
    await away.bench.indexer.index([upsert(5, "default/d")])
    later = away.missed_deletes()
    await later.find(away.bench.documents.positions(), RETENTION_MS)
    await later.delete()
    assert away.live == {"d"}


async def test_a_document_that_came_again_meanwhile_stays(away: Away) -> None:
    away.log = CompactedPartition([record(0, 1_000, "default/a"), record(2, 1_000, "default/c")], 6)
    missed = away.missed_deletes()
    await missed.find(away.bench.documents.positions(), RETENTION_MS)
    await away.bench.indexer.index([upsert(6, "default/b", text="It is back.")])
    await missed.delete()
    assert away.live == {"a", "b", "c"}
    assert away.bench.documents.rows[DocumentKey("default", "b")].offset == 6


async def test_nothing_is_read_where_nothing_can_be_missed(away: Away) -> None:
    missed = away.missed_deletes()
    await missed.find({0: StoredPosition(2, 0, YESTERDAY)}, RETENTION_MS)
    await missed.delete()
    assert away.live == {"a", "b", "c"}
    assert not missed.were_found
