"""The age of records: by their own time, bounded by when this process saw the end of their partition move."""

import math
from bisect import bisect_right
from typing import NamedTuple

REMEMBERED = 3_600


class _Growth(NamedTuple):
    """The end offset was first seen at `end` at `seen_at`, and was lower at `before`; None at the first observation."""

    before: float | None
    seen_at: float
    end: int


class Arrivals:
    """The end offsets of one partition as they were seen, each with its time on a monotonic clock in seconds.

    A record's own time is that of its producer's clock and may be years off. Where two observations of the log enclose
    a record's arrival, they bound its age; a record that was there before the first one is as old as it says, and at
    least as old as that observation. An age is never negative.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._growths: list[_Growth] = []
        self._remembered = remembered
        self._last_look: float | None = None
        self._forgotten = 0

    def see(self, end: int, now: float) -> None:
        """Record the end offset that the broker has just reported."""
        if self._growths and end < self._growths[-1].end:  # the topic was replaced
            self._growths.clear()
            self._last_look, self._forgotten = None, 0
        if not self._growths or end > self._growths[-1].end:
            self._growths.append(_Growth(self._last_look, now, end))
        self._last_look = now
        self._forget(len(self._growths) - self._remembered)

    def forget_before(self, offset: int) -> None:
        """Records below `offset` need not be known any more."""
        self._forget(min(self._index(offset), len(self._growths) - 1))

    def age_seconds(self, offset: int, timestamp_ms: int | None, *, now: float, now_ms: int) -> float:
        """Seconds since the record at `offset` was written; 0 for one that was not seen yet.

        `timestamp_ms` is the record's own time, None where it is not known: then its age is at least what is returned.
        """
        index = self._index(offset)
        if index == len(self._growths):
            return 0.0
        growth = self._growths[index]
        least = now - growth.seen_at
        before = growth.before if offset >= self._forgotten else None
        most = math.inf if before is None else now - before
        by_its_own_time = -math.inf if timestamp_ms is None else (now_ms - timestamp_ms) / 1000
        return max(0.0, min(max(by_its_own_time, least), most))

    def _forget(self, count: int) -> None:
        if count > 0:
            self._forgotten = self._growths[count - 1].end
            del self._growths[:count]

    def _index(self, offset: int) -> int:
        return bisect_right(self._growths, offset, key=lambda growth: growth.end)
