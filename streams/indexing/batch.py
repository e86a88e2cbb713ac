"""A batch of the documents topic on its way through the commit: decoded, resolved, built, and what of it changes the
stores. Each stage is made of the one before and is never changed. No I/O."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from indexer.schema import DocumentRow, StoredPosition
from indexer.write.lance_rows import IndexedRows
from schemas.errors import MalformedEvent
from schemas.events import DocumentUpsert, decode_document_event
from schemas.ids import DocumentKey, Position
from schemas.receipts import NOTHING_DELETED, Outcome, Receipt
from schemas.settings import LimitSettings
from schemas.tracing import traceparent_in
from schemas.unknown_fields import note_unknown
from schemas.versioning import DocumentState, Resolution, fold
from streams.indexing.document_steps import Choices, DecodedEvent, LinkedDocument, Refused
from streams.kafka.records import DeadLetter, SourceRecord

NOTHING_STORED = StoredPosition(-1, -1)
MISPLACED = (
    "The record came in partition {came}, and Kafka's default partitioner (murmur2) puts its key into partition "
    "{belongs}: deletes by other clients may miss it. Let the producer use murmur2 (librdkafka: "
    "partitioner=murmur2_random)."
)


class DocumentsTopic(NamedTuple):
    """The documents topic as the worker of a generation reads it. `partition_of` gives the partition that a key belongs
    to by Kafka's default partitioner, None where that is not known."""

    name: str
    generation: str
    partition_of: Callable[[bytes], int | None]

    def is_misplaced(self, record: SourceRecord) -> bool:
        """Whether it came in another partition than its key belongs to."""
        return not record.is_gap and self.partition_of(record.key or b"") not in (None, record.partition)

    def receipt(self, of: DecodedEvent | Refused, outcome: Outcome, *notes: str, **fields: Any) -> Receipt:
        record = of.record
        if isinstance(of.event, DocumentUpsert) and (unknown := note_unknown(of.event.unknown_fields)):
            notes = (*notes, unknown)
        if self.is_misplaced(record):
            notes = (*notes, MISPLACED.format(came=record.partition, belongs=self.partition_of(record.key or b"")))
        return Receipt(
            key=(record.key or b"").decode("utf-8", "replace"),
            outcome=outcome,
            partition=record.partition,
            offset=record.offset,
            generation=self.generation,
            produced_at_ms=record.timestamp_ms,
            traceparent=(of.event.traceparent if of.event else None) or traceparent_in(record.headers),
            notes=notes,
            **fields,
        )


def split(records: Sequence[SourceRecord], *, max_records: int, max_bytes: int) -> Iterator[Sequence[SourceRecord]]:
    """Cut records into contiguous batches within both bounds; a record over the bound is a batch of its own."""
    start, size = 0, 0
    for index, record in enumerate(records):
        if index > start and (index - start >= max_records or size + record.size_bytes > max_bytes):
            yield records[start:index]
            start, size = index, 0
        size += record.size_bytes
    if start < len(records):
        yield records[start:]


