"""The parameter `since`, as the routes about use take it."""

import time
from typing import Annotated

from fastapi import Query

from query_api.errors import ApiProblem
from schemas.clock import SINCE_PATTERN, since_ms

Since = Annotated[
    str | None,
    Query(
        max_length=64,
        description="Only from then on: `15m`, `2h`, `7d` ago, or an RFC 3339 time.",
        json_schema_extra={"pattern": SINCE_PATTERN},
    ),
]


def first_ms(since: str | None) -> int | None:
    """Milliseconds since 1970; None for all. Raises ApiProblem 422."""
    if since is None:
        return None
    try:
        return since_ms(since, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise ApiProblem(422, "Request does not fit", f"`since`: {error}") from error
