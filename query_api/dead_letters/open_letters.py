"""Which dead letters are open: nothing that came later has replaced their records. In memory, and made again from the
topic and the stores after a restart, so that there is nothing to keep or to clean up.

A letter is `resolved` once a later record of what it names was indexed or deleted, by the rules of a redrive, and
`superseded` once a later letter names the same: the same file loaded again, a record that was redriven and failed
again. Of one document, one letter is open at most.
"""

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from sys import intern
from typing import TYPE_CHECKING, NamedTuple

from query_api.dead_letters.records import NO_LIMITS, LetterRecord, errors_of, own_headers, reason_of, source_of
from query_api.dead_letters.resolution import FailedRecord, StoredDocument, is_newer
from query_api.dead_letters.topic_tail import Appended
from schemas.dead_letters import ATTEMPTS_HEADER, LetterState, decode_attempts
from schemas.errors import MalformedEvent
from schemas.events import decode_document_event
from schemas.ids import MAX_COLLECTION_CHARACTERS, DocumentKey, Position
from schemas.receipts import Receipt
from schemas.topics import TopicNames

if TYPE_CHECKING:
    from indexer.schema import DocumentRow

MAX_LETTERS = 20_000
"""Of more, the oldest are passed over. So many take 17 MB, or 57 MB where every document id is as long as it may be."""


class KnownLetter(NamedTuple):
    """What is remembered of a letter. `subject` is a digest of what its record is of: those of one key of one topic
    replace each other. `source` is the record that failed; it and `failed` are None where the headers do not say."""

    position: Position
    timestamp_ms: int
    reason: str
    subject: bytes
    topic: str | None
    collection: str | None
    document: DocumentKey | None
    source: Position | None
    failed: FailedRecord | None

    def is_later_than(self, other: "KnownLetter") -> bool:
        """By offset within a partition, as clocks may go back; by time across partitions."""
        if self.position.partition == other.position.partition:
            return self.position.offset > other.position.offset
        return self.timestamp_ms > other.timestamp_ms


class Standing(NamedTuple):
    """Whether a letter is open, and a sentence on what became of its record where it is not."""

    state: LetterState
    message: str | None = None


OPEN = Standing("open")


class WantedLetters(NamedTuple):
    """Which letters are asked for; None for any. A document is named by its id, with or without its collection."""

    reason: str | None = None
    collection: str | None = None
    document: str | None = None
    state: LetterState | None = None

    def names(self, letter: KnownLetter) -> bool:
        """Whether it is one of them, its state aside."""
        return (
            self.reason in (None, letter.reason)
            and self.collection in (None, letter.collection)
            and (
                self.document is None or (letter.document is not None and letter.document.document_id == self.document)
            )
        )


ANY = WantedLetters()


def known_letter(record: LetterRecord, topics: TopicNames, *, with_version: bool = True) -> KnownLetter:
    """`with_version` decodes the document in it, which takes a second for some: call it in a thread."""
    source = source_of(errors_of(record))
    topic = None if source is None else intern(source.topic)
    is_document = topic == topics.documents or (topic is not None and topics.is_contributions(topic))
    collection, document = _named(record.key) if is_document or topic == topics.curation else (None, None)
    failed = None
    if source is not None:
        earlier = decode_attempts(record.header(ATTEMPTS_HEADER))
        failed = FailedRecord(
            source.partition,
            Appended.after(source.offset, source.partition, earlier).origin,
            record.timestamp_ms,
            _version(record) if with_version and topic == topics.documents else None,
        )
    return KnownLetter(
        Position(record.partition, record.offset),
        record.timestamp_ms,
        intern(reason_of(record)[:100]),
        subject_of(topic, record.key) if record.key else _digest(str(source or record.offset).encode()),
        topic,
        None if collection is None else intern(collection),
        document if is_document else None,
        None if source is None else Position(source.partition, source.offset),
        failed,
    )


def subject_of(topic: str | None, key: bytes) -> bytes:
    return _digest(f"{topic}\0".encode() + key)


