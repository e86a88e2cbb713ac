"""Searches as Server-Sent Events: frames as they are final, resumed by `Last-Event-ID`, cancelled without readers."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Protocol

import structlog
from fastapi import Response
from prometheus_client import Gauge
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from indexer.errors import DamagedStore, TransientStoreError
from query_api.admission import Turn
from query_api.errors import ApiProblem
from query_api.retrieval.search_context import SearchFailed
from query_api.sse.events import EventId, new_retrieval_id
from query_api.sse.resume_buffer import RecordedStream, ReplayBuffer
from schemas.frames import EVENT_STREAM, NAMES, Done, Reset, SearchFrame, StreamError
from schemas.search import SearchRequest

if TYPE_CHECKING:
    from query_api.index.search_snapshot import Snapshot
    from query_api.saved.conversations import Finish

log = structlog.get_logger(__name__)

KEEP_ALIVE_SECONDS = 15.0  # the longest silence: less than the idle limits of common proxies
MAX_STREAMS = 256  # of searches; each holds some 100 kB beside its frames
MAX_STATUS_STREAMS = 256


class Retrieve(Protocol):
    """Runs one search, as `Retriever.retrieve` does."""

    def __call__(
        self,
        request: SearchRequest,
        retrieval_id: str,
        snapshot: "Snapshot",
        *,
        traceparent: str | None,
        counted: bool,
        caller: str,
        resumable: bool,
        searched: Callable[[], None],
    ) -> AsyncGenerator[SearchFrame, None]: ...


def accepts_events(accept: str | None) -> bool:
    """Whether an Accept header asks for a stream: it names the type, and does not prefer JSON."""
    qualities: dict[str, float] = {}
    for part in (accept or "").lower().split(","):
        media_type, *parameters = (piece.strip() for piece in part.split(";"))
        quality = next((text[2:] for text in parameters if text.startswith("q=")), "1")
        try:
            qualities[media_type] = float(quality)
        except ValueError:
            qualities[media_type] = 0.0
    events = qualities.get(EVENT_STREAM, 0.0)
    return events > 0 and events >= qualities.get("application/json", 0.0)


class StreamLimit:
    """A limit of open streams. On the event loop only."""

    def __init__(self, most: int) -> None:
        self.open = 0
        self._most = most

    def acquire(self) -> None:
        """Raises ApiProblem 503 at the limit."""
        if self.open >= self._most:
            raise ApiProblem(503, "Too many streams", "The maximum number of streams is open.", retry_after_seconds=1)
        self.open += 1

    def release(self) -> None:
        self.open -= 1


class _Stream(EventSourceResponse):
    """Calls `ended` at its end, also when the client has left before the first frame."""

    def __init__(self, frames: AsyncIterator[bytes], ended: Callable[[], None], keep_alive_seconds: float) -> None:
        super().__init__(
            frames,
            ping=keep_alive_seconds,
            ping_message_factory=lambda: ServerSentEvent(comment="keep-alive", sep="\n"),
            sep="\n",
        )
        del self.headers["connection"]  # the server's to say, and it does
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._ended()


class SearchStreams:
    """The streams of this process: of searches and of document status, each with a limit. Used on the event loop only.
    The connection of a client that does not read is closed by `ServiceProtocol`."""

    def __init__(
        self,
        retrieve: Retrieve,
        replay: ReplayBuffer,
        clients: Gauge,
        keep_alive_seconds: float = KEEP_ALIVE_SECONDS,
        *,
        max_streams: int = MAX_STREAMS,
        max_status_streams: int = MAX_STATUS_STREAMS,
    ) -> None:
        self._retrieve = retrieve
        self._replay = replay
        self._clients = clients
        self._keep_alive_seconds = keep_alive_seconds
        self._searches = StreamLimit(max_streams)
        self._followed = StreamLimit(max_status_streams)
        self.reading = 0

    def resumable(self, last_event_id: str | None, request: SearchRequest) -> tuple[RecordedStream, int] | None:
        """The stream to resume and the last frame the client has; None when a new one must begin."""
        event_id = EventId.parse(last_event_id or "")
        stream = self._replay.find(event_id.retrieval_id) if event_id else None
        if event_id is None or stream is None or stream.request != request or event_id.seq >= len(stream.frames):
            return None
        return None if stream.is_cut_off else (stream, event_id.seq)

    def begin(
        self,
        request: SearchRequest,
        snapshot: "Snapshot",
        *,
        instead_of: str | None,
        traceparent: str | None = None,
        counted: bool = True,
        caller: str = "",
        finish: "Finish | None" = None,
    ) -> RecordedStream:
        """A new retrieval; `instead_of` is the Last-Event-ID of a stream that cannot be resumed."""
        stream = RecordedStream(new_retrieval_id(), request, snapshot, traceparent, counted, caller, finish)
        if instead_of is not None:
            stream.append("reset", Reset(reason=f"{self._not_resumable(instead_of, request)} This is a new retrieval."))
        return stream

    def _not_resumable(self, last_event_id: str, request: SearchRequest) -> str:
        """Why the stream cannot be resumed."""
        shown = repr(last_event_id[:80])
        event_id = EventId.parse(last_event_id)
        stream = self._replay.find(event_id.retrieval_id) if event_id else None
        if stream is not None and stream.request != request:
            return f"{shown} belongs to another search: send Last-Event-ID with the request it came from only."
        return f"The frames after {shown} are gone."

    def response(self, stream: RecordedStream, after_seq: int, turn: Turn | None = None) -> Response:
        """The frames after `after_seq`; a search that is not `started` takes its `turn`, which ends with it.

        Raises ApiProblem at the limit of search streams.
        """
        self._searches.acquire()

        def ended() -> None:
            self._searches.release()
            if turn is not None and stream.search is None:
                turn.end()

        return _Stream(self.frames(stream, after_seq, turn), ended, self._keep_alive_seconds)

    def translated(self, frames: AsyncIterator[bytes], turn: Turn | None = None) -> Response:
        """A search's frames in another protocol, or those of several searches; the turn ends with it. Raises ApiProblem
        as `response` does."""
        self._searches.acquire()

        def ended() -> None:
            self._searches.release()
            if turn is not None:
                turn.end()

        return _Stream(self._counted(frames), ended, self._keep_alive_seconds)

    def following(self, frames: AsyncIterator[bytes]) -> Response:
        """A stream of a document's status. Raises ApiProblem at the limit of such streams."""
        self._followed.acquire()
        return _Stream(self._counted(frames), self._followed.release, self._keep_alive_seconds)

    async def frames(self, stream: RecordedStream, after_seq: int, turn: Turn | None = None) -> AsyncIterator[bytes]:
        """The frames after `after_seq`. The search runs while it has readers."""
        stream.readers += 1
        self._replay.add(stream)
        try:
            if not stream.started:
                stream.search = asyncio.create_task(self._search(stream, turn), name=f"search {stream.retrieval_id}")
            async for frame in self._counted(stream.frames_after(after_seq)):
                yield frame
        finally:
            stream.readers -= 1
            if not stream.readers and stream.search is not None:
                stream.search.cancel()
                stream.search = None
            self._replay.add(stream)

    async def _counted(self, frames: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        self.reading += 1
        self._clients.inc()
        try:
            async for frame in frames:
                yield frame
        finally:
            self.reading -= 1
            self._clients.dec()

    async def _search(self, stream: RecordedStream, turn: Turn | None) -> None:
        async with aclosing(self.searched(stream, turn, resumable=True)) as frames:
            async for frame in frames:
                stream.append(NAMES[type(frame)], frame)

    def _frames(
        self, stream: RecordedStream, searched: Callable[[], None], *, resumable: bool
    ) -> AsyncGenerator[SearchFrame]:
        if stream.snapshot is None:
            raise RuntimeError("a stream that is not finished keeps its snapshot")
        return self._retrieve(
            stream.request,
            stream.retrieval_id,
            stream.snapshot,
            traceparent=stream.traceparent,
            counted=stream.counted,
            caller=stream.caller,
            resumable=resumable,
            searched=searched,
        )

    async def searched(
        self, stream: RecordedStream, turn: Turn | None, *, resumable: bool = False
    ) -> AsyncGenerator[SearchFrame | StreamError]:
        """The frames of the stream's search as they are final, the last of which is Done or an error; ends the turn."""
        frame = None

        def searched() -> None:
            if turn is not None:
                turn.end(answered=True)

        try:
            async with aclosing(self._frames(stream, searched, resumable=resumable)) as frames:
                async for frame in frames:
                    if isinstance(frame, Done):
                        searched()
                    yield await _finished(frame, stream.finish)
            if not isinstance(frame, Done):
                raise RuntimeError("the search ended without its last frame")  # noqa: TRY004 -- no argument is wrong
        except (SearchFailed, TransientStoreError, DamagedStore) as error:
            log.warning("search not answered", retrieval_id=stream.retrieval_id, reason=str(error))
            yield StreamError(title="Search not answered", detail=str(error))
        except ApiProblem as problem:
            yield StreamError(title=problem.title, detail=problem.detail)
        except Exception:  # edge of the stream: after 200 an error is its last frame
            log.exception("search failed", retrieval_id=stream.retrieval_id)
            yield StreamError(title="Internal error", detail="The service's log holds the trace.")
        finally:
            if turn is not None:
                turn.end()


async def _finished(frame: SearchFrame, finish: "Finish | None") -> SearchFrame:
    """A copy, where it is the end: the frame itself may be in the cache."""
    if finish is None or not isinstance(frame, Done):
        return frame
    return frame.model_copy(update={"notes": [*frame.notes, *await finish(frame)]})
