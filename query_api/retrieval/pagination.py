"""Pagination by cursor: the cursor's format, and the snapshots pinned for the next page."""

import secrets
import time
from collections.abc import Callable
from typing import Annotated

import msgspec
from cachetools import TTLCache

from query_api.errors import ApiProblem
from query_api.index.search_snapshot import Snapshot
from query_api.retrieval.cache import question_digest, snapshot_identity
from schemas.cursors import read_cursor, write_cursor
from schemas.search import MAX_OFFSET, SearchRequest

CURSOR_SNAPSHOTS = 8  # kept for cursors; each shares with the newest one what did not change
CURSOR_SECONDS = 300.0  # after a first page was read from one
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class Cursor(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """`snapshot` is the name it is pinned under, `question` a digest, `offset` the page's first hit."""

    snapshot: Name
    question: Name
    offset: Annotated[int, msgspec.Meta(ge=0, le=MAX_OFFSET)]


def _read(cursor: str) -> Cursor:
    """Raises MalformedCursor."""
    return read_cursor(cursor, Cursor, "a search")


class _PinnedCache(TTLCache[str, Snapshot]):
    """Evicts those first whose next page was never requested: most first pages are also last ones; then the soonest to
    expire."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float]) -> None:
        super().__init__(most, seconds, clock)
        self.continued: set[str] = set()

    def popitem(self) -> tuple[str, Snapshot]:
        self.expire()
        soonest_first = list(self)
        name = next((name for name in soonest_first if name not in self.continued), soonest_first[0])
        return name, self.pop(name)


class PinnedSnapshots:
    """A bounded TTL cache of the snapshots that cursors point to. On the event loop only.

    The time counts from when a first page was last read from the snapshot as the current one, so that it ends before
    the worker removes the versions of the tables it is pinned to; further pages do not prolong it. Names are random,
    so a cursor of an earlier process finds nothing rather than something else.
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._pinned = _PinnedCache(most, seconds, clock)

    def pin(self, snapshot: Snapshot, *, was_current: bool) -> str | None:
        """The name to find it under; None where it cannot be kept. `was_current` says that it is read as the newest
        one, not by a cursor, which restarts its time."""
        identity = snapshot_identity(snapshot)
        name = next((name for name, each in self._pinned.items() if snapshot_identity(each) == identity), None)
        if not was_current or not self._pinned.maxsize:
            return name
        name = name or secrets.token_urlsafe(9)
        self._pinned[name] = self._pinned.get(name, snapshot)
        return name

    def find(self, name: str) -> Snapshot | None:
        """The snapshot of that name; None when it is gone."""
        if name in self._pinned:
            self._pinned.continued.add(name)
        return self._pinned.get(name)

    def prune(self) -> None:
        """Remove those whose time is over."""
        self._pinned.expire()
        self._pinned.continued &= set(self._pinned)

    def __len__(self) -> int:
        return len(self._pinned)


def page_of(request: SearchRequest) -> SearchRequest:
    """The request with its cursor's offset in place of the cursor. Raises MalformedCursor."""
    if request.cursor is None:
        return request
    return request.model_copy(update={"cursor": None, "offset": _read(request.cursor).offset})


def snapshot_of_page(request: SearchRequest, cursor: str, pinned: PinnedSnapshots) -> "Snapshot":
    """The snapshot that a cursor's page is read from, also where another generation has become the live one. Raises
    MalformedCursor, or ApiProblem: 400 for a cursor that does not fit, 410 for one whose snapshot is gone."""
    if request.offset:
        raise ApiProblem(422, "Invalid request", "Give `cursor` or `offset`, not both: a cursor holds its offset.")
    position = _read(cursor)
    if position.question != question_digest(request):
        raise ApiProblem(
            400,
            "Another question",
            "This cursor belongs to another question: send it with the `q`, `collection`, `mode`, `group` and the "
            "other parameters of the first page; only `k` may change.",
        )
    snapshot = pinned.find(position.snapshot)
    if snapshot is None:
        raise snapshot_gone()
    return snapshot


def snapshot_gone() -> ApiProblem:
    return ApiProblem(
        410,
        "Snapshot gone",
        "The snapshot of this cursor is no longer kept: search again without it and begin at the first page. "
        f"The newest {CURSOR_SNAPSHOTS} are kept for {CURSOR_SECONDS:.0f} s, but for what is read from disk a shorter "
        "time while documents keep changing.",
    )


def reads_tables(request: SearchRequest, snapshot: "Snapshot") -> bool:
    """Whether a page needs the versions of the tables that its snapshot is pinned to."""
    return not snapshot.in_memory or request.context != "parent" or request.duplicates == "semantic"


def next_cursor(
    request: SearchRequest, snapshot: "Snapshot", next_offset: int | None, pinned: PinnedSnapshots
) -> str | None:
    """The cursor of the page after that of `request`; None on the last one."""
    if next_offset is None or next_offset > MAX_OFFSET:
        return None
    name = pinned.pin(snapshot, was_current=request.cursor is None)
    return None if name is None else write_cursor(Cursor(name, question_digest(request), next_offset))
