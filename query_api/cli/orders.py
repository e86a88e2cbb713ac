"""Orders in the log: following one until the worker has carried it out."""

import time
from collections.abc import Callable
from typing import Any

from schemas.errors import Failure

POLL_SECONDS = 0.5


def await_order(
    ask: Callable[[], dict[str, Any]],
    show: Callable[[dict[str, Any]], None],
    timeout_seconds: float,
    sleep: Callable[[float], None] = time.sleep,
    now_seconds: Callable[[], float] = time.monotonic,
) -> dict[str, Any]:
    """The state when it is done. Raises Failure where nothing moves for so long."""
    last, since = None, now_seconds()
    while True:
        state = ask()
        show(state)
        if state["state"] == "done":
            return state
        if state != last:
            last, since = state, now_seconds()
        elif now_seconds() - since > timeout_seconds:
            raise Failure(
                f"Nothing was done for {timeout_seconds:g} s. The order stays in the log: a worker that runs "
                "carries it out. See 'thalweg status'."
            )
        sleep(POLL_SECONDS)
