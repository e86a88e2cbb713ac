"""Which dead letters are open, by what came later: another letter, or a record that was indexed or deleted."""

from collections.abc import Iterable
from typing import Any

import pytest

from indexer.schema import DocumentRow
from query_api.dead_letters.letter_state import Letter, letter_of
from query_api.dead_letters.letter_table import LetterFilter, LetterTable
from query_api.dead_letters.records import LetterRecord
from schemas.dead_letters import ATTEMPTS_HEADER, EarlierAttempt, encode_attempts, skipped_batch_headers
from schemas.errors import DeadLetterReason, MalformedEvent
from schemas.ids import DocumentKey, Position
from schemas.receipts import Outcome, Receipt
from schemas.topics import TopicNames
from streams.kafka.records import SourceRecord, letter_headers

NAMES = TopicNames("t.")
BODY = b'{"id": "a", "content": "x"%s}'


def letter(
    at: int, source: int, key: bytes | None = b"docs/a", reason: DeadLetterReason = "malformed", *,
    topic: str = NAMES.documents, partition: int = 0, value: bytes = b"x", earlier: Iterable[EarlierAttempt] = (),
) -> Letter:  # fmt: skip
    """The letter at the offset `at`, a second after the one before, of the record at the offset `source`."""
    headers = ((ATTEMPTS_HEADER, encode_attempts(list(earlier))),) if earlier else ()
    record = SourceRecord(partition, source, 0, key, value, headers)
    dead = record.dead_letter(topic, "parse", MalformedEvent(reason, "Repair it."))
    return letter_of(LetterRecord(partition, at, 1_000 * at, key, value, letter_headers(dead)), NAMES)


def receipt(offset: int, outcome: Outcome, key: str = "docs/a", version: int | None = None) -> Receipt:
    return Receipt(key=key, outcome=outcome, partition=0, offset=offset, generation="g", version=version)


def row(offset: int, key: str = "docs/a", *, deleted: bool = False, version: int | None = None) -> DocumentRow:
    gone = 1 if deleted else None
    return DocumentRow(DocumentKey.parse(key), version, 0, offset, 0, None if deleted else "r", deleted_at_ms=gone)


def letters(*known: Letter, capacity: int = 100) -> LetterTable:
    found = LetterTable(NAMES, capacity)
    found.complete_from |= dict.fromkeys((0, 1), 0)
    for each in known:
        found.take(each)
        found.read_to[each.position.partition] = each.position.offset + 1
    return found


def states(found: LetterTable, *known: Letter) -> list[str]:
    return [found.state_of(each).name for each in known]


def test_document_refused_twice_is_open_once() -> None:
    first, second, other = letter(0, 5), letter(1, 7), letter(2, 8, b"docs/b")
    found = letters(first, second, other)
    assert states(found, first, second, other) == ["superseded", "open", "open"]
    assert found.state_of(first).message == "It was refused again later: dead letter 0:1."
    assert found.open_reasons() == {"malformed": 2}
    assert found.open_reasons(LetterFilter(since_ms=2_000)) == {"malformed": 1}


@pytest.mark.parametrize("outcome", ["indexed", "unchanged", "deleted"])
def test_accepted_record_resolves_letters_before_it_only(outcome: Outcome) -> None:
    first, second = letter(0, 5), letter(1, 7)
    found = letters(first, second)
    found.note_receipt(receipt(9, outcome))
    assert states(found, first, second) == ["resolved", "resolved"]
    assert found.open() == []
    done = "deleted" if outcome == "deleted" else "indexed"
    assert found.state_of(second).message == f"It was {done} since, by the record at 0:9."
    third = letter(2, 11)
    found.take(third)
    assert states(found, first, second, third) == ["resolved", "resolved", "open"]


@pytest.mark.parametrize("outcome", ["superseded", "dead_lettered"])
def test_superseded_or_refused_record_resolves_nothing(outcome: Outcome) -> None:
    found = letters(first := letter(0, 5))
    found.note_receipt(receipt(9, outcome))
    found.note_receipt(receipt(9, "indexed", "docs/another"))
    found.note_receipt(receipt(4, "indexed"))
    assert states(found, first) == ["open"]


def test_refused_higher_version_stays_open_after_a_lower_one() -> None:
    found = letters(first := letter(0, 5, value=BODY % b', "version": 7, "collection": "docs"'))
    found.note_receipt(receipt(9, "indexed", version=5))
    assert states(found, first) == ["open"]
    found.note_receipt(receipt(10, "indexed", version=8))
    assert states(found, first) == ["resolved"]


def test_after_restart_rows_of_the_stores_resolve_letters() -> None:
    kept, gone = letter(0, 5, b"docs/a"), letter(1, 6, b"docs/b")
    found = letters(kept, gone)
    assert not found.is_asked
    asked = found.to_ask(10)
    assert {str(each) for each in asked} == {"docs/a", "docs/b"}
    found.note_rows(asked, {each.key: each for each in (row(4), row(8, "docs/b", deleted=True))})
    assert found.is_asked
    assert states(found, kept, gone) == ["open", "resolved"]
    assert found.to_ask(1) == asked[:1], "those asked about longest ago come first"
    found.take(letter(2, 7, b"docs/c"))
    assert [str(each) for each in found.to_ask(1)] == ["docs/c"]
    found.forget_stored()  # another generation is served
    assert (found.is_asked, states(found, gone)) == (False, ["open"])


