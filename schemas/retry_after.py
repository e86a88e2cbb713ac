"""When an endpoint that is busy wants to be asked again."""

import email.utils
import math
import time
from collections.abc import Mapping


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """Seconds, from either form of RFC 9110, section 10.2.3; None where there is none that can be read. `headers` are
    to be found by names in lower case."""
    said = headers.get("retry-after", "")
    try:
        seconds = float(said)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(said).timestamp() - time.time()
        except ValueError:
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None
