"""Replays, as the processes tell each other of them: orders on `curation.v1` to apply a part of the log again.

The key of an order is `*/replay/<id>`: it is about no collection.
"""

import re
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from schemas.generations import EVERY_COLLECTION
from schemas.ids import Position, parse_positions
from schemas.numbers import whole_numbers

REPLAY = "replay"
REPLAY_ID = re.compile(r"[0-9a-f]{12}")


class Replay(BaseModel):
    """Records of the documents topic that are to be applied again, and how far that is. Only a worker that runs this
    generation obeys.

    `first` and `last` are positions, the ends included; a partition that neither names is left out, unless neither
    names any. `documents` have a record among them; each is brought to what all of its records say. With `dry_run`
    nothing is written, and `changed` counts what would be.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    generation: str = Field(min_length=1, max_length=64)
    first: str | None = None
    last: str | None = None
    since_ms: int | None = Field(None, ge=0)
    partition: int | None = Field(None, ge=0)
    dry_run: bool = False
    state: Literal["ordered", "running", "done"] = "ordered"
    records: int = Field(0, ge=0, description="Records in the range.")
    of: int = Field(0, ge=0, description="Documents these are about.")
    documents: int = Field(0, ge=0, description="Documents applied again so far.")
    changed: int = Field(0, ge=0, description="Documents whose rows were not what the log says, and are by now.")
    kept: int = Field(0, ge=0, description="Documents left as they are: the log no longer holds what they came from.")
    failed: int = Field(0, ge=0, description="Documents that could not be made again, and stay as they are.")

    @field_validator("first", "last")
    @classmethod
    def _are_positions(cls, given: str | None) -> str | None:
        if given is not None:
            parse_positions(given)
        return given


class ReplayEvent(NamedTuple):
    """An order, or how far it is; `replay` is None where it was taken back."""

    id: str
    replay: Replay | None


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
    """The order is in the log; `GET /v1/replays/{id}` tells how far it is."""

    id: str
    position: str = Field(description="`<partition>:<offset>` on the curation topic.", examples=["0:3"])


class ReplayShown(Replay):
    """One of a list."""

    id: str


class ReplayList(BaseModel):
    """The replay that was told of last comes first."""

    replays: list[ReplayShown]


def replay_key(name: str) -> bytes:
    """The record key of an order."""
    return f"{EVERY_COLLECTION}/{REPLAY}/{name}".encode()
