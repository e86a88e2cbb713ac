"""Orders to the worker, as the processes exchange them on `curation.v1`: link, repair or apply again what is stored.

The key of an order is `<collection>/relink/<id>`, `*/repair/<id>` or `*/replay/<id>`: the last two are about no single
collection. The worker reports its progress under the same key; a null value withdraws the order.
"""

import re
from typing import Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from schemas.errors import MalformedEvent
from schemas.generations import EVERY_COLLECTION
from schemas.graph_edits import read_model
from schemas.ids import DocumentKey, Position, parse_positions
from schemas.numbers import whole_numbers

OrderKind = Literal["relink", "repair", "replay"]
RELINK: OrderKind = "relink"
REPAIR: OrderKind = "repair"
REPLAY: OrderKind = "replay"
ORDER_ID = re.compile(r"[0-9a-f]{12}")  # of repairs and replays
MOST_DOCUMENTS = 1_000  # in one repair; of more, the stores are built again


class Order(BaseModel):
    """How far an order is. Only the counts change, and the state."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    state: Literal["ordered", "running", "done"] = "ordered"

    def concerns(self, generation: str) -> bool:
        """Whether the worker of this generation is to carry it out."""
        return getattr(self, "generation", generation) == generation

    def plus(self, **counts: int) -> Self:
        return self.model_copy(update={name: getattr(self, name) + count for name, count in counts.items()})


class Relinking(Order):
    """How far the linking of a collection's stored documents is. Documents that arrive meanwhile are linked anyway."""

    documents: int = Field(0, ge=0, description="Documents looked at so far.")
    of: int = Field(0, ge=0, description="Documents there are.")
    changed: int = Field(0, ge=0, description="Documents whose edges became others.")
    skipped: int = Field(
        0,
        ge=0,
        description="Documents left as they are: replaced meanwhile, no longer in the log, or too large for the graph.",
    )


class RelinkAccepted(BaseModel):
    """The order is in the log; the worker carries it out once."""

    id: str
    position: str = Field(description="`<partition>:<offset>` on the curation topic.", examples=["0:3"])


class StoreOrder(Order):
    """One that only a worker of this generation obeys."""

    generation: str = Field(min_length=1, max_length=64)


class Repair(StoreOrder):
    """What a generation is to get again from the log, and its progress: `documents` are written again as their
    records have them; `graph` makes the graph again from its topic."""

    documents: list[str] = Field(default_factory=list, max_length=MOST_DOCUMENTS)
    graph: bool = False
    repaired: int = Field(0, ge=0, description="Documents written or deleted.")
    kept: int = Field(0, ge=0, description="Documents left as they are: the log no longer holds what they came from.")
    failed: int = Field(0, ge=0, description="Documents left as they are: a store or the pipeline refused them.")


class Replay(StoreOrder):
    """Records of the documents topic that are to be applied again, and the progress. Only a worker that runs this
    generation obeys.

    `first` and `last` are positions, the ends included; a partition that neither names is left out, unless neither
    names any. `documents` have a record among them; each is brought to the result of all its records. With `dry_run`
    nothing is written, and `changed` counts what would be.
    """

    first: str | None = None
    last: str | None = None
    since_ms: int | None = Field(None, ge=0)
    partition: int | None = Field(None, ge=0)
    dry_run: bool = False
    records: int = Field(0, ge=0, description="Records in the range.")
    of: int = Field(0, ge=0, description="Documents these are about.")
    documents: int = Field(0, ge=0, description="Documents applied again so far.")
    changed: int = Field(0, ge=0, description="Documents whose rows differed from the log, and agree by now.")
    kept: int = Field(0, ge=0, description="Documents left as they are: the log no longer holds what they came from.")
    failed: int = Field(0, ge=0, description="Documents that could not be made again, and stay as they are.")

    @field_validator("first", "last")
    @classmethod
    def _are_positions(cls, given: str | None) -> str | None:
        if given is not None:
            parse_positions(given)
        return given


