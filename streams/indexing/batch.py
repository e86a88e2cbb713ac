"""A batch of the documents topic while it is committed: its events, which of each document wins, what is refused, and
what follows for rows, contributions, positions and receipts. No I/O."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from indexer.chunking.splitter import ChunkingParameters
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
from streams.indexing.document_steps import DecodedEvent, EmbeddedDocument, LinkedDocument, Refused
from streams.kafka.records import DeadLetter, SourceRecord, Stage
from streams.worker_metrics import Stopwatch

NOTHING_STORED = StoredPosition(-1, -1)
MISPLACED = (
    "The record came in partition {came}, and Kafka's default partitioner (murmur2) puts its key into partition "
    "{belongs}: deletes by other clients may miss it. Let the producer use murmur2 (librdkafka: "
    "partitioner=murmur2_random)."
)

PartitionOf = Callable[[bytes], int | None]
"""The partition that a key belongs to by Kafka's default partitioner; None where that is not known."""


def unknown_partition(_key: bytes) -> None:
    """For a topic whose number of partitions is not known."""


@dataclass(frozen=True)
class Winner:
    """The event a document's content now comes from, and the state it leaves."""

    key: DocumentKey
    event: DecodedEvent
    state: DocumentState


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


@dataclass
class Batch:
    """`refused` grows until every document has a winner that can be stored, or none.

    `stored` are the documents' stored rows, `reached` the stored positions. What was prefetched stays good: these two
    only decide which of it is needed. `chunking` is what collections have chosen, `extractors` the versions of those.
    """

    topic: str
    generation: str
    records: Sequence[SourceRecord]
    reached: Mapping[int, StoredPosition]
    chunking: Mapping[str, ChunkingParameters]
    events: dict[DocumentKey, list[DecodedEvent]] = field(default_factory=lambda: defaultdict(list))
    stored: dict[DocumentKey, DocumentRow] = field(default_factory=dict)
    resolutions: dict[DocumentKey, Resolution[DecodedEvent]] = field(default_factory=dict)
    embedded: dict[Position, EmbeddedDocument | Refused] = field(default_factory=dict)
    linked: dict[Position, LinkedDocument] = field(default_factory=dict)
    unchanged: set[DocumentKey] = field(default_factory=set)
    refused: dict[Position, tuple[SourceRecord, DeadLetter]] = field(default_factory=dict)
    unknown_fields: dict[Position, tuple[str, ...]] = field(default_factory=dict)
    traceparents: dict[Position, str] = field(default_factory=dict)
    partition_of: PartitionOf = unknown_partition
    extractors: Mapping[str, str] = field(default_factory=dict)
    watch: Stopwatch = field(default_factory=Stopwatch)

    def decode(self, limits: LimitSettings, failed_alone: Mapping[Position, Exception]) -> None:
        """Decode or refuse every record. One that came twice counts once; a gap only moves the position.

        `failed_alone` are records that the bisection of a failed batch found.
        """
        self.records = list({record.position: record for record in self.records}.values())
        for record in self.records:
            if record.is_gap:
                continue
            self._note_trace(record, traceparent_in(record.headers))
            if record.position in failed_alone:
                self._dead_letter(record, "store", failed_alone[record.position])
                continue
            try:
                event = decode_document_event(record.key, record.value, record.headers, limits)
            except MalformedEvent as error:
                self._dead_letter(record, "decode", error)
                continue
            self._note_trace(record, event.traceparent)
            if isinstance(event, DocumentUpsert) and event.unknown_fields:
                self.unknown_fields[record.position] = event.unknown_fields
            chosen = self.chunking.get(event.key.collection)
            extractor = self.extractors.get(event.key.collection)
            self.events[event.key].append(DecodedEvent.from_record(record, event, chosen, extractor))
        self.watch.lap("decode")

    def resolve(self, keys: set[DocumentKey]) -> list[DecodedEvent]:
        """Find the winner of each of the documents. Returns the upserts that have to be built: the winners, and others
        on which it depends whether they win."""
        watermarks = {partition: stored.offset for partition, stored in self.reached.items()}
        wanted: list[DecodedEvent] = []
        for key in keys:
            row = self.stored.get(key)
            events = [event for event in self.events[key] if event.position not in self.refused]
            resolution = self.resolutions[key] = fold(_state_of(row), events, watermarks)
            self.unchanged.discard(key)
            refused_before = _passed_over(row, events, watermarks)
            if refused_before is not None:
                wanted.append(refused_before)
            if resolution.winner is None:
                continue
            if not _independent_of_losers(row, events, resolution.winner):
                wanted += [event for event in resolution.superseded if not event.deletes]
            if resolution.winner.deletes:
                continue
            if _has_revision(row, resolution.winner, watermarks):
                self.unchanged.add(key)
            else:
                wanted.append(resolution.winner)
        missing = [event for event in wanted if event.position not in self.linked]
        return sorted(missing, key=lambda event: event.position)

    def refuse(self, refused: Refused) -> DocumentKey:
        """Make an event a dead letter; its document has to be resolved again without it."""
        self._dead_letter(refused.event.record, refused.stage, refused.error)
        return refused.event.key

    def _dead_letter(self, record: SourceRecord, stage: Stage, error: Exception) -> None:
        self.refused[record.position] = (record, record.dead_letter(self.topic, stage, error))

    def _note_trace(self, record: SourceRecord, traceparent: str | None) -> None:
        if traceparent is not None:
            self.traceparents[record.position] = traceparent

    def letters(self) -> list[DeadLetter]:
        """The dead letters still to be sent. Those below the stored positions were confirmed before; but a record that
        failed alone may have failed after its position was stored."""
        return [
            letter
            for (partition, offset), (_, letter) in self.refused.items()
            if letter.stage == "store" or offset > self.reached.get(partition, NOTHING_STORED).offset
        ]

    def winners(self) -> Iterator[Winner]:
        for key, resolution in self.resolutions.items():
            if resolution.winner is not None and resolution.state is not None:
                yield Winner(key, resolution.winner, resolution.state)

    def changed_rows(self) -> list[IndexedRows]:
        """The rows of all winners, and of documents with a superseded record in another partition."""
        rows = [self._row(winner) for winner in self.winners()]
        for key, resolution in self.resolutions.items():
            row = self.stored.get(key)
            if resolution.winner is None and row is not None:
                others = self._other_partitions(key, row.partition)
                if others != row.other_partitions:
                    rows.append(IndexedRows(replace(row, other_partitions=others)))
        return rows

    @property
    def misplaced(self) -> int:
        """Records that came in another partition than their key belongs to."""
        return sum(self._is_misplaced(record) for record in self.records)

    def _is_misplaced(self, record: SourceRecord) -> bool:
        return self.partition_of(record.key or b"") not in (None, record.partition)

    def _other_partitions(self, key: DocumentKey, partition: int) -> tuple[int, ...]:
        """The partitions besides this one that a tombstone of the document has to reach."""
        row = self.stored.get(key)
        events = [event for event in self.events[key] if event.position not in self.refused]
        seen = {event.position.partition for event in events}
        if row is not None:
            seen |= {row.partition, *row.other_partitions}
        if events and (belongs := self.partition_of(events[0].record.key or b"")) is not None:
            seen.add(belongs)
        return tuple(sorted(seen - {partition}))

    def contributions(self) -> dict[DocumentKey, bytes | None]:
        """What documents add to the graph now: None for a deleted one."""
        return {
            winner.key: None if winner.event.deletes else self.linked[winner.event.position].contribution
            for winner in self.winners()
            if winner.key not in self.unchanged
        }

    def changes(self) -> dict[DocumentKey, bytes | None]:
        """The contributions without deletes of documents that the graph surely does not hold: the graph that the tables
        need stays where it is while nothing changes there."""
        return {
            key: value
            for key, value in self.contributions().items()
            if value is not None or not self._found_nothing(key, self.resolutions[key].winner)
        }

    def advance(self, mark: int = -1) -> dict[int, StoredPosition]:
        """The positions reached with this batch, and the mark of what it changes; they never go back."""
        advanced: dict[int, StoredPosition] = {}
        for record in self.records:
            before = advanced.get(record.partition) or self.reached.get(record.partition, NOTHING_STORED)
            if record.offset > before.offset:
                before = before._replace(offset=record.offset, timestamp_ms=record.timestamp_ms)
            advanced[record.partition] = before._replace(mark=max(before.mark, mark))
        return advanced

    def receipts(self, seconds: Mapping[str, float], now_ms: int) -> list[Receipt]:
        """One receipt for each record, in the order of the log. `seconds` by stage are the whole batch's."""
        receipts = [
            self._receipt(record, "dead_lettered", reason=letter.reason, message=letter.message)
            for record, letter in self.refused.values()
        ]
        for key, resolution in self.resolutions.items():
            if resolution.winner is not None:
                receipts.append(self._winner_receipt(key, resolution.winner))
            by = resolution.state and str(resolution.state.position)
            receipts += [
                self._receipt(event.record, "superseded", version=event.version, superseded_by=by)
                for event in resolution.superseded
            ]
            receipts += [self._repeated_receipt(event, self.stored[key]) for event in resolution.repeated]
        receipts.sort(key=lambda receipt: (receipt.partition, receipt.offset))
        rounded = {stage: round(value, 4) for stage, value in seconds.items()}
        return [msgspec.structs.replace(receipt, seconds=rounded, finished_at_ms=now_ms) for receipt in receipts]

    def _winner_receipt(self, key: DocumentKey, winner: DecodedEvent) -> Receipt:
        if winner.deletes:
            message = NOTHING_DELETED if self._found_nothing(key, winner) else None
            return self._receipt(winner.record, "deleted", version=winner.version, message=message)
        if key in self.unchanged:
            row = self.stored[key]
            return self._receipt(
                winner.record,
                "unchanged",
                version=winner.version,
                revision=winner.revision,
                passages=row.passages,
                chunks=row.chunks,
            )
        linked = self.linked[winner.position]
        return self._receipt(
            winner.record,
            "indexed",
            version=winner.version,
            revision=winner.revision,
            passages=len(linked.prepared.chunked.passages),
            chunks=len(linked.prepared.chunked.chunks),
            embedded=linked.encoded,
            entities=linked.entities,
            statements=linked.statements,
            notes=linked.prepared.notes,
        )

    def _found_nothing(self, key: DocumentKey, tombstone: DecodedEvent | None) -> bool:
        """Whether it surely found no document: a row from before a crash, its own or that of another tombstone after
        the stored position, does not show that."""
        row = self.stored.get(key)
        if tombstone is None or self.resolutions[key].superseded or (row is not None and row.live):
            return False
        if row is None:
            return True
        is_trusted = row.offset <= self.reached.get(row.partition, NOTHING_STORED).offset
        return is_trusted and Position(row.partition, row.offset) != tombstone.position

    def _repeated_receipt(self, event: DecodedEvent, row: DocumentRow) -> Receipt:
        """For a record that was done before, when perhaps its receipt was not."""
        return self._receipt(
            event.record,
            "indexed" if row.live else "deleted",
            version=event.version,
            revision=event.revision,
            passages=row.passages,
            chunks=row.chunks,
        )

    def _receipt(self, record: SourceRecord, outcome: Outcome, notes: tuple[str, ...] = (), **fields: Any) -> Receipt:
        if unknown := note_unknown(self.unknown_fields.get(record.position, ())):
            notes = (*notes, unknown)
        if self._is_misplaced(record):
            notes = (*notes, MISPLACED.format(came=record.partition, belongs=self.partition_of(record.key or b"")))
        return Receipt(
            key=(record.key or b"").decode("utf-8", "replace"),
            outcome=outcome,
            partition=record.partition,
            offset=record.offset,
            generation=self.generation,
            produced_at_ms=record.timestamp_ms,
            traceparent=self.traceparents.get(record.position),
            notes=notes,
            **fields,
        )

    def _row(self, winner: Winner) -> IndexedRows:
        source: dict[str, Any] = {
            "version": winner.state.version,
            "partition": winner.event.position.partition,
            "offset": winner.event.position.offset,
            "timestamp_ms": winner.event.timestamp_ms,
            "other_partitions": self._other_partitions(winner.key, winner.event.position.partition),
        }
        if winner.key in self.unchanged:
            return IndexedRows(replace(self.stored[winner.key], **source))
        if winner.event.deletes:
            return IndexedRows(DocumentRow(key=winner.key, **source, deleted_at_ms=winner.event.timestamp_ms))
        document = self.linked[winner.event.position]
        prepared = document.prepared
        live = DocumentRow.from_prepared(
            prepared,
            **source,
        )
        return IndexedRows(live, prepared, document.vectors, document.hashes, document.spans)


