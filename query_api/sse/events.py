"""Server-Sent Events: ids and encoding of frames, and the stream of a document's status.

The status of a document is a frame for each stage it reaches, the last one `done`, with ids as those of a search:
`<id>.<seq>`, with the stage as seq: 0 pending, 1 searchable, 2 final. So a client that reconnects with `Last-Event-ID`
gets the later stages without a replay buffer.
"""

import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple, Protocol

import structlog
from pydantic import BaseModel

from indexer.errors import DamagedStore, TransientStoreError
from query_api.errors import ApiProblem
from schemas.api import DocumentStatus
from schemas.frames import FrameName, StreamError
from schemas.ids import DocumentKey, digest

log = structlog.get_logger(__name__)


def new_retrieval_id() -> str:
    """`r_` and 28 hex digits: the time in milliseconds, then 64 random bits; ids sort by time and cannot be guessed."""
    return f"r_{time.time_ns() // 1_000_000:012x}{secrets.token_hex(8)}"


class EventId(NamedTuple):
    """The id of a frame: `<retrieval_id>.<seq>`."""

    retrieval_id: str
    seq: int

    @classmethod
    def parse(cls, text: str) -> "EventId | None":
        """None for what is not a frame's id."""
        retrieval_id, dot, seq = text.strip().rpartition(".")
        if not (dot and retrieval_id and seq.isascii() and seq.isdigit() and len(seq) <= 9):
            return None
        return cls(retrieval_id, int(seq))

    def __str__(self) -> str:
        return f"{self.retrieval_id}.{self.seq}"


def encode_frame(event_id: EventId, name: FrameName, body: BaseModel) -> bytes:
    """One Server-Sent Event: `event`, `id` and `data` (a JSON object on one line)."""
    data = body.model_dump_json(by_alias=True)
    return f"event: {name}\nid: {event_id}\ndata: {data}\n\n".encode()


FOLLOW_SECONDS = 600.0
UNKNOWN_SECONDS = 60.0  # for a document without a record
PENDING, SEARCHABLE, FINAL = 0, 1, 2

ReadStatus = Callable[[], Awaitable[DocumentStatus]]
"""The document's status now."""


class Changes(Protocol):
    """Notifies of changes. `changes` only grows."""

    @property
    def changes(self) -> int: ...

    async def change(self, since: int, seconds: float) -> None:
        """Waits, at most so long, until `changes` is above `since`."""
        ...


def stage_of(status: DocumentStatus) -> int:
    if status.final:
        return FINAL
    return SEARCHABLE if status.status == "indexed" else PENDING


def document_stream_id(key: DocumentKey, position: str | None) -> str:
    """The same for the same document and position, so that any process can resume it."""
    return f"d_{digest('following', *key, position or '')[:28]}"


def last_stage(last_event_id: str | None, stream_id: str) -> int:
    """The last stage that a reconnecting client has; -1 for none."""
    event_id = EventId.parse(last_event_id or "")
    return event_id.seq if event_id is not None and event_id.retrieval_id == stream_id else -1


async def document_status_frames(
    stream_id: str, read_status: ReadStatus, source: Changes, after: int, now: Callable[[], float] = time.monotonic
) -> AsyncIterator[bytes]:
    """A frame for each stage later than `after`, as it is reached, up to the final one; `now` counts seconds."""
    began = now()
    sent = after
    try:
        while True:
            seen = source.changes
            status = await read_status()
            stage = stage_of(status)
            if stage > sent:
                sent = stage
                yield encode_frame(EventId(stream_id, stage), "done" if stage == FINAL else "status", status)
            if stage == FINAL:
                return
            limit = UNKNOWN_SECONDS if status.status == "unknown" else FOLLOW_SECONDS
            if now() - began >= limit:
                state = "There was no record of it" if status.status == "unknown" else "It was not final"
                yield _error(stream_id, sent, f"{state} after {limit:g} s; ask again to go on following it.")
                return
            await source.change(seen, began + limit - now())
    except (ApiProblem, TransientStoreError, DamagedStore) as error:
        yield _error(stream_id, sent, str(error))
    except Exception:  # edge of the stream: after 200 an error is its last frame
        log.exception("status stream failed", stream=stream_id)
        yield _error(stream_id, sent, "The service's log holds the trace.")


def _error(stream_id: str, sent: int, detail: str) -> bytes:
    """Under the id of the last stage sent, so that a reconnecting client resumes from there."""
    event_id = EventId(stream_id, max(PENDING, sent))
    return encode_frame(event_id, "error", StreamError(title="Not followed to its end", detail=detail))
