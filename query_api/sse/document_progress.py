"""A document followed through its stages as Server-Sent Events: a frame for each stage it reaches, the last one `done`.

Frames have ids as those of a search have, `<id>.<seq>`, and here seq is the stage: 0 on its way, 1 searchable, 2 final.
So nothing has to be kept for a client that comes back with `Last-Event-ID`: it gets the stages after that one.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

import structlog

from indexer.errors import DamagedStore, TransientStoreError
from query_api.errors import ApiProblem
from query_api.sse.replay import EventId, encode_frame
from schemas.api import DocumentStatus
from schemas.frames import StreamError
from schemas.ids import DocumentKey, digest

log = structlog.get_logger(__name__)

FOLLOW_SECONDS = 600.0
UNKNOWN_SECONDS = 60.0  # for a document of which there is no record, and nobody says that there is to be one
ON_ITS_WAY, SEARCHABLE, FINAL = 0, 1, 2

Look = Callable[[], Awaitable[DocumentStatus]]
"""The document's status now."""


class Changes(Protocol):
    """Tells when to look again. `changes` only grows."""

    @property
    def changes(self) -> int: ...

    async def change(self, since: int, seconds: float) -> None:
        """Waits, at most so long, until `changes` is above `since`."""
        ...


def stage_of(status: DocumentStatus) -> int:
    if status.final:
        return FINAL
    return SEARCHABLE if status.status == "indexed" else ON_ITS_WAY


def following_id(key: DocumentKey, position: str | None) -> str:
    """The same for the same question, so that any process can go on with it."""
    return f"d_{digest('following', *key, position or '')[:28]}"


def last_stage(last_event_id: str | None, stream_id: str) -> int:
    """The stage that a client which comes back was told last; -1 for none."""
    event_id = EventId.parse(last_event_id or "")
    return event_id.seq if event_id is not None and event_id.retrieval_id == stream_id else -1


async def stages(
    stream_id: str, look: Look, source: Changes, after: int, now: Callable[[], float] = time.monotonic
) -> AsyncIterator[bytes]:
    """A frame for each stage later than `after`, as it is reached, up to the final one; `now` counts seconds."""
    began = now()
    told = after
    try:
        while True:
            seen = source.changes
            status = await look()
            stage = stage_of(status)
            if stage > told:
                told = stage
                yield encode_frame(EventId(stream_id, stage), "done" if stage == FINAL else "status", status)
            if stage == FINAL:
                return
            limit = UNKNOWN_SECONDS if status.status == "unknown" else FOLLOW_SECONDS
            if now() - began >= limit:
                state = "There was no record of it" if status.status == "unknown" else "It was not final"
                yield _error(stream_id, told, f"{state} after {limit:g} s; ask again to go on following it.")
                return
            await source.change(seen, began + limit - now())
    except (ApiProblem, TransientStoreError, DamagedStore) as error:
        yield _error(stream_id, told, str(error))
    except Exception:  # edge of the stream: after 200, only its last frame can tell
        log.exception("following broke", stream=stream_id)
        yield _error(stream_id, told, "The service's log holds the trace.")


def _error(stream_id: str, told: int, detail: str) -> bytes:
    """Under the id of the stage told last, so that a client that comes back goes on from there."""
    event_id = EventId(stream_id, max(ON_ITS_WAY, told))
    return encode_frame(event_id, "error", StreamError(title="Not followed to its end", detail=detail))