def outlives_log(row: DocumentRow, events: Sequence[DecodedEvent]) -> bool:
    """Whether a stored document stands by a record that the log no longer holds: none of its events replaces it."""
    is_there = any(event.position == (row.partition, row.offset) for event in events)
    return not is_there and fold(_state_of(row), events, {}).winner is None


def _state_of(row: DocumentRow | None) -> DocumentState | None:
    if row is None:
        return None
    return DocumentState(Position(row.partition, row.offset), row.timestamp_ms, row.version, deleted=not row.live)


def _has_revision(row: DocumentRow | None, winner: DecodedEvent, watermarks: Mapping[int, int]) -> bool:
    """Whether the stores surely have the content of the winner."""
    if row is None or not row.live:
        return False
    return row.revision == winner.revision and row.offset <= watermarks.get(row.partition, -1)


def _passed_over(
    row: DocumentRow | None, events: Sequence[DecodedEvent], watermarks: Mapping[int, int]
) -> DecodedEvent | None:
    """The upsert that was read before and ought to have won, and did not: it was refused, and is refused again so that
    its receipt says so."""
    due = fold(_state_of(row), [event for event in events if _is_read(event, watermarks)], {}).winner
    is_stored = due is None or (row is not None and (row.partition, row.offset) == due.position)
    return None if due is None or is_stored or due.deletes else due


def _is_read(event: DecodedEvent, watermarks: Mapping[int, int]) -> bool:
    return event.position.offset <= watermarks.get(event.position.partition, -1)


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
