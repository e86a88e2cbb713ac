"""Orders in the log: following one until the worker has carried it out."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import typer

from schemas.errors import Failure
from schemas.progress_bars import progress_bars
from schemas.terminal import say

if TYPE_CHECKING:
    from query_api.client import ServiceClient

POLL_SECONDS = 0.5


def follow_order(
    client: "ServiceClient", path: str, what: str, patience_seconds: float, *, shown: bool
) -> dict[str, Any]:
    """The state of the order at that path when it is done, with a bar meanwhile. Raises Failure where nothing moves for
    so long; Ctrl-C ends only the following."""
    try:
        with progress_bars(shown=shown) as bars:
            bar = bars(what)
            return await_order(
                lambda: client.get(path),
                lambda state: bar.set(state["documents"], state["of"] or None),
                patience_seconds,
            )
    except KeyboardInterrupt:
        say(f"It continues: 'thalweg api GET {path}' shows its progress.", error=True)
        raise typer.Exit(130) from None


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
                f"Nothing happened for {timeout_seconds:g} s. The order stays in the log: a worker that runs "
                "carries it out. See 'thalweg status'."
            )
        sleep(POLL_SECONDS)
