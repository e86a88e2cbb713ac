"""W3C Trace Context (https://www.w3.org/TR/trace-context/): the `traceparent` of a caller, passed on unchanged.

Thalweg makes no spans of its own.
"""

import re
from collections.abc import Sequence

TRACEPARENT = "traceparent"
CLOUDEVENT_TRACEPARENT = "ce_traceparent"

_TRACEPARENT = re.compile(
    r"(?:00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
    r"|(?!00|ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-[\x21-\x7e]{0,200})?)"
)


def well_formed(traceparent: str | None) -> str | None:
    """The same without blanks around it, or None for one that is malformed, which the standard has ignored."""
    text = (traceparent or "").strip()
    return text if _TRACEPARENT.fullmatch(text) else None


def traceparent_in(headers: Sequence[tuple[str, bytes]]) -> str | None:
    """That of a record, by its own header or by the CloudEvents extension in binary mode."""
    named = {name.lower(): value.decode("utf-8", "replace") for name, value in headers}
    return well_formed(named.get(TRACEPARENT)) or well_formed(named.get(CLOUDEVENT_TRACEPARENT))


def trace_id(traceparent: str) -> str:
    """The 32 hex digits that all parts of a trace share."""
    return traceparent.split("-")[1]
