"""The newest dead letters and which of them are open. In memory, and made again from the topic and the stores after a
restart, so that there is nothing to keep or to clean up.

A letter is `resolved` once a later record of what it names was indexed or deleted, by the rules of a redrive, and
`superseded` once a later letter names the same: the same file loaded again, a record that was redriven and failed
again. Of one document, one letter is open at most.
"""

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from query_api.dead_letters.letter_state import (
    OPEN,
    Letter,
    LetterState,
    RecordVersion,
    state_of,
    subject_of,
    version_of,
)
from schemas.dead_letters import LetterStateName
from schemas.ids import DocumentKey, Position
from schemas.receipts import Receipt
from schemas.topics import TopicNames

if TYPE_CHECKING:
    from indexer.schema import DocumentRow

MAX_LETTERS = 20_000
"""Of more, the oldest are passed over. So many take 17 MB, or 57 MB where every document id is as long as it may be."""


class LetterFilter(NamedTuple):
    """Which letters are asked for; None for any. A document is named by its id, with or without its collection."""

    reasons: Collection[str] | None = None
    collection: str | None = None
    document: str | None = None
    state: LetterStateName | None = None
    ids: Collection[Position] | None = None
    since_ms: int | None = None

    def matches(self, letter: Letter) -> bool:
        """Whether it is one of them, its state aside."""
        return (
            (self.ids is None or letter.position in self.ids)
            and (self.reasons is None or letter.reason in self.reasons)
            and self.collection in (None, letter.collection)
            and self.document in (None, letter.document_id)
            and (self.since_ms is None or letter.timestamp_ms >= self.since_ms)
        )


ANY = LetterFilter()


