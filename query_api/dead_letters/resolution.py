"""Whether a dead letter is to be redriven, or what became of its record since; pure decisions.

What decides is in the log and in the views of it, never in a note of who redrove what: a redriven record carries its
earlier attempts; it is in the log behind what the stores show, or in the stores, or has failed again and is a dead
letter that names the first one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from query_api.dead_letters.records import LetterRecord, errors_of, reason_of, source_of
from query_api.dead_letters.topic_tail import Appended, TopicTail
from schemas.clock import rfc3339
from schemas.dead_letters import (
    ATTEMPTS_HEADER,
    CONNECT_PREFIX,
    OMITTED_HEADER,
    DeadLetterSource,
    EarlierAttempt,
    decode_attempts,
)
from schemas.ids import DocumentKey, Position
from schemas.topics import TopicNames

Outcome = Literal["redriven", "resolved", "already_redriven", "refused"]


class Verdict(NamedTuple):
    """What becomes of a dead letter, and a sentence on why where it is not redriven."""

    outcome: Outcome
    message: str | None = None


class FailedRecord(NamedTuple):
    """The record of a dead letter, as far as it decides whether a later one has replaced it. `origin` is the offset of
    the one that failed first, `timestamp_ms` the time of the letter, `version` the producer's, where it can be read."""

    partition: int
    origin: int
    timestamp_ms: int
    version: int | None = None


@dataclass(frozen=True)
class Candidate:
    """A dead letter whose record can be sent again. `version` is the producer's, where it can be read."""

    letter: LetterRecord
    source: DeadLetterSource
    earlier: Sequence[EarlierAttempt]
    document: DocumentKey | None = None
    version: int | None = None

    @property
    def key(self) -> bytes:
        return self.letter.key or b""

    @property
    def position(self) -> Position:
        return Position(self.letter.partition, self.letter.offset)

    @property
    def origin(self) -> int:
        """The offset of the record that failed first: by that it is ordered among the records of its key."""
        return Appended.after(self.source.offset, self.source.partition, self.earlier).origin

    @property
    def failed(self) -> FailedRecord:
        return FailedRecord(self.source.partition, self.origin, self.letter.timestamp_ms, self.version)

    def attempts(self) -> list[EarlierAttempt]:
        """Those the record carries when it is sent again."""
        error = errors_of(self.letter)
        failed = EarlierAttempt(
            number=self.earlier[-1].number + 1 if self.earlier else 1,
            reason=reason_of(self.letter)[:100],
            stage=error.get(CONNECT_PREFIX + "stage", "unknown")[:40],
            at=rfc3339(self.letter.timestamp_ms),
            letter=str(self.position),
            source=f"{self.source.partition}:{self.source.offset}",
        )
        return [*self.earlier, failed]


class StoredDocument(NamedTuple):
    """What the stores hold of a document, and the record of the log that it is from, where that is still there."""

    partition: int
    record: Appended
    timestamp_ms: int
    version: int | None
    deleted: bool


@dataclass
class Failures:
    """Dead letters of redriven records: by the record that failed before, (topic, partition, offset, key), the letter
    of its redriven one."""

    again: dict[tuple[str, int, int, bytes], Position] = field(default_factory=dict)

    def add(self, letter: LetterRecord) -> None:
        earlier = decode_attempts(letter.header(ATTEMPTS_HEADER))
        source = source_of(errors_of(letter)) if earlier else None
        if source is None:
            return
        for offset in Appended.after(source.offset, source.partition, earlier).redrives:
            self.again[source.topic, source.partition, offset, letter.key or b""] = Position(
                letter.partition, letter.offset
            )

    def of(self, candidate: Candidate) -> Position | None:
        source = candidate.source
        return self.again.get((source.topic, source.partition, source.offset, candidate.key))


def candidate_of(letter: LetterRecord, topics: TopicNames) -> Candidate | Verdict:
    """The letter as a candidate, or why its record cannot be sent again."""
    error = errors_of(letter)
    source = source_of(error)
    if source is None:
        return Verdict("refused", "Its headers do not say which topic it came from. Send its document again.")
    where = f"{source.topic} at {source.partition}:{source.offset}"
    if source.last_offset is not None:
        return Verdict("refused", "It stands for a batch that nobody can read. Send again what that held, if you know.")
    if letter.omitted:
        return Verdict(
            "refused",
            f"Its bytes were too large to be kept ({error[OMITTED_HEADER]}); {where} may still hold them. "
            "Send the document again.",
        )
    if letter.key is None and letter.value is None:
        return Verdict("refused", "It has neither key nor value.")
    keyed = source.topic in (topics.documents, topics.curation) or topics.is_contributions(source.topic)
    if not keyed and source.topic != topics.provenance:
        return Verdict("refused", f"It came from {source.topic}, which is no topic that Thalweg reads here.")
    return Candidate(letter, source, decode_attempts(letter.header(ATTEMPTS_HEADER)))


def judge(
    candidate: Candidate, failures: Failures, tail: TopicTail, stored: StoredDocument | None, *, keyed: bool
) -> Verdict:
    """`redriven` for a letter that is to be; `stored` is None where the stores hold nothing of the document.

    With `keyed`, a later record of a key replaces an earlier one.
    """
    source, key = candidate.source, candidate.key
    if (again := failures.of(candidate)) is not None:
        return Verdict("already_redriven", f"It was redriven and failed again: that is the dead letter {again}.")
    if (at := tail.redriven_as(key, source.offset)) is not None:
        return Verdict("already_redriven", f"It was redriven as {source.partition}:{at} of {source.topic}.")
    if stored is not None and stored.partition == source.partition and source.offset in stored.record.redrives:
        return Verdict("already_redriven", f"It was redriven as {source.partition}:{stored.record.offset}.")
    newer = tail.newest(key) if keyed else None
    if newer is not None and newer.origin > candidate.origin:
        return Verdict("resolved", f"A newer record of it stands at {source.partition}:{newer.offset}.")
    if stored is not None and is_newer(stored, candidate.failed):
        done = "deleted" if stored.deleted else "indexed"
        return Verdict("resolved", f"It was {done} since, by the record at {stored.partition}:{stored.record.offset}.")
    return Verdict("redriven")


def is_newer(stored: StoredDocument, failed: FailedRecord) -> bool:
    """Whether what is stored wins over the failed record, by the rules of `schemas/versioning.py`, had that record been
    good when it came."""
    if stored.version is not None and failed.version is not None:
        if stored.version != failed.version:
            return stored.version > failed.version
        if stored.deleted:
            return True
    if stored.partition == failed.partition:
        return stored.record.origin >= failed.origin
    return stored.timestamp_ms >= failed.timestamp_ms
