"""The ledger: what became of each record of the documents topic, by what the stores and the dead letters hold.

Every record that the stores have read is indexed, superseded, deleted or dead-lettered. Which of these is decided as
the worker decides it, from the state that each document has now: what the log holds counts, whatever compaction took.
Canaries are not counted.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from indexer.schema import DocumentRow
from schemas.errors import MalformedEvent
from schemas.events import decode_document_event
from schemas.ids import DocumentKey, Position, is_canary
from schemas.orders import MOST_DOCUMENTS
from schemas.settings import LimitSettings
from schemas.versioning import DocumentState, advance, decide
from streams.indexing.document_steps import DecodedEvent
from streams.kafka.records import SourceRecord

SHOWN = 20

MISSING = "records that are neither in the stores nor among the dead letters"
OUTDATED = "records that the stores have read, and show an older one in their place"
UNDELETED = "deletes that the stores have read, and still show the document"
UNREPORTED = "records that cannot be decoded, and no dead letter says so"
UNKNOWN = "documents in the stores of which the log holds no record"
UNREADABLE = "batches that cannot be read any more"


class Imbalance(msgspec.Struct, frozen=True, kw_only=True):
    """Records or documents that do not balance; at most twenty are named, by document and position."""

    what: str
    count: int
    documents: tuple[str, ...]


class LedgerReport(msgspec.Struct, frozen=True, kw_only=True):
    """The records that the log holds, by what became of them. `balanced` means that nothing else did.

    `pending`: records that the stores have not read yet. `undecided`: records without a trace in the stores that are
    older than the dead letters which are kept. `notes`: what a person should know, though it balances. `documents` are
    those that a repair writes again, as many as one order takes, and one more.
    """

    balanced: bool
    records: int
    indexed: int
    superseded: int
    deleted: int
    dead_lettered: int
    pending: int
    undecided: int
    imbalances: tuple[Imbalance, ...]
    notes: tuple[str, ...] = ()
    documents: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """The report for a person."""
        names = ("indexed", "superseded", "deleted", "dead_lettered")
        counts = ", ".join(f"{getattr(self, name):,} {name.replace('_', '-')}" for name in names)
        yield f"log    {self.records:,} records: {counts}" + (f"; {self.pending:,} wait" if self.pending else "")
        if self.undecided:
            yield f"{self.undecided:,} records left no trace, and are older than the dead letters that are kept"
        yield from self.notes
        for each in self.imbalances:
            yield f"does not balance: {each.count:,} {each.what}: {', '.join(each.documents)}"
        yield "the ledger balances" if self.balanced else "the ledger does NOT balance"


class Letters(NamedTuple):
    """The records of the documents topic that are among the dead letters. `since_ms`, by partition: letters of records
    from before may have been removed."""

    positions: Collection[Position]
    since_ms: Mapping[int, int]


class Ledger:
    """Takes the records of the log one by one; those of a partition in their order."""

    def __init__(
        self, documents: Iterable[DocumentRow], reached: Mapping[int, int], letters: Letters, limits: LimitSettings
    ) -> None:
        """`documents` are all rows, tombstones included, and `reached` the stored positions, both of one snapshot."""
        self._stored: dict[DocumentKey, DocumentState] = {}
        self._elsewhere: dict[DocumentKey, list[DecodedEvent]] = {}  # documents of several partitions
        for row in documents:
            position = Position(row.partition, row.offset)
            self._stored[row.key] = DocumentState(position, row.timestamp_ms, row.version, deleted=not row.live)
            if row.other_partitions:
                self._elsewhere[row.key] = []
        self._unseen = {key for key, state in self._stored.items() if not state.deleted}
        self._reached = reached
        self._letters = letters
        self._limits = limits
        self._counts = dict.fromkeys(("indexed", "superseded", "deleted", "dead_lettered"), 0)
        self._imbalances: dict[str, list[str]] = {}
        self._counted: dict[str, int] = {}
        self._suspects: list[tuple[DocumentKey, DecodedEvent]] = []
        self._records = self._pending = self._undecided = 0
        self._documents: dict[str, None] = {}
        self._unreadable = False
        self._notes: list[str] = []

    def add(self, record: SourceRecord) -> None:
        key = DocumentKey.of_record(record.key)
        if key is not None and record.value is None and is_canary(str(key)):
            return
        if key is not None:
            self._unseen.discard(key)
        if record.offset > self._reached.get(record.partition, -1):
            self._pending += 1
            return
        self._records += 1
        state = None if key is None else self._stored.get(key)
        if state is not None and state.position == record.position:
            self._counts["deleted" if state.deleted else "indexed"] += 1
        elif record.position in self._letters.positions:
            self._counts["dead_lettered"] += 1
        else:
            self._add_unsettled(record, key, state)

    def add_unreadable(self, partition: int, first: int, sentence: str) -> None:
        """A batch that no reader can read; nothing after it was added."""
        self._unreadable = True
        if first <= self._reached.get(partition, -1):
            self._name(UNREADABLE, sentence)
        else:
            self._notes.append(sentence)

    def report(self) -> LedgerReport:
        for key, event in self._suspects:
            if any(decide(advance(None, other), event, {}) == "superseded" for other in self._elsewhere.get(key, ())):
                self._counts["superseded"] += 1
            else:
                self._name(UNDELETED if event.deletes else OUTDATED, f"{key} at {event.position}", key)
        self._suspects = []
        if not self._unreadable:
            for key in sorted(self._unseen):
                self._name(UNKNOWN, f"{key} at {self._stored[key].position}", key)
        self._unseen = set()
        imbalances = tuple(
            Imbalance(what=what, count=self._counted[what], documents=tuple(named))
            for what, named in self._imbalances.items()
        )
        return LedgerReport(
            balanced=not imbalances,
            records=self._records,
            pending=self._pending,
            undecided=self._undecided,
            imbalances=imbalances,
            notes=tuple(self._notes),
            documents=tuple(self._documents),
            **self._counts,
        )

    def _add_unsettled(self, record: SourceRecord, key: DocumentKey | None, state: DocumentState | None) -> None:
        """A record that is neither what the stores hold now nor among the dead letters."""
        name = f"{key or repr(record.key)[:80]} at {record.position}"
        try:
            decoded = decode_document_event(record.key, record.value, record.headers, self._limits)
        except MalformedEvent:
            if self._is_older_than_letters(record):
                self._counts["dead_lettered"] += 1
            else:
                self._name(UNREPORTED, name)
            return
        event = DecodedEvent(record, decoded, revision=None)
        if decoded.key in self._elsewhere:
            self._elsewhere[decoded.key].append(event)
        if event.deletes and (state is None or state.deleted):
            self._counts["deleted"] += 1
        elif state is not None and decide(state, event, {}) == "superseded":
            self._counts["superseded"] += 1
        elif self._is_older_than_letters(record):
            self._undecided += 1
        elif state is None:
            self._name(MISSING, name, decoded.key)
        else:
            self._suspects.append((decoded.key, event))

    def _is_older_than_letters(self, record: SourceRecord) -> bool:
        return record.timestamp_ms < self._letters.since_ms.get(record.partition, 0)

    def _name(self, what: str, document: str, key: DocumentKey | None = None) -> None:
        if key is not None and len(self._documents) <= MOST_DOCUMENTS:
            self._documents[str(key)] = None
        self._counted[what] = self._counted.get(what, 0) + 1
        named = self._imbalances.setdefault(what, [])
        if len(named) < SHOWN:
            named.append(document)