class OpenLetters:
    """The newest `capacity` letters, with what the stores hold of what they name. Used on the event loop."""

    def __init__(self, topics: TopicNames, capacity: int = MAX_LETTERS) -> None:
        self._topics = topics
        self.capacity = capacity
        self.complete_from: dict[int, int] = {}
        """By partition of the dead letters topic, the offset from which on every letter before `read_to` is here."""
        self.read_to: dict[int, int] = {}
        self._letters: OrderedDict[Position, KnownLetter] = OrderedDict()
        self._by_subject: dict[bytes, list[KnownLetter]] = {}  # oldest first
        self._stored: dict[bytes, StoredDocument] = {}
        self._unjudged: dict[bytes, None] = {}
        self._judged: dict[bytes, None] = {}  # the longest ago first
        self._open: list[KnownLetter] | None = None

    @property
    def is_judged(self) -> bool:
        """Whether the stores were asked about all of them."""
        return not self._unjudged

    def clear(self) -> None:
        """The topic was made again."""
        self._letters.clear()
        for known in (self.complete_from, self.read_to, self._by_subject, self._stored, self._unjudged, self._judged):
            known.clear()
        self._open = None

    def take(self, letter: KnownLetter) -> None:
        """In the order of the topic; one that comes again is ignored."""
        if letter.position in self._letters:
            return
        self._letters[letter.position] = letter
        same = self._by_subject.setdefault(letter.subject, [])
        at = len(same)
        while at > 0 and same[at - 1].is_later_than(letter):
            at -= 1
        same.insert(at, letter)
        if letter.topic != self._topics.documents:
            self._take_back(letter)
        elif letter.document is not None:
            self._judged.pop(letter.subject, None)
            self._unjudged[letter.subject] = None
        while len(self._letters) > self.capacity:
            self._forget(next(iter(self._letters)))
        self._open = None

    def _take_back(self, letter: KnownLetter) -> None:
        """A record of a topic that no store shows counted as accepted until its letter came."""
        stored = self._stored.get(letter.subject)
        if stored is not None and (stored.partition, stored.record.offset) == letter.source:
            del self._stored[letter.subject]

    def forget_before(self, beginnings: Mapping[int, int]) -> None:
        """What the topic keeps no longer, by partition."""
        for position in [each for each in self._letters if each.offset < beginnings.get(each.partition, 0)]:
            self._forget(position)

    def _forget(self, position: Position) -> None:
        letter = self._letters.pop(position)
        self.complete_from[position.partition] = position.offset + 1
        same = self._by_subject[letter.subject]
        same.remove(letter)
        if not same:
            for known in (self._by_subject, self._stored, self._unjudged, self._judged):
                known.pop(letter.subject, None)
        self._open = None

    def note_receipt(self, receipt: Receipt) -> None:
        """What became of a record of the documents topic."""
        if receipt.outcome in ("indexed", "unchanged", "deleted"):
            deleted = receipt.outcome == "deleted"
            record = Appended(receipt.offset, receipt.offset)
            key = receipt.key.encode("utf-8", "surrogatepass")
            stored = StoredDocument(receipt.partition, record, receipt.produced_at_ms, receipt.version, deleted)
            self.note_stored(subject_of(self._topics.documents, key), stored)

    def note_stored(self, subject: bytes, stored: StoredDocument) -> None:
        """That a record was accepted, or more of one that is known. An older one changes nothing."""
        known = self._stored.get(subject)
        if subject not in self._by_subject or (known is not None and _is_later(known, stored)):
            return
        self._stored[subject] = stored
        self._open = None

    def forget_stored(self) -> None:
        """Other stores are read from now on, of which nothing is known yet."""
        self._unjudged |= self._judged
        self._judged.clear()
        for subject in self._unjudged:
            self._stored.pop(subject, None)
        self._open = None

    def unjudged(self, limit: int) -> list[DocumentKey]:
        """Documents about which the stores are to be asked."""
        return self._documents(self._unjudged, limit)

    def judged_longest_ago(self, limit: int) -> list[DocumentKey]:
        return self._documents(self._judged, limit)

    def _documents(self, subjects: Iterable[bytes], limit: int) -> list[DocumentKey]:
        newest = (self._by_subject[subject][-1].document for subject, _ in zip(subjects, range(limit), strict=False))
        return [document for document in newest if document is not None]

    def judge(self, asked: Iterable[DocumentKey], rows: "Mapping[DocumentKey, DocumentRow]") -> None:
        """By the rows of those documents that the stores hold."""
        for key in asked:
            subject = subject_of(self._topics.documents, key.encoded())
            if subject not in self._by_subject:
                continue  # it was forgotten meanwhile
            if (row := rows.get(key)) is not None:
                self.note_stored(subject, _stored(row))
            self._unjudged.pop(subject, None)
            self._judged.pop(subject, None)
            self._judged[subject] = None

    def known(self, position: Position) -> KnownLetter | None:
        return self._letters.get(position)

    def standing(self, letter: KnownLetter) -> Standing:
        """Of any letter, also of one that is no longer here."""
        stored = self._stored.get(letter.subject)
        if stored is not None and letter.failed is not None and is_newer(stored, letter.failed):
            done = "deleted" if stored.deleted else "indexed" if letter.document else "accepted"
            at = Position(stored.partition, stored.record.offset)
            return Standing("resolved", f"It was {done} since, by the record at {at}.")
        same = self._by_subject.get(letter.subject)
        if same and same[-1].is_later_than(letter):
            return Standing("superseded", f"It was refused again later: dead letter {same[-1].position}.")
        return OPEN

    def open(self) -> Sequence[KnownLetter]:
        if self._open is None:
            newest = (same[-1] for same in self._by_subject.values())
            self._open = [letter for letter in newest if self.standing(letter) is OPEN]
        return self._open

    def open_of(self, row: "DocumentRow") -> KnownLetter | None:
        """The open letter of a document that is indexed: of a newer record of it, then, than the one that is shown."""
        subject = subject_of(self._topics.documents, row.key.encoded())
        letter = self.newest_open(subject)
        if letter is None or letter.failed is None or is_newer(_stored(row), letter.failed):
            return None
        return letter

    def open_named(self, key: DocumentKey) -> KnownLetter | None:
        """The open letter of a document."""
        return self.newest_open(subject_of(self._topics.documents, key.encoded()))

    def newest_open(self, subject: bytes) -> KnownLetter | None:
        same = self._by_subject.get(subject)
        return same[-1] if same and self.standing(same[-1]) is OPEN else None

    def open_reasons(self, wanted: WantedLetters = ANY, *, since_ms: int = 0) -> dict[str, int]:
        """How many of those asked for are open by reason, the most frequent first."""
        found = (each for each in self.open() if wanted.names(each) and each.timestamp_ms >= since_ms)
        reasons = Counter(each.reason for each in found)
        return dict(reasons.most_common())

    def offsets(self, partition: int, wanted: WantedLetters) -> list[int]:
        """Where those that are asked for stand in a partition, ascending."""
        matches: Callable[[KnownLetter], bool] = wanted.names
        found = [letter for at, letter in self._letters.items() if at.partition == partition and matches(letter)]
        if wanted.state is not None:
            found = [letter for letter in found if self.standing(letter).state == wanted.state]
        return sorted(letter.position.offset for letter in found)

    def open_sources(self, topic: str) -> set[int]:
        """The offsets of a topic's records whose letters are open."""
        return {each.source.offset for each in self.open() if each.topic == topic and each.source is not None}

    def has_source(self, topic: str, key: bytes, offset: int) -> bool:
        """Whether the record at this offset of a topic became a letter."""
        same = self._by_subject.get(subject_of(topic, key), [])
        return any(each.source is not None and each.source.offset == offset for each in same)


