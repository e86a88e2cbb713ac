"""Whether a dead letter is to be redriven; the verdicts on real logs are in the integration tests."""

import pytest
from aiokafka import TopicPartition
from aiokafka.structs import ConsumerRecord

from query_api.dead_letters.records import LetterRecord
from query_api.dead_letters.resolution import Candidate, Failures, StoredDocument, candidate_of, is_newer, judge
from query_api.dead_letters.topic_tail import Appended, TopicTail
from schemas.dead_letters import ATTEMPTS_HEADER, EarlierAttempt, encode_attempts
from schemas.errors import MalformedEvent
from schemas.topics import TopicNames
from streams.kafka.records import SourceRecord, letter_headers

NAMES = TopicNames("t.")
PLACE = TopicPartition(NAMES.documents, 2)


def attempt(offset: int, number: int = 1, partition: int = 2) -> EarlierAttempt:
    return EarlierAttempt(
        number=number, reason="r", stage="decode", at="2026", letter="2:0", source=f"{partition}:{offset}"
    )


def letter(offset: int, *earlier: EarlierAttempt, key: bytes = b"c/a", at: int = 5) -> LetterRecord:
    headers = ((ATTEMPTS_HEADER, encode_attempts(earlier)),) if earlier else ()
    record = SourceRecord(2, offset, 0, key, b"x", headers)
    dead = record.dead_letter(NAMES.documents, "decode", MalformedEvent("not_json", "Repair it."))
    return LetterRecord(2, at, 1_000, key, b"x", letter_headers(dead))


def candidate(offset: int, *earlier: EarlierAttempt, version: int | None = None) -> Candidate:
    found = candidate_of(letter(offset, *earlier), NAMES)
    assert isinstance(found, Candidate)
    return Candidate(found.letter, found.source, found.earlier, version=version)


def stored(
    offset: int, origin: int | None = None, *, version: int | None = None, deleted: bool = False, partition: int = 2,
    timestamp_ms: int = 0,
) -> StoredDocument:  # fmt: skip
    record = Appended(offset, offset if origin is None else origin)
    return StoredDocument(partition, record, timestamp_ms, version, deleted)


@pytest.mark.parametrize(
    ("version", "stored_version", "deleted", "expected"),
    [
        (7, 5, False, False),
        (5, 7, False, True),
        (5, 5, False, True),  # as the stored one came later
        (5, 5, True, True),
        (7, 5, True, False),
        (None, 5, False, True),
        (5, None, False, True),
    ],
)
def test_versions_decide_before_positions(
    version: int | None, stored_version: int | None, deleted: bool, expected: bool
) -> None:
    assert (
        is_newer(stored(30, version=stored_version, deleted=deleted), candidate(10, version=version).failed) is expected
    )


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (stored(30), True),
        (stored(10), True),  # the very record: it was indexed after all
        (stored(9), False),
        (stored(30, origin=8), False),  # a redriven record that first came before
        (stored(30, origin=12), True),
        (stored(3, partition=1, timestamp_ms=1_000), True),
        (stored(30, partition=1, timestamp_ms=999), False),
    ],
)
def test_without_versions_the_place_where_each_first_came_decides(held: StoredDocument, expected: bool) -> None:
    assert is_newer(held, candidate(10).failed) is expected


def test_a_letter_of_a_redriven_record_is_ordered_by_where_it_first_came() -> None:
    assert candidate(50, attempt(10)).origin == 10
    assert is_newer(stored(30), candidate(50, attempt(10)).failed)
    assert candidate(50, attempt(60)).origin == 50, "a forged header says what cannot be"
    assert candidate(50, attempt(10, partition=1)).origin == 50


def test_attempts_grow_by_the_one_that_failed() -> None:
    first, second = candidate(50, attempt(10, number=4)).attempts()
    assert first == attempt(10, number=4)
    assert (second.number, second.source, second.letter, second.stage) == (5, "2:50", "2:5", "decode")


def record(offset: int, key: bytes, *earlier: EarlierAttempt) -> ConsumerRecord:
    headers = ((ATTEMPTS_HEADER, encode_attempts(earlier)),) if earlier else ()
    return ConsumerRecord(NAMES.documents, 2, offset, 0, 0, key, b"x", None, 3, 1, headers)


def tail(*records: ConsumerRecord) -> TopicTail:
    found = TopicTail(PLACE, 20, {b"c/a"})
    for each in records:
        found.take(each)
    return found


def test_a_tail_counts_only_for_its_key() -> None:
    assert judge(candidate(10), Failures(), tail(record(30, b"c/b")), None, keyed=True).outcome == "redriven"
    newer = judge(candidate(10), Failures(), tail(record(30, b"c/a")), None, keyed=True)
    assert newer == ("resolved", "A newer record of it stands at 2:30.")
    assert judge(candidate(10), Failures(), tail(record(30, b"c/a")), None, keyed=False).outcome == "redriven"


def test_an_older_record_that_was_redriven_does_not_stand_in_the_way_of_a_newer_letter() -> None:
    again = tail(record(30, b"c/a", attempt(8)))
    assert judge(candidate(10), Failures(), again, None, keyed=True).outcome == "redriven"
    assert judge(candidate(8), Failures(), again, None, keyed=True).outcome == "already_redriven"
    assert judge(candidate(7), Failures(), again, None, keyed=True).outcome == "resolved"


def test_a_failure_names_every_record_it_says_again_under_its_key() -> None:
    failures = Failures()
    failures.add(letter(50, attempt(10), attempt(30, number=2), at=9))
    for offset in (10, 30):
        verdict = judge(candidate(offset), failures, tail(), None, keyed=True)
        assert verdict == ("already_redriven", "It was redriven and failed again: that is the dead letter 2:9.")
    assert judge(candidate(50), failures, tail(), None, keyed=True).outcome == "redriven"
    other = candidate_of(letter(10, key=b"c/b"), NAMES)
    assert isinstance(other, Candidate)
    assert failures.of(other) is None, "a header of another key proves nothing"