@dataclass(frozen=True)
class Decoded:
    """The records of a batch, each once; the events of each document in the order of the log, and what is refused."""

    records: Sequence[SourceRecord]
    choices: Choices
    events: Mapping[DocumentKey, Sequence[DecodedEvent]]
    refused: Sequence[Refused]

    @classmethod
    def of(
        cls, records: Sequence[SourceRecord], choices: Choices, limits: LimitSettings, failure: Exception | None = None
    ) -> "Decoded":
        """A gap only moves the position. With the `failure` of a record that is alone, it is refused."""
        records = list({record.position: record for record in records}.values())
        events: dict[DocumentKey, list[DecodedEvent]] = defaultdict(list)
        refused: list[Refused] = []
        for record in records:
            if record.is_gap:
                continue
            if failure is not None:
                refused.append(Refused(record, "store", failure))
                continue
            try:
                event = decode_document_event(record.key, record.value, record.headers, limits)
            except MalformedEvent as error:
                refused.append(Refused(record, "decode", error))
                continue
            events[event.key].append(DecodedEvent.from_record(record, event, choices))
        return cls(records, choices, dict(events), refused)

    def without(self, keys: Collection[DocumentKey]) -> "Decoded":
        return replace(self, events={key: events for key, events in self.events.items() if key not in keys})

    def outlived(self, rows: Mapping[DocumentKey, DocumentRow]) -> set[DocumentKey]:
        """The stored documents whose record is not among these, and that no event replaces."""
        found = set()
        for key, row in rows.items():
            events = self.events.get(key, ())
            is_there = any(event.position == (row.partition, row.offset) for event in events)
            if not is_there and fold(_state_of(row), events, {}).winner is None:
                found.add(key)
        return found

    @property
    def unknown_fields(self) -> int:
        """How many were left out of its documents."""
        upserts = (each.event for events in self.events.values() for each in events)
        return sum(len(each.unknown_fields) for each in upserts if isinstance(each, DocumentUpsert))

    def advance(self, reached: Mapping[int, StoredPosition]) -> dict[int, StoredPosition]:
        """The positions reached with this batch, of its partitions; they never go back."""
        advanced: dict[int, StoredPosition] = {}
        for record in self.records:
            before = advanced.get(record.partition) or reached.get(record.partition, NOTHING_STORED)
            if record.offset > before.offset:
                before = before._replace(offset=record.offset, timestamp_ms=record.timestamp_ms)
            advanced[record.partition] = before
        return advanced


