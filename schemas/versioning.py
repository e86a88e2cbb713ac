"""Which event of a document wins, by version and position: an older version loses. Pure arithmetic.

A document's state is the fold of its events, in log order, over its stored state. The result does not depend on how the
events are cut into batches, or how often a part of them is repeated.

Rules, for an event and the stored state:
- An event at or below the stores' watermark was considered before. Unless it is the stored one, it lost or became a
  dead letter then, and that is final.
- Same partition: an event below the stored offset was considered before. At the stored offset it is the stored one:
  done if the watermark has passed it, else to be repeated, since a crash may have come between two stores.
- Both carry a version: the higher wins. At the same version the later wins over a live document, none over a tombstone.
- Else the later wins: by offset within a partition, by record time and then partition number across partitions.
- An event without a version keeps the highest version seen, as a floor for those that carry one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from schemas.ids import Position

Verdict = Literal["wins", "repeats", "superseded"]


class Ordered(Protocol):
    """What versioning needs of an event. `timestamp_ms` is the record's."""

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
    """The stored state of a document. `version` is the highest ever applied, None before the first."""

    position: Position
    timestamp_ms: int
    version: int | None
    deleted: bool


Event = TypeVar("Event", bound=Ordered)


@dataclass(frozen=True)
class Resolution(Generic[Event]):
    """The outcome of a document's events. `winner` is None where the stored state stays."""

    state: DocumentState | None
    winner: Event | None
    superseded: tuple[Event, ...]
    repeated: tuple[Event, ...]


def fold(stored: DocumentState | None, events: Iterable[Event], watermarks: Mapping[int, int]) -> Resolution[Event]:
    """Apply a document's events, in log order, to its stored state.

    `watermarks` are the offsets, by partition, up to which all stores agree; -1 or missing for none.
    """
    state = stored
    winner: Event | None = None
    superseded: list[Event] = []
    repeated: list[Event] = []
    for event in events:
        verdict = decide(state, event, watermarks)
        if verdict == "wins":
            if winner is not None:
                superseded.append(winner)
            winner = event
            state = advance(state, event)
        elif verdict == "repeats":
            repeated.append(event)
        else:
            superseded.append(event)
    return Resolution(state, winner, tuple(superseded), tuple(repeated))


def decide(stored: DocumentState | None, event: Ordered, watermarks: Mapping[int, int]) -> Verdict:
    partition, offset = event.position
    if offset <= watermarks.get(partition, -1):
        return "repeats" if stored is not None and stored.position == event.position else "superseded"
    if stored is None or stored.position == event.position:
        return "wins"
    if partition == stored.position.partition and offset < stored.position.offset:
        return "superseded"
    if event.version is not None and stored.version is not None:
        if event.version != stored.version:
            return "wins" if event.version > stored.version else "superseded"
        if stored.deleted:
            return "superseded"
    return "wins" if _is_later(event, stored) else "superseded"


def advance(stored: DocumentState | None, event: Ordered) -> DocumentState:
    """The state after an event that wins."""
    floor = stored.version if stored is not None else None
    version = event.version if event.version is not None else floor
    return DocumentState(event.position, event.timestamp_ms, version, event.deletes)


def _is_later(event: Ordered, stored: DocumentState) -> bool:
    if event.position.partition == stored.position.partition:
        return event.position.offset > stored.position.offset
    return (event.timestamp_ms, event.position.partition) > (stored.timestamp_ms, stored.position.partition)
