"""Which event of a document wins: versions and positions that guard, as pure arithmetic.

What a document's row holds is the fold of its events, in the order of the log, over what the row held before. The fold
gives the same state however the sequence of events is cut into batches, and however often a part of it is repeated.

Rules, for an event and the state held:
- An event that the stores' watermark has passed was considered before. Where it is not the one held, it lost or became
  a dead letter then, and that is final: readers follow the stores by what lies behind the watermark.
- Same partition: an event below the held offset was considered before. At the held offset it is the one held: done if
  the watermark has passed it, else to be done again, since a crash may have come between two stores.
- Both carry a version: the higher wins. At the same version the later wins over a live document, and none over a
  tombstone.
- Else the later wins: by offset within a partition, by record time and then partition number across partitions.
- An event without a version keeps the highest version seen, as a floor for those that carry one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from schemas.ids import Position

Verdict = Literal["wins", "repeats", "superseded"]


class Ordered(Protocol):
    """What ordering has to know of an event. `timestamp_ms` is the record's."""

    @property
    def position(self) -> Position: ...
    @property
    def timestamp_ms(self) -> int: ...
    @property
    def version(self) -> int | None: ...
    @property
    def deletes(self) -> bool: ...


@dataclass(frozen=True)
class DocumentState:
    """What is known of a document. `version` is a floor: the highest version ever applied, None before the first."""

    position: Position
    timestamp_ms: int
    version: int | None
    deleted: bool


Event = TypeVar("Event", bound=Ordered)


@dataclass(frozen=True)
class Folded(Generic[Event]):
    """What became of a document's events. `winner` is None where the document stays as it was held."""

    state: DocumentState | None
    winner: Event | None
    superseded: tuple[Event, ...]
    repeated: tuple[Event, ...]


def fold(held: DocumentState | None, events: Iterable[Event], watermarks: Mapping[int, int]) -> Folded[Event]:
    """Apply a document's events, in the order they came, to what is held.

    `watermarks` are the offsets, by partition, up to which every store is known to agree; -1 or missing for none.
    """
    state = held
    winner: Event | None = None
    superseded: list[Event] = []
    repeated: list[Event] = []
    for event in events:
        verdict = judge(state, event, watermarks)
        if verdict == "wins":
            if winner is not None:
                superseded.append(winner)
            winner = event
            state = advance(state, event)
        elif verdict == "repeats":
            repeated.append(event)
        else:
            superseded.append(event)
    return Folded(state, winner, tuple(superseded), tuple(repeated))


def judge(held: DocumentState | None, event: Ordered, watermarks: Mapping[int, int]) -> Verdict:
    partition, offset = event.position
    if offset <= watermarks.get(partition, -1):
        return "repeats" if held is not None and held.position == event.position else "superseded"
    if held is None or held.position == event.position:
        return "wins"
    if partition == held.position.partition and offset < held.position.offset:
        return "superseded"
    if event.version is not None and held.version is not None:
        if event.version != held.version:
            return "wins" if event.version > held.version else "superseded"
        if held.deleted:
            return "superseded"
    return "wins" if _is_later(event, held) else "superseded"


def advance(held: DocumentState | None, event: Ordered) -> DocumentState:
    """The state after an event that wins."""
    floor = held.version if held is not None else None
    version = event.version if event.version is not None else floor
    return DocumentState(event.position, event.timestamp_ms, version, event.deletes)


def _is_later(event: Ordered, held: DocumentState) -> bool:
    if event.position.partition == held.position.partition:
        return event.position.offset > held.position.offset
    return (event.timestamp_ms, event.position.partition) > (held.timestamp_ms, held.position.partition)
