"""Whether a dead letter is open, superseded or resolved; pure decisions.

What decides is in the log and in the views of it, never in a note of who redrove what: a redriven record carries its
earlier attempts; it is in the log behind what the stores show, or in the stores, or has failed again and is a dead
letter that names the first one.
"""

from contextlib import suppress
from hashlib import blake2b
from sys import intern
from typing import TYPE_CHECKING, NamedTuple, Self

from kafka_client.topic_offsets import TopicPartition
from query_api.dead_letters.records import NO_LIMITS, LetterRecord
from schemas.dead_letters import ATTEMPTS_HEADER, LetterStateName, decode_attempts
from schemas.errors import MalformedEvent
from schemas.events import decode_document_event
from schemas.ids import MAX_COLLECTION_CHARACTERS, DocumentKey, Position
from schemas.topics import TopicNames

if TYPE_CHECKING:
    from indexer.schema import DocumentRow

RecordId = tuple[bytes, int, int]
"""A record by its subject, partition and offset."""


class RecordVersion(NamedTuple):
    """A record, as far as it decides which of two of one subject is newer. `redrives` are the offsets of the records it
    repeats, which failed; `version` is the producer's, where it can be read; a letter's time is that of its failure."""

    partition: int
    offset: int
    timestamp_ms: int = 0
    version: int | None = None
    deleted: bool = False
    redrives: frozenset[int] = frozenset()

    @property
    def origin(self) -> int:
        """The offset of the record that failed first, its own where none did: by that they are ordered."""
        return min(self.redrives, default=self.offset)

    def after(self, attempts_header: bytes | None) -> Self:
        """With these earlier attempts; offsets that are not before its own are not believed."""
        redrives = frozenset(
            each.source_offset
            for each in decode_attempts(attempts_header)
            if each.source.startswith(f"{self.partition}:") and each.source_offset < self.offset
        )
        return self._replace(redrives=redrives)

    def is_newer_than(self, failed: "RecordVersion") -> bool:
        """Whether it wins over the failed record by the rules of `schemas/versioning.py`, had that been good when it
        came."""
        if self.version is not None and failed.version is not None:
            if self.version != failed.version:
                return self.version > failed.version
            if self.deleted:
                return True
        if self.partition == failed.partition:
            return self.origin >= failed.origin
        return self.timestamp_ms >= failed.timestamp_ms


class Letter(NamedTuple):
    """What is remembered of a dead letter. `source` is the record that failed and `topic` its topic, None where the
    headers do not name them."""

    position: Position
    timestamp_ms: int
    reason: str
    subject: bytes
    source: RecordVersion
    topic: str | None = None
    collection: str | None = None
    document: DocumentKey | None = None

    @property
    def document_id(self) -> str | None:
        return None if self.document is None else self.document.document_id

    @property
    def place(self) -> TopicPartition:
        return TopicPartition(self.topic or "", self.source.partition)

    @property
    def failed(self) -> RecordId:
        """The record that failed."""
        return self.subject, self.source.partition, self.source.offset

    @property
    def failed_before(self) -> set[RecordId]:
        """Those that failed before it and that it repeats."""
        return {(self.subject, self.source.partition, offset) for offset in self.source.redrives}

    def is_later_than(self, other: "Letter") -> bool:
        """By offset within a partition, as clocks may go back; by time across partitions."""
        if self.position.partition == other.position.partition:
            return self.position.offset > other.position.offset
        return self.timestamp_ms > other.timestamp_ms


class LetterState(NamedTuple):
    """Whether a letter is open, and a sentence on what became of its record where it is not."""

    name: LetterStateName
    message: str | None = None


OPEN = LetterState("open")


def state_of(
    letter: Letter,
    stored: RecordVersion | None,
    newest: Letter | None = None,
    in_log: RecordVersion | None = None,
) -> LetterState:
    """By what the stores hold of what it names, the newest letter of the same, and the newest record in the log that
    the stores do not show yet."""
    if in_log is not None and in_log.origin > letter.source.origin:
        return LetterState("resolved", f"A newer record of it is at {in_log.partition}:{in_log.offset}.")
    if stored is not None and stored.is_newer_than(letter.source):
        done = "deleted" if stored.deleted else "indexed" if letter.document else "accepted"
        return LetterState("resolved", f"It was {done} since, by the record at {stored.partition}:{stored.offset}.")
    if newest is not None and newest.is_later_than(letter):
        return LetterState("superseded", f"It was refused again later: dead letter {newest.position}.")
    return OPEN


def letter_of(record: LetterRecord, topics: TopicNames, *, with_version: bool = True) -> Letter:
    """`with_version` decodes the document in it, which takes a second for some: call it in a thread."""
    position, found = Position(record.partition, record.offset), record.source
    topic = None if found is None else intern(found.topic)
    version = _version(record) if with_version and topic == topics.documents else None
    partition, offset = position if found is None else (found.partition, found.offset)
    source = RecordVersion(partition, offset, record.timestamp_ms, version).after(record.header(ATTEMPTS_HEADER))
    collection, document = _named(record.key)
    is_of_document = topic is not None and (topic == topics.documents or topics.is_contributions(topic))
    return Letter(
        position,
        record.timestamp_ms,
        intern(record.reason[:100]),
        subject_of(topic, record.key, source),
        source,
        topic,
        collection,
        document if is_of_document else None,
    )


def subject_of(topic: str | None, key: bytes | None, record: RecordVersion | None = None) -> bytes:
    """A digest of what a record is of: those of one key of one topic replace each other. One without a key is of
    itself."""
    if not key and record is not None:
        key = f"\0{record.partition}:{record.origin}".encode()
    return blake2b(f"{topic}\0".encode() + (key or b""), digest_size=16).digest()


def version_of(row: "DocumentRow", redrives: frozenset[int] = frozenset()) -> RecordVersion:
    """The record that the stores have a document from."""
    return RecordVersion(row.partition, row.offset, row.timestamp_ms, row.version, not row.live, redrives)


def _named(key: bytes | None) -> tuple[str | None, DocumentKey | None]:
    """The collection that a key begins with, and the document where it names one."""
    collection = None
    with suppress(UnicodeDecodeError, MalformedEvent):
        name, slash, _ = (key or b"").partition(b"/")
        if slash and 0 < len(name.decode()) <= MAX_COLLECTION_CHARACTERS:
            collection = intern(name.decode())
        return collection, DocumentKey.parse((key or b"").decode())
    return collection, None


def _version(record: LetterRecord) -> int | None:
    try:
        return decode_document_event(record.key, record.value, record.own_headers, NO_LIMITS).version
    except MalformedEvent:
        return None
