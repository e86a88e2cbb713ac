"""`thalweg status --watch`: the state of the service, refreshed in place until Ctrl-C."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from query_api.cli.display import JSONObject, PlainConsole
from query_api.cli.status_display import History, Observation, watch_line, watch_view
from schemas.errors import Failure, Unreachable, WrongSetting
from schemas.terminal import plain_json, say

if TYPE_CHECKING:
    from query_api.client import ServiceClient

PATIENCE_SECONDS = 2.0
"""At least so long an answer may take."""

Ask = Callable[[], JSONObject]
Connect = Callable[[], "ServiceClient"]


class StatusSource:
    """The state of the service, which is connected to again after each failure: one that restarts may have another
    port."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._client: ServiceClient | None = None

    def __call__(self) -> JSONObject:
        """Raises Failure."""
        if self._client is None:
            self._client = self._connect()
        try:
            return self._client.get("/v1/status")
        except Failure:
            self.close()
            raise

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def watch(connect: Connect, *, interval_seconds: float, as_json: bool) -> None:
    """Show the state every `interval_seconds` until Ctrl-C: in place on a terminal, else a line each time.

    Raises Failure where no service answers at first; later ones are shown, and it goes on.
    """
    console = PlainConsole()
    history = History()
    with closing(StatusSource(connect)) as ask, suppress(KeyboardInterrupt):
        history.add(Observation(time.monotonic(), ask()))
        ticks = _ticks(ask, history, interval_seconds)
        if as_json or not console.is_terminal:
            for observation in ticks:
                _print_line(observation, history, as_json=as_json)
            return
        from rich.live import Live

        with Live(watch_view(history), console=console, auto_refresh=False) as live:
            for _ in ticks:
                live.update(watch_view(history), refresh=True)


def _ticks(ask: Ask, history: History, interval_seconds: float) -> Iterator[Observation]:
    """The first observation, then one each interval, added to the history."""
    yield history.newest
    due = history.newest.at_seconds
    while True:
        now = time.monotonic()
        due = max(due + interval_seconds, now)
        time.sleep(due - now)
        history.add(observe(ask))
        yield history.newest


def observe(ask: Ask) -> Observation:
    """Raises WrongSetting, which waiting does not repair."""
    try:
        status, problem = ask(), None
    except WrongSetting:
        raise
    except Unreachable:
        status, problem = None, "The service does not answer; it may be restarting."
    except Failure as error:
        status, problem = None, str(error)
    return Observation(time.monotonic(), status, problem)


def _print_line(observation: Observation, history: History, *, as_json: bool) -> None:
    if not as_json:
        say(watch_line(observation, history))
        return
    rates = history.records_per_second()
    per_second = [
        {"topic": topic, "partition": partition, "records_per_second": round(rate, 3)}
        for (topic, partition), rate in rates.items()
    ]
    line = {"status": observation.status, "problem": observation.problem, "throughput": per_second}
    print(plain_json(json.dumps(line, ensure_ascii=False)), flush=True)