def test_older_row_does_not_undo_a_receipt() -> None:
    found = letters(first := letter(0, 5))
    found.note_receipt(receipt(9, "indexed"))
    found.note_rows(found.to_ask(10), {row(3).key: row(3)})
    assert states(found, first) == ["resolved"]


def test_redriven_record_that_failed_again_is_open_once() -> None:
    attempt = EarlierAttempt(number=1, reason="r", stage="parse", at="2026", letter="0:0", source="0:5")
    first, again = letter(0, 5), letter(1, 9, earlier=[attempt])
    found = letters(first, again)
    assert states(found, first, again) == ["superseded", "open"]
    found.note_receipt(receipt(12, "indexed"))
    assert found.open() == []


def test_row_with_newer_refused_record_has_its_letter() -> None:
    found = letters(refused := letter(0, 5))
    assert found.open_of(row(4)) == refused
    assert found.open_of(row(6)) is None
    assert found.open_of(row(4, "docs/b")) is None
    assert found.open_named(DocumentKey("docs", "a")) == refused
    assert found.open_named(DocumentKey("docs", "b")) is None


def test_letter_that_names_no_document_stays_open() -> None:
    batch = LetterRecord(0, 3, 0, None, b"", skipped_batch_headers(NAMES.documents, 0, 4, 6, "torn"))
    foreign = LetterRecord(0, 4, 0, None, b"x", [])
    bad_key = letter(5, 9, b"docs/\x00", "bad_key")
    found = letters(letter_of(batch, NAMES), letter_of(foreign, NAMES), bad_key)
    assert found.is_asked
    assert found.open_reasons() == {"unreadable_batch": 1, "unknown": 1, "bad_key": 1}
    assert (bad_key.collection, bad_key.document) == ("docs", None)


def test_equal_keys_of_two_topics_are_two_subjects() -> None:
    document, setting = (
        letter(0, 5, b"docs/settings/chunking"),
        letter(1, 5, b"docs/settings/chunking", topic=NAMES.curation),
    )
    found = letters(document, setting)
    assert states(found, document, setting) == ["open", "open"]
    assert (setting.collection, setting.document) == ("docs", None)
    assert found.open_sources(NAMES.curation) == {5}


def test_accepted_setting_is_open_once_its_letter_comes() -> None:
    first = letter(0, 5, b"docs/settings/chunking", topic=NAMES.curation)
    found = letters(first)
    found.note_accepted(NAMES.curation, b"docs/settings/chunking", 5)
    assert states(found, first) == ["open"], "that is the record that was refused"
    found.note_accepted(NAMES.curation, b"docs/settings/chunking", 8)
    assert states(found, first) == ["resolved"]
    found.forget_stored()
    assert states(found, first) == ["resolved"], "the stores of another generation say nothing of it"
    second = letter(1, 8, b"docs/settings/chunking", topic=NAMES.curation)
    found.take(second)
    assert states(found, first, second) == ["superseded", "open"]


def test_letters_asked_for_are_found_from_the_end() -> None:
    known = [
        letter(0, 1, b"docs/a"),
        letter(1, 2, b"docs/a"),
        letter(2, 3, b"notes/a", "not_json"),
        letter(3, 4, b"notes/b"),
        letter(4, 5, b"docs/c", partition=1),
    ]
    found = letters(*known)

    def offsets(**wanted: Any) -> list[int]:
        """Those at which a reader that goes down from the end stops."""
        met, end = [], 4
        while (at := found.look_below(0, end, LetterFilter(**wanted))) > 0:
            met.append(end := at - 1)
        return met

    assert offsets() == [3, 2, 1, 0]
    assert offsets(collection="docs") == [1, 0]
    assert offsets(collection="docs", state="open") == [1]
    assert offsets(state="superseded") == [0]
    assert offsets(document="a", reasons=("not_json",)) == [2]
    assert offsets(ids={Position(0, 3), Position(0, 9)}, since_ms=3_000) == [3]
    assert offsets(since_ms=3_001) == []
    assert found.look_below(0, 9, LetterFilter(document="a")) == 9, "what came since it was read is looked at"
    assert found.open_reasons(LetterFilter(collection="notes")) == {"not_json": 1, "malformed": 1}
    assert found.open_reasons() == {"malformed": 3, "not_json": 1}


def test_table_forgets_oldest_letters_and_those_deleted() -> None:
    known = [letter(at, at, f"docs/{at}".encode()) for at in range(6)]
    found = letters(*known, capacity=4)
    found.take(known[5])  # it comes again
    assert (found.complete_from[0], len(found.open())) == (2, 4)
    assert found.known(Position(0, 1)) is None
    found.forget_before({0: 5})
    assert found.open() == [known[5]]
    assert found.to_ask(10) == [DocumentKey("docs", "5")]
    assert states(found, known[0]) == ["open"], "nothing is known of it any more"


def test_forgotten_letter_is_superseded_by_remembered_one() -> None:
    known = [letter(at, at) for at in range(3)]
    found = letters(*known, capacity=1)
    assert states(found, *known) == ["superseded", "superseded", "open"]
