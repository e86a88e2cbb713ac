"""Times as they cross borders: milliseconds since 1970 in records, RFC 3339 for people, `Retry-After` over HTTP."""

import email.utils
import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

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
    """The time in UTC; of years beyond 1 to 9999 the nearest, since a producer's clock may say anything."""
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
        raise ValueError(f"{text[:40]!r} is no time: write 15m, 2h, 7d, or 2026-11-22T04:00:00Z.") from None
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
