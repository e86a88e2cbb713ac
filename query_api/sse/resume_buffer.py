"""The replay buffer: frames by retrieval, so that a client with `Last-Event-ID` gets those it lacks.

A search appends to a `RecordedStream`; each client reads at its own pace. The search is cancelled when the last reader
leaves; its frames and snapshot stay for a later resumption.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pydantic import BaseModel

from query_api.sse.events import EventId, encode_frame
from schemas.frames import FrameName, StreamError, identity
from schemas.search import SearchRequest

if TYPE_CHECKING:
    from query_api.index.search_snapshot import Snapshot
    from query_api.saved.conversations import Finish

REPLAY_STREAMS = 1_000  # that can be resumed with Last-Event-ID
REPLAY_SECONDS = 300.0  # after the last frame
REPLAY_BYTES = 64 * 1024 * 1024  # of frames kept or not read yet: the oldest go first, then those not read
LAST_FRAMES: frozenset[FrameName] = frozenset({"done", "error"})
EVICTED = StreamError(
    title="Read too slowly",
    detail="The frames that were not read yet had to make room for those of others. Ask again, for fewer hits at once.",
)


@dataclass(eq=False)
class RecordedStream:
    """The frames of one retrieval so far. Used on the event loop only."""

    retrieval_id: str
    request: SearchRequest
    snapshot: "Snapshot | None"
    traceparent: str | None = None
    counted: bool = True
    finish: "Finish | None" = None
    frames: list[bytes] = field(default_factory=list)
    readers: int = 0
    finished: bool = False
    touched: float = field(default_factory=time.monotonic)
    size: int = 0
    search: asyncio.Task[None] | None = None
    read_at: float = field(default_factory=time.monotonic)
    evicted: bool = False
    _appended: set[str] = field(default_factory=set)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def append(self, name: FrameName, body: BaseModel) -> None:
        """Add a frame, unless it is a duplicate: a resumed search runs again from its start."""
        frame_identity = identity(name, body)
        if self.finished or frame_identity in self._appended:
            return
        self._appended.add(frame_identity)
        frame = encode_frame(EventId(self.retrieval_id, len(self.frames)), name, body)
        self.frames.append(frame)
        self.size += len(frame)
        self.touched = time.monotonic()
        if name in LAST_FRAMES:
            self._finish()
        self._wake_readers()

    @property
    def started(self) -> bool:
        """Whether a search runs or has ended."""
        return self.finished or self.search is not None

    def evict(self) -> None:
        """Drop all frames; readers get an error as the last one."""
        self.evicted = True
        self.frames = []
        self.size = 0
        self._finish()
        self._wake_readers()

    def _finish(self) -> None:
        self.finished = True
        self.snapshot = None
        self._appended.clear()

    def _wake_readers(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def ended_with(self, seq: int) -> bool:
        """Whether this frame is the last one."""
        return self.finished and seq == len(self.frames) - 1

    async def frames_after(self, seq: int) -> AsyncIterator[bytes]:
        """Every frame later than `seq`, as it is appended, up to the last one."""
        following = seq + 1
        while True:
            while following < len(self.frames):
                self.read_at = time.monotonic()
                yield self.frames[following]
                following += 1
            if self.evicted:
                yield encode_frame(EventId(self.retrieval_id, max(0, following - 1)), "error", EVICTED)
                return
            if self.finished:
                return
            await self._changed.wait()


class ReplayBuffer:
    """Recent streams, bounded by number, age and size; the least recently touched are evicted first."""

    def __init__(
        self,
        max_retrievals: int,
        max_age_seconds: float,
        max_bytes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_retrievals = max_retrievals
        self._max_age_seconds = max_age_seconds
        self._max_bytes = max_bytes
        self._clock = clock
        self._streams: OrderedDict[str, RecordedStream] = OrderedDict()

    def add(self, stream: RecordedStream) -> None:
        """Add or touch a stream: when it starts and whenever a reader leaves it."""
        stream.touched = self._clock()
        self._streams[stream.retrieval_id] = stream
        self._streams.move_to_end(stream.retrieval_id)
        self.prune()

    def find(self, retrieval_id: str) -> RecordedStream | None:
        self.prune()
        return self._streams.get(retrieval_id)

    def prune(self) -> None:
        """Evict what is over the limits: streams without readers, then, for their size, those with the slowest
        readers."""
        oldest = self._clock() - self._max_age_seconds
        size = sum(stream.size for stream in self._streams.values())
        surplus = len(self._streams) - self._max_retrievals
        for stream in list(self._streams.values()):
            if surplus <= 0 and size <= self._max_bytes and stream.touched >= oldest:
                return
            if stream.readers:
                continue
            del self._streams[stream.retrieval_id]
            surplus -= 1
            size -= stream.size
        for stream in sorted(self._streams.values(), key=lambda stream: stream.read_at):
            if size <= self._max_bytes:
                return
            size -= stream.size
            stream.evict()
            del self._streams[stream.retrieval_id]

    def __len__(self) -> int:
        return len(self._streams)