@dataclass(frozen=True)
class ResolvedDocument:
    """A document in a batch: its stored row, its events that are not refused, and what they come to. `reached` are the
    stored offsets by partition."""

    key: DocumentKey
    row: DocumentRow | None
    events: Sequence[DecodedEvent]
    reached: Mapping[int, int]
    outcome: Resolution[DecodedEvent]

    @property
    def winner(self) -> DecodedEvent | None:
        """The event that its content now comes from; None where the row stays."""
        return self.outcome.winner

    def wanted(self) -> Iterator[DecodedEvent]:
        """The upserts that have to be built: the winner, and others on which it depends whether they win."""
        if (refused_before := self._passed_over()) is not None:
            yield refused_before
        if self.winner is None:
            return
        if not _independent_of_losers(self.row, self.events, self.winner):
            yield from (event for event in self.outcome.superseded if not event.deletes)
        if not self.winner.deletes and not self.is_unchanged:
            yield self.winner

    def _passed_over(self) -> DecodedEvent | None:
        """The upsert that was read before and ought to have won, and did not: it was refused, and is refused again so
        that its receipt says so."""
        read = [each for each in self.events if each.position.offset <= self.reached.get(each.position.partition, -1)]
        due = fold(_state_of(self.row), read, {}).winner
        is_stored = due is None or (self.row is not None and (self.row.partition, self.row.offset) == due.position)
        return None if due is None or is_stored or due.deletes else due

    @property
    def is_unchanged(self) -> bool:
        """Whether the stores surely have the content of the winner."""
        if self.winner is None or self.winner.deletes or self.row is None or not self.row.live:
            return False
        return self.row.revision == self.winner.revision and self._is_trusted(self.row)

    @property
    def found_nothing(self) -> bool:
        """Whether it is deleted, and surely no document was found: a row from before a crash, of the winner itself or
        of another tombstone after the stored position, does not show that."""
        row, winner = self.row, self.winner
        if winner is None or not winner.deletes or self.outcome.superseded or (row is not None and row.live):
            return False
        return row is None or (self._is_trusted(row) and (row.partition, row.offset) != winner.position)

    def _is_trusted(self, row: DocumentRow) -> bool:
        return row.offset <= self.reached.get(row.partition, -1)

    def changed_rows(self, topic: DocumentsTopic, linked: Mapping[Position, LinkedDocument]) -> IndexedRows | None:
        """The rows of the winner; without one, the row that notes another partition; None where nothing changes."""
        row, winner, state = self.row, self.winner, self.outcome.state
        if winner is None or state is None:
            others = () if row is None else self._other_partitions(topic, row.partition)
            is_noted = row is None or others == row.other_partitions
            return None if row is None or is_noted else IndexedRows(replace(row, other_partitions=others))
        source: dict[str, Any] = {
            "version": state.version,
            "partition": winner.position.partition,
            "offset": winner.position.offset,
            "timestamp_ms": winner.timestamp_ms,
            "other_partitions": self._other_partitions(topic, winner.position.partition),
        }
        if row is not None and self.is_unchanged:
            return IndexedRows(replace(row, **source))
        if winner.deletes:
            return IndexedRows(DocumentRow(key=self.key, **source, deleted_at_ms=winner.timestamp_ms))
        made = linked[winner.position]
        live = DocumentRow.from_prepared(made.prepared, **source)
        return IndexedRows(live, made.prepared, made.vectors, made.hashes, made.spans)

    def _other_partitions(self, topic: DocumentsTopic, partition: int) -> tuple[int, ...]:
        """The partitions besides this one that a tombstone of the document has to reach."""
        seen = {event.position.partition for event in self.events}
        if self.row is not None:
            seen |= {self.row.partition, *self.row.other_partitions}
        if self.events and (belongs := topic.partition_of(self.events[0].record.key or b"")) is not None:
            seen.add(belongs)
        return tuple(sorted(seen - {partition}))

    def receipts(self, topic: DocumentsTopic, linked: Mapping[Position, LinkedDocument]) -> Iterator[Receipt]:
        """One for each event. Of one that is repeated, since it was done before, perhaps the receipt was not sent."""
        row, winner, outcome = self.row, self.winner, self.outcome
        stored: dict[str, Any] = {} if row is None else {"passages": row.passages, "chunks": row.chunks}
        by = outcome.state and str(outcome.state.position)
        for event in outcome.superseded:
            yield topic.receipt(event, "superseded", version=event.version, superseded_by=by)
        for event in outcome.repeated:
            done: Outcome = "indexed" if row is not None and row.live else "deleted"
            yield topic.receipt(event, done, version=event.version, revision=event.revision, **stored)
        if winner is None:
            return
        of_winner = {"version": winner.version, "revision": winner.revision}
        if winner.deletes:
            yield topic.receipt(winner, "deleted", **of_winner, message=NOTHING_DELETED if self.found_nothing else None)
        elif self.is_unchanged:
            yield topic.receipt(winner, "unchanged", **of_winner, **stored)
        else:
            made = linked[winner.position]
            yield topic.receipt(
                winner,
                "indexed",
                *made.prepared.notes,
                **of_winner,
                passages=len(made.prepared.chunked.passages),
                chunks=len(made.prepared.chunked.chunks),
                embedded=made.encoded,
                entities=made.entities,
                statements=made.statements,
            )


@dataclass(frozen=True)
class Resolved:
    """What each document of a batch comes to, over the stored rows and the offsets `reached`, without what is refused
    by now."""

    reached: Mapping[int, int]
    refused: Sequence[Refused]
    documents: Sequence[ResolvedDocument]

    @classmethod
    def of(
        cls,
        decoded: Decoded,
        stored: Mapping[DocumentKey, DocumentRow],
        reached: Mapping[int, StoredPosition],
        refused: Sequence[Refused],
    ) -> "Resolved":
        offsets = {partition: each.offset for partition, each in reached.items()}
        without = {each.record.position for each in refused}
        documents = []
        for key, every in decoded.events.items():
            events = [event for event in every if event.position not in without]
            outcome = fold(_state_of(stored.get(key)), events, offsets)
            documents.append(ResolvedDocument(key, stored.get(key), events, offsets, outcome))
        return cls(offsets, (*decoded.refused, *refused), documents)

    def wanted(self) -> list[DecodedEvent]:
        """The upserts that have to be built, each once, in the order of their positions."""
        wanted = {event.position: event for document in self.documents for event in document.wanted()}
        return [wanted[position] for position in sorted(wanted)]


