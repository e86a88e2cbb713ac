"""The ledger names what became of each record, and what does not balance."""

from collections.abc import Iterable, Sequence

from indexer.schema import DocumentRow
from schemas.ids import DocumentKey, Position
from schemas.settings import LimitSettings
from streams.kafka.records import SourceRecord
from streams.verification.ledger import (
    MISSING,
    OUTDATED,
    UNDELETED,
    UNKNOWN,
    UNREADABLE,
    UNREPORTED,
    Ledger,
    LedgerReport,
    Letters,
)
from tests.support.fakes.worker import delete, upsert

NEVER_REMOVED = Letters(frozenset(), {})


def row(offset: int, key: str = "default/a", partition: int = 0, **fields: object) -> DocumentRow:
    values = {"version": None, "timestamp_ms": 1_000 + offset, "revision": "r"} | fields
    return DocumentRow(key=DocumentKey.parse(key), partition=partition, offset=offset, **values)  # type: ignore[arg-type]


def tombstone(offset: int, key: str = "default/a") -> DocumentRow:
    return row(offset, key, revision=None, deleted_at_ms=1_000 + offset)


def ledger(
    log: Iterable[SourceRecord],
    rows: Sequence[DocumentRow],
    letters: Letters = NEVER_REMOVED,
    reached: dict[int, int] | None = None,
) -> LedgerReport:
    kept = Ledger(rows, {0: 100, 1: 100} if reached is None else reached, letters, LimitSettings())
    for record in log:
        kept.add(record)
    return kept.report()


def imbalances(report: LedgerReport) -> dict[str, tuple[str, ...]]:
    return {each.what: each.documents for each in report.imbalances}


def malformed(offset: int, key: str = "default/bad") -> SourceRecord:
    return SourceRecord(0, offset, 1_000 + offset, key.encode(), b"{")


def test_every_record_has_one_outcome() -> None:
    log = [upsert(0), upsert(1), upsert(2, "default/b"), delete(3, "default/b"), malformed(4), upsert(5, "default/c")]
    report = ledger(
        log, [row(1), tombstone(3, "default/b"), row(5, "default/c")], Letters({Position(0, 4)}, {}), {0: 5}
    )
    assert report.balanced
    assert (report.records, report.indexed, report.superseded, report.deleted, report.dead_lettered) == (6, 2, 2, 1, 1)


def test_canaries_stand_in_no_count() -> None:
    log = [upsert(0), delete(1, "thalweg.canary/0"), delete(2, "thalweg.canary/1"), delete(3, "thalweg.canary/0")]
    report = ledger(log, [row(0), tombstone(3, "thalweg.canary/0")], reached={0: 2})
    assert (report.balanced, report.records, report.deleted, report.pending) == (True, 1, 0, 0)


def test_records_after_the_stored_positions_wait() -> None:
    report = ledger([upsert(0), upsert(1), upsert(2, "default/b")], [row(0)], reached={0: 0})
    assert (report.balanced, report.records, report.pending) == (True, 1, 2)


def test_a_record_without_a_row_or_a_letter_is_named() -> None:
    report = ledger([upsert(0), upsert(1, "default/b")], [row(0)])
    assert not report.balanced
    assert imbalances(report) == {MISSING: ("default/b at 0:1",)}


def test_an_update_that_was_lost_is_named_and_an_older_version_is_not() -> None:
    log = [upsert(0, version=5), upsert(1, version=3), upsert(2, "default/b"), upsert(3, "default/b")]
    report = ledger(log, [row(0, version=5), row(2, "default/b")])
    assert report.superseded == 1
    assert imbalances(report) == {OUTDATED: ("default/b at 0:3",)}


def test_a_delete_that_was_lost_is_named() -> None:
    assert imbalances(ledger([upsert(0), delete(1)], [row(0)])) == {UNDELETED: ("default/a at 0:1",)}


def test_a_document_whose_records_are_gone_is_named_and_its_tombstone_is_not() -> None:
    report = ledger([], [row(0), tombstone(1, "default/b")])
    assert imbalances(report) == {UNKNOWN: ("default/a at 0:0",)}


def test_what_compaction_took_is_not_missed() -> None:
    """The winner of a higher version, and a record whose successor was refused or waits."""
    log = [upsert(1, version=3), malformed(3, "default/b"), upsert(9, "default/c")]
    rows = [row(0, version=5), row(2, "default/b"), row(4, "default/c")]
    report = ledger(log, rows, Letters({Position(0, 3)}, {}), {0: 5})
    assert (report.balanced, report.superseded, report.dead_lettered, report.pending) == (True, 1, 1, 1)


def test_malformed_records_need_a_letter_unless_those_of_their_time_were_removed() -> None:
    assert imbalances(ledger([malformed(0)], [])) == {UNREPORTED: ("default/bad at 0:0",)}
    report = ledger([malformed(0), upsert(1)], [], Letters(frozenset(), {0: 10_000}))
    assert (report.balanced, report.dead_lettered, report.undecided) == (True, 1, 1)


def test_a_document_of_several_partitions_is_decided_by_all_its_records() -> None:
    """By times 100, 50 and 80: the second replaced the first, which the third could not."""
    times = {Position(0, 0): 100, Position(0, 1): 50, Position(1, 0): 80}
    log = [SourceRecord(*position, at, b"default/a", upsert(0).value) for position, at in times.items()]
    stored = row(1, timestamp_ms=50, other_partitions=(1,))
    assert ledger(log, [stored]).balanced
    assert imbalances(ledger(log[1:], [stored])) == {OUTDATED: ("default/a at 1:0",)}


def test_a_delete_that_came_in_another_partition_is_expected_to_have_worked() -> None:
    report = ledger([upsert(0), delete(9, partition=1)], [row(0, other_partitions=(1,))])
    assert imbalances(report) == {UNDELETED: ("default/a at 1:9",)}


def test_a_batch_that_cannot_be_read_hides_no_document() -> None:
    kept = Ledger([row(0)], {0: 5}, NEVER_REMOVED, LimitSettings())
    kept.add_unreadable(0, 7, "offsets 7 to 8")
    assert (kept.report().balanced, kept.report().notes) == (True, ("offsets 7 to 8",))
    kept.add_unreadable(0, 3, "offsets 3 to 4")
    assert imbalances(kept.report()) == {UNREADABLE: ("offsets 3 to 4",)}


def test_twenty_are_named_and_all_counted() -> None:
    report = ledger([upsert(at, f"default/{at}") for at in range(50)], [])
    (only,) = report.imbalances
    assert (only.count, len(only.documents)) == (50, 20)
    assert any("50 records that are neither" in line for line in report.lines())