class ReplayRange:
    """Which records a replay is about."""

    def __init__(self, replay: Replay) -> None:
        self._first = parse_positions(replay.first) if replay.first else {}
        self._last = parse_positions(replay.last) if replay.last else {}
        self.since_ms = replay.since_ms or 0
        self._partition = replay.partition

    def start(self, partition: int) -> int | None:
        """The first offset in a partition that has to be read; None where it is left out."""
        named = self._first.keys() | self._last.keys()
        if (named and partition not in named) or self._partition not in (None, partition):
            return None
        return self._first.get(partition, 0)

    def starts_within(self, partition: int, reached: int) -> bool:
        """Whether a record of the partition up to this offset may be in the range."""
        start = self.start(partition)
        return start is not None and start <= reached

    def end(self, partition: int, reached: int) -> int:
        """The last offset that has to be read, of those up to `reached`."""
        return min(self._last.get(partition, reached), reached)

    def includes(self, position: Position, timestamp_ms: int) -> bool:
        start = self.start(position.partition)
        is_after = start is not None and position.offset >= start and timestamp_ms >= self.since_ms
        return is_after and position.offset <= self.end(position.partition, position.offset)


class ReplayRequest(BaseModel):
    """Which records to apply again: from a position, to one, since a time, of a partition; all that is given counts."""

    model_config = ConfigDict(extra="forbid", strict=True, populate_by_name=True)

    first: str | None = Field(None, alias="from", max_length=10_000, description="Token of the first records.")
    last: str | None = Field(None, alias="to", max_length=10_000, description="Token of the last records, included.")
    since: str | None = Field(None, max_length=64, description="`15m`, `2h`, `7d` ago, or an RFC 3339 time.")
    partition: int | None = Field(None, ge=0, description="Only of this partition.")
    dry_run: bool = Field(False, description="Count what would change, and write nothing.")

    _whole_numbers = whole_numbers("partition")

    @model_validator(mode="after")
    def _is_a_range(self) -> "ReplayRequest":
        if self.first is None and self.last is None and self.since is None and self.partition is None:
            raise ValueError("Say which records: `from`, `to`, `since` or `partition`; all are a rebuild")
        return self


class ReplayAccepted(BaseModel):
    """The order is in the log; `GET /v1/replays/{id}` reports its progress."""

    id: str
    position: str = Field(description="`<partition>:<offset>` on the curation topic.", examples=["0:3"])


class ReplayShown(Replay):
    """One of a list."""

    id: str


class ReplayList(BaseModel):
    """The replay that was reported last comes first."""

    replays: list[ReplayShown]


class OrderEvent(NamedTuple):
    """An order, or its progress; `order` is None where it was withdrawn."""

    kind: OrderKind
    id: str
    order: Relinking | Repair | Replay | None
    collection: str = EVERY_COLLECTION


def order_key(kind: OrderKind, name: str, collection: str = EVERY_COLLECTION) -> bytes:
    """The record key of an order. Raises MalformedEvent for what is not a collection or id."""
    DocumentKey.checked(collection, name)
    return DocumentKey(collection, f"{kind}/{name}").encoded()


def relink_key(collection: str, name: str) -> bytes:
    """As `order_key`."""
    return order_key(RELINK, name, collection)


def decode_order(kind: OrderKind, name: str, value: bytes | None, collection: str) -> OrderEvent:
    """Raises MalformedEvent: `bad_key`, `not_json`, `wrong_type`."""
    if kind != RELINK and ORDER_ID.fullmatch(name) is None:
        raise MalformedEvent("bad_key", f"{name[:80]!r} is not an id of a {kind}: 12 hex digits.")
    return OrderEvent(kind, name, None if value is None else read_model(ORDERS[kind], value, "order"), collection)


ORDERS: dict[OrderKind, type[Relinking | Repair | Replay]] = {RELINK: Relinking, REPAIR: Repair, REPLAY: Replay}
