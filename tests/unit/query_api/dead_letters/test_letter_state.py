"""What became of a dead letter, and whether it is to be redriven; real logs are in the integration tests."""

import pytest
from aiokafka import TopicPartition

from query_api.dead_letters.letter_state import Letter, RecordVersion, letter_of, subject_of
from query_api.dead_letters.records import LetterRecord
from query_api.dead_letters.redrive import Candidate
from query_api.dead_letters.topic_tail import TopicTail, decide
from schemas.dead_letters import ATTEMPTS_HEADER, EarlierAttempt, decode_attempts, encode_attempts
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


def known(offset: int, *earlier: EarlierAttempt, version: int | None = None, key: bytes = b"c/a") -> Letter:
    found = letter_of(letter(offset, *earlier, key=key), NAMES)
    return found._replace(source=found.source._replace(version=version))


def stored(
    offset: int, origin: int | None = None, *, version: int | None = None, deleted: bool = False, partition: int = 2,
    timestamp_ms: int = 0,
) -> RecordVersion:  # fmt: skip
    redrives = frozenset() if origin is None else frozenset({origin})
    return RecordVersion(partition, offset, timestamp_ms, version, deleted, redrives)


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
    held = stored(30, version=stored_version, deleted=deleted)
    assert held.is_newer_than(known(10, version=version).source) is expected


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
def test_without_versions_first_offset_or_time_decides(held: RecordVersion, expected: bool) -> None:
    assert held.is_newer_than(known(10).source) is expected


def test_redriven_record_is_ordered_by_where_it_first_came() -> None:
    assert known(50, attempt(10)).source.origin == 10
    assert stored(30).is_newer_than(known(50, attempt(10)).source)
    assert known(50, attempt(60)).source.origin == 50, "a forged header names what cannot be"
    assert known(50, attempt(10, partition=1)).source.origin == 50


def test_version_is_read_from_the_envelope() -> None:
    envelope = b'{"id": "a", "collection": "c", "content": "x", "version": 7}'
    record = letter(10)._replace(value=envelope)
    found = [letter_of(record, NAMES, with_version=asked).source.version for asked in (True, False)]
    assert found == [7, None]


@pytest.mark.parametrize(
    ("key", "collection", "document_id"),
    [
        (b"c/a/b", "c", "a/b"),
        (b"c/\xff", "c", None),
        (b"c/\x00", "c", None),
        (b"\xff/a", None, None),
        (b"c" * 129 + b"/a", None, None),
        (b"/a", None, None),
        (b"c", None, None),
        (None, None, None),
    ],
)
def test_letter_is_of_the_collection_its_key_begins_with(
    key: bytes | None, collection: str | None, document_id: str | None
) -> None:
    found = letter_of(letter(10)._replace(key=key), NAMES)
    assert (found.collection, found.document_id) == (collection, document_id)


def test_attempts_grow_by_the_one_that_failed() -> None:
    again = Candidate(record := letter(50, attempt(10, number=4)), letter_of(record, NAMES)).again()
    first, second = decode_attempts(dict(again.headers)[ATTEMPTS_HEADER])
    assert first == attempt(10, number=4)
    assert (second.number, second.source, second.letter, second.stage) == (5, "2:50", "2:5", "decode")


def tail(*records: LetterRecord, keyed: bool = True) -> TopicTail:
    found = TopicTail(PLACE, 20, {subject_of(NAMES.documents, b"c/a")}, keyed)
    for each in records:
        found.take(each)
    return found


def record(offset: int, key: bytes, *earlier: EarlierAttempt) -> LetterRecord:
    headers = [(ATTEMPTS_HEADER, encode_attempts(earlier))] if earlier else []
    return LetterRecord(2, offset, 0, key, b"x", headers)


def test_newer_record_in_the_log_resolves_letters_of_its_key() -> None:
    assert decide(known(10), {}, tail(record(30, b"c/b")), None).outcome == "redriven"
    newer = decide(known(10), {}, tail(record(30, b"c/a")), None)
    assert newer == ("resolved", "A newer record of it is at 2:30.")
    assert decide(known(10), {}, tail(record(30, b"c/a"), keyed=False), None).outcome == "redriven"


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (None, ("redriven", None)),
        (stored(9), ("redriven", None)),
        (stored(30), ("resolved", "It was indexed since, by the record at 2:30.")),
        (stored(30, deleted=True), ("resolved", "It was deleted since, by the record at 2:30.")),
        (stored(30, origin=10), ("already_redriven", "It was redriven as 2:30.")),
        (stored(30, origin=8), ("redriven", None)),
    ],
)
def test_stores_decide_whether_a_letter_is_redriven(
    held: RecordVersion | None, expected: tuple[str, str | None]
) -> None:
    assert decide(known(10), {}, tail(), held) == expected


def test_older_record_redriven_leaves_newer_letter_open() -> None:
    again = tail(record(30, b"c/a", attempt(8)))
    assert decide(known(10), {}, again, None).outcome == "redriven"
    assert decide(known(8), {}, again, None) == (
        "already_redriven",
        f"It was redriven as 2:30 of {NAMES.documents}.",
    )
    assert decide(known(7), {}, again, None).outcome == "resolved"


def test_letter_of_redriven_record_names_all_that_failed_before() -> None:
    again = letter_of(letter(50, attempt(10), attempt(30, number=2), at=9), NAMES)
    failed_again = dict.fromkeys(again.failed_before, again.position)
    for offset in (10, 30):
        assert decide(known(offset), failed_again, tail(), None) == (
            "already_redriven",
            "It was redriven and failed again: that is the dead letter 2:9.",
        )
    assert decide(known(50), failed_again, tail(), None).outcome == "redriven"
    other = known(10, key=b"c/b")
    assert decide(other, failed_again, tail(), None).outcome == "redriven", "a header of another key proves nothing"


def test_redriven_record_without_key_is_recognised() -> None:
    found = letter_of(letter(10)._replace(key=None), NAMES)
    log = TopicTail(PLACE, 20, {found.subject}, keyed=False)
    log.take(record(30, b"", attempt(10)))
    log.take(record(31, b""))
    assert log.redriven_as == {(found.subject, 2, 10): 30}
