"""Snapshots that cursors point to: kept a while, few of them, so that the next page is read from the same state."""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from query_api.retrieval.cache_key import SnapshotIdentity, snapshot_identity

if TYPE_CHECKING:
    from query_api.index.snapshot import Snapshot


@dataclass
class _Kept:
    snapshot: "Snapshot"
    until: float
    touched: float
    turned: bool = False


class PinnedSnapshots:
    """At most so many snapshots, each for so long after a first page was last read from it. On the event loop only.

    The time is counted from when the snapshot was the current one, so that it ends before the worker removes the
    versions of the tables it is pinned to; turning pages does not prolong it. When there are too many, those go first
    whose next page nobody has asked for: most first pages are also last ones. Names cannot be guessed, and none is
    given out twice, so a cursor of an earlier process finds nothing rather than something else.
    """

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._names: dict[SnapshotIdentity, str] = {}

    def keep(self, snapshot: "Snapshot", *, was_current: bool) -> str | None:
        """The name to find it under. `was_current` says that it is read as the newest one, not by a cursor: then its
        time begins anew. None where it cannot be kept."""
        self.prune()
        identity = snapshot_identity(snapshot)
        name = self._names.get(identity)
        now = self._clock()
        if name is None:
            if not was_current or not self._most:
                return None
            name = self._names[identity] = secrets.token_urlsafe(9)
            self._kept[name] = _Kept(snapshot, now + self._seconds, now)
            self._drop_surplus(name)
        elif was_current:
            self._kept[name].until = now + self._seconds
        self._kept[name].touched = now
        return name

    def find(self, name: str) -> "Snapshot | None":
        """The snapshot of that name, whose pages are being turned; None when it is gone."""
        self.prune()
        kept = self._kept.get(name)
        if kept is None:
            return None
        kept.turned, kept.touched = True, self._clock()
        return kept.snapshot

    def prune(self) -> None:
        """Let those go whose time is over."""
        now = self._clock()
        for name in [name for name, kept in self._kept.items() if kept.until <= now]:
            self._drop(name)

    def __len__(self) -> int:
        return len(self._kept)

    def _drop_surplus(self, newest: str) -> None:
        while len(self._kept) > self._most:
            others = (name for name in self._kept if name != newest)
            self._drop(min(others, key=lambda name: (self._kept[name].turned, self._kept[name].touched)))

    def _drop(self, name: str) -> None:
        del self._names[snapshot_identity(self._kept.pop(name).snapshot)]
