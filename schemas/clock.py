"""Times as they cross borders: milliseconds since 1970 in records, RFC 3339 for people."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_MS = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
_FIRST_MS = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)


def rfc3339(timestamp_ms: int) -> str:
    """The time in UTC; of years beyond 1 to 9999 the nearest, since a producer's clock may say anything."""
    within = min(max(timestamp_ms, _FIRST_MS), _LAST_MS)
    return (_EPOCH + timedelta(milliseconds=within)).isoformat()