def nearest_below(offsets: Sequence[int], end: int) -> int | None:
    """The highest of the ascending offsets that is below `end`."""
    at = bisect_left(offsets, end)
    return offsets[at - 1] if at else None


def _named(key: bytes | None) -> tuple[str | None, DocumentKey | None]:
    """The collection that a key begins with, and the document where it names one."""
    try:
        text = (key or b"").decode()
    except UnicodeDecodeError:
        return None, None
    try:
        document = DocumentKey.parse(text)
    except MalformedEvent:
        collection, slash, _ = text.partition("/")
        return (collection if slash and 0 < len(collection) <= MAX_COLLECTION_CHARACTERS else None), None
    return document.collection, document


def _version(record: LetterRecord) -> int | None:
    try:
        return decode_document_event(record.key, record.value, own_headers(record), NO_LIMITS).version
    except MalformedEvent:
        return None


def _stored(row: "DocumentRow") -> StoredDocument:
    return StoredDocument(
        row.partition, Appended(row.offset, row.offset), row.timestamp_ms, row.version, deleted=not row.live
    )


def _is_later(stored: StoredDocument, known: StoredDocument) -> bool:
    if stored.partition == known.partition:
        return stored.record.offset > known.record.offset
    return stored.timestamp_ms > known.timestamp_ms


def _digest(content: bytes) -> bytes:
    return blake2b(content, digest_size=16).digest()