@dataclass(frozen=True)
class Changes:
    """What is written: rows to the tables, and contributions to the graph, None for a document that leaves it."""

    rows: Sequence[IndexedRows]
    contributions: Mapping[DocumentKey, bytes | None]

    def and_deleted(
        self, keys: Collection[DocumentKey], stored: Mapping[DocumentKey, DocumentRow], now_ms: int
    ) -> "Changes":
        """These documents leave the graph as well, and the tables where they are stored."""
        tombstones = [IndexedRows(row.tombstone(now_ms)) for key, row in stored.items() if key in keys]
        return Changes([*self.rows, *tombstones], {**self.contributions, **dict.fromkeys(keys)})


@dataclass(frozen=True)
class Built:
    """A resolved batch of which every winner can be stored: `linked` are the documents made of upserts."""

    topic: DocumentsTopic
    resolved: Resolved
    linked: Mapping[Position, LinkedDocument]

    def letters(self) -> list[DeadLetter]:
        """The dead letters still to be sent. Those below the stored positions were confirmed before; but a record that
        failed alone may have failed after its position was stored."""
        reached = self.resolved.reached
        return [
            each.letter(self.topic.name)
            for each in self.resolved.refused
            if each.stage == "store" or each.record.offset > reached.get(each.record.partition, -1)
        ]

    def changes(self, *, all_deletes: bool = False) -> Changes:
        """Of documents with a winner, and of those with a superseded record in another partition.

        A delete that surely found no document changes nothing in the graph, and so what the tables need of it stays
        where it is; with `all_deletes` it counts like any other.
        """
        rows = (each.changed_rows(self.topic, self.linked) for each in self.resolved.documents)
        contributions = {
            each.key: None if each.winner.deletes else self.linked[each.winner.position].contribution
            for each in self.resolved.documents
            if each.winner is not None and not each.is_unchanged and (all_deletes or not each.found_nothing)
        }
        return Changes([each for each in rows if each is not None], contributions)

    def receipts(self, seconds: Mapping[str, float], now_ms: int) -> list[Receipt]:
        """One receipt for each record, in the order of the log. `seconds` by stage are the whole batch's."""
        letters = ((each, each.letter(self.topic.name)) for each in self.resolved.refused)
        receipts = [
            *(
                self.topic.receipt(each, "dead_lettered", reason=letter.reason, message=letter.message)
                for each, letter in letters
            ),
            *(receipt for each in self.resolved.documents for receipt in each.receipts(self.topic, self.linked)),
        ]
        receipts.sort(key=lambda receipt: (receipt.partition, receipt.offset))
        rounded = {stage: round(value, 4) for stage, value in seconds.items()}
        return [msgspec.structs.replace(receipt, seconds=rounded, finished_at_ms=now_ms) for receipt in receipts]


def _state_of(row: DocumentRow | None) -> DocumentState | None:
    if row is None:
        return None
    return DocumentState(Position(row.partition, row.offset), row.timestamp_ms, row.version, deleted=not row.live)


def _independent_of_losers(row: DocumentRow | None, events: Sequence[DecodedEvent], winner: DecodedEvent) -> bool:
    """Whether the winner would be the same, and leave the same state, had any of the other upserts been refused.

    So it is where nothing carries a version, where the winner's is above all others, and where it is the highest and
    nothing is or was deleted. Else an upsert that lost may have raised the floor, or revived the document, for another.
    """
    others = [event.version for event in events if event is not winner] + [row.version if row else None]
    versions = [version for version in others if version is not None]
    if winner.version is None:
        return not versions
    if all(version < winner.version for version in versions):
        return True
    deletes = any(event.deletes for event in events) or (row is not None and not row.live)
    return not deletes and max(versions) <= winner.version