class LetterTable:
    """The newest `capacity` letters, with what the stores hold of what they name. Used on the event loop."""

    def __init__(self, topics: TopicNames, capacity: int = MAX_LETTERS) -> None:
        self._topics = topics
        self.capacity = capacity
        self.complete_from: dict[int, int] = {}
        """By partition of the dead letters topic, the offset from which on every letter before `read_to` is here."""
        self.read_to: dict[int, int] = {}
        self._letters: OrderedDict[Position, Letter] = OrderedDict()
        self._by_subject: dict[bytes, list[Letter]] = {}  # oldest first
        self._stored: dict[bytes, RecordVersion] = {}
        self._asked: OrderedDict[bytes, bool] = OrderedDict()  # documents; those not asked about first, then the oldest
        self._open: list[Letter] | None = None

    @property
    def is_asked(self) -> bool:
        """Whether the stores were asked about all of them."""
        return next(iter(self._asked.values()), True)

    def clear(self) -> None:
        """The topic was made again."""
        for known in (self.complete_from, self.read_to, self._letters, self._by_subject, self._stored, self._asked):
            known.clear()
        self._open = None

    def take(self, letter: Letter) -> None:
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
            self._asked[letter.subject] = False
            self._asked.move_to_end(letter.subject, last=False)
        while len(self._letters) > self.capacity:
            self._forget(next(iter(self._letters)))
        self._open = None

    def _take_back(self, letter: Letter) -> None:
        """A record of a topic that no store shows counted as accepted until its letter came."""
        stored = self._stored.get(letter.subject)
        if stored is not None and stored[:2] == letter.source[:2]:
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
            for known in (self._by_subject, self._stored, self._asked):
                known.pop(letter.subject, None)
        self._open = None

    def note_receipt(self, receipt: Receipt) -> None:
        """What became of a record of the documents topic."""
        if receipt.outcome in ("indexed", "unchanged", "deleted"):
            deleted, key = receipt.outcome == "deleted", receipt.key.encode("utf-8", "surrogatepass")
            stored = RecordVersion(receipt.partition, receipt.offset, receipt.produced_at_ms, receipt.version, deleted)
            self.note_stored(subject_of(self._topics.documents, key), stored)

    def note_stored(self, subject: bytes, stored: RecordVersion) -> None:
        """That a record was accepted, or more of one that is known. An older one changes nothing."""
        known = self._stored.get(subject)
        if subject not in self._by_subject or (known is not None and _is_later(known, stored)):
            return
        self._stored[subject] = stored
        self._open = None

    def note_accepted(self, topic: str, key: bytes, offset: int) -> None:
        """That partition 0 of a topic that no store shows holds a record, unless that became a letter."""
        subject = subject_of(topic, key)
        if all(each.source.offset != offset for each in self._by_subject.get(subject, ())):
            self.note_stored(subject, RecordVersion(0, offset))

    def forget_stored(self) -> None:
        """Other stores are read from now on, of which nothing is known yet."""
        self._asked = OrderedDict.fromkeys(self._asked, False)
        for subject in self._asked:
            self._stored.pop(subject, None)
        self._open = None

    def to_ask(self, limit: int) -> list[DocumentKey]:
        """Documents about which the stores are to be asked: those they were not asked about, or longest ago."""
        newest = (self._by_subject[subject][-1].document for subject in islice(self._asked, limit))
        return [document for document in newest if document is not None]

    def note_rows(self, asked: Iterable[DocumentKey], rows: "Mapping[DocumentKey, DocumentRow]") -> None:
        """The rows of those documents that the stores hold."""
        for key in asked:
            subject = subject_of(self._topics.documents, key.encoded())
            if subject not in self._by_subject:
                continue  # it was forgotten meanwhile
            if (row := rows.get(key)) is not None:
                self.note_stored(subject, version_of(row))
            self._asked[subject] = True
            self._asked.move_to_end(subject)

    def known(self, position: Position) -> Letter | None:
        return self._letters.get(position)

    def from_offsets(self, firsts: Mapping[int, int]) -> list[Letter]:
        """Those of these partitions from an offset on, in the order of the topic."""
        return [each for at, each in self._letters.items() if at.offset >= firsts.get(at.partition, at.offset + 1)]

    def state_of(self, letter: Letter) -> LetterState:
        """Of any letter, also of one that is no longer here."""
        same = self._by_subject.get(letter.subject)
        return state_of(letter, self._stored.get(letter.subject), same[-1] if same else None)

    def matches(self, letter: Letter, wanted: LetterFilter) -> bool:
        return wanted.matches(letter) and wanted.state in (None, self.state_of(letter).name)

    def open(self) -> Sequence[Letter]:
        if self._open is None:
            newest = (same[-1] for same in self._by_subject.values())
            self._open = [letter for letter in newest if self.state_of(letter) is OPEN]
        return self._open

    def open_of(self, row: "DocumentRow") -> Letter | None:
        """The open letter of a document that is indexed: of a newer record of it, then, than the one that is shown."""
        letter = self.open_named(row.key)
        return None if letter is None or version_of(row).is_newer_than(letter.source) else letter

    def open_named(self, key: DocumentKey) -> Letter | None:
        """The open letter of a document."""
        same = self._by_subject.get(subject_of(self._topics.documents, key.encoded()))
        return same[-1] if same and self.state_of(same[-1]) is OPEN else None

    def open_reasons(self, wanted: LetterFilter = ANY) -> dict[str, int]:
        """How many of those asked for are open by reason, the most frequent first."""
        return dict(Counter(each.reason for each in self.open() if wanted.matches(each)).most_common())

    def look_below(self, partition: int, end: int, wanted: LetterFilter) -> int:
        """Behind the next offset below `end` that may hold a letter that is asked for."""
        known_from = self.complete_from.get(partition, end)
        if not known_from < end <= self.read_to.get(partition, 0):
            return end
        for offset in range(end - 1, known_from - 1, -1):
            letter = self._letters.get(Position(partition, offset))
            if letter is not None and self.matches(letter, wanted):
                return offset + 1
        return known_from

    def open_sources(self, topic: str) -> set[int]:
        """The offsets of a topic's records whose letters are open."""
        return {each.source.offset for each in self.open() if each.topic == topic}


def _is_later(stored: RecordVersion, known: RecordVersion) -> bool:
    if stored.partition == known.partition:
        return stored.offset > known.offset
    return stored.timestamp_ms > known.timestamp_ms
