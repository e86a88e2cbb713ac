"""Times as they cross borders: milliseconds since 1970, RFC 3339, `Retry-After`; and the age of records in a log."""

import email.utils
import math
import re
import time
from bisect import bisect_right
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_FIRST_MS = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)

_AGO = re.compile(r"([0-9]{1,9})([smhdw])")
SINCE_PATTERN = (
    "^([0-9]{1,9}[smhdw]|[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    "(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\\.[0-9]{1,6})?)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?)?)$"
)
"""What `since_ms` takes, but for days that a month does not have and rarer forms."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def rfc3339(timestamp_ms: int) -> str:
    """The time in UTC; of years beyond 1 to 9999 the nearest, since a producer's clock may show anything."""
    within = min(max(timestamp_ms, _FIRST_MS), _LAST_MS)
    return (_EPOCH + timedelta(milliseconds=within)).isoformat()


def since_ms(text: str, now_ms: int) -> int:
    """The time, in milliseconds since 1970, that a person means by `90s`, `15m`, `2h`, `7d`, `2w` ago or by an RFC 3339
    time; UTC where it names no zone. Raises ValueError with a sentence."""
    ago = _AGO.fullmatch(text.strip())
    if ago:
        return max(0, now_ms - int(ago[1]) * _SECONDS[ago[2]] * 1000)
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError(f"{text[:40]!r} is not a time: write 15m, 2h, 7d, or 2026-11-22T04:00:00Z.") from None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1))


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds, from either form of RFC 9110, section 10.2.3; None where there is none that can be read. `headers` are
    to be found by names in lower case."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


REMEMBERED = 3_600


class _Growth(NamedTuple):
    """The end offset was first seen at `end` at `seen_at`, and was lower at `before`; None at the first observation."""

    before: float | None
    seen_at: float
    end: int


class Arrivals:
    """The end offsets of one partition as they were seen, each with its time on a monotonic clock in seconds.

    A record's own time is that of its producer's clock and may be years off. Where two observations of the log enclose
    a record's arrival, they bound its age; a record from before the first one is as old as its timestamp, and at
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
