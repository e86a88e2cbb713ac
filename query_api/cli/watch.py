"""`thalweg status --watch`: the state of the service, refreshed in place until Ctrl-C."""

import json
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from query_api.cli.display import JSONObject, PlainConsole, status_line, status_view
from schemas.errors import Failure, Unreachable, WrongSetting
from schemas.terminal import plain_json, say

if TYPE_CHECKING:
    from query_api.client import ServiceClient

RATE_SECONDS = 10.0
PATIENCE_SECONDS = 2.0
"""At least so long an answer may take."""

Ask = Callable[[], JSONObject]
Connect = Callable[[], "ServiceClient"]


@dataclass(frozen=True)
class Observation:
    """The service's state at a moment, in monotonic seconds; or why it is unknown."""

    at_seconds: float
    status: JSONObject | None
    problem: str | None = None


@dataclass
class History:
    """What was observed in the last RATE_SECONDS, and what follows from it. `known` is the last state that the service
    reported."""

    observations: deque[Observation] = field(default_factory=deque)
    known: JSONObject | None = None

    def add(self, observation: Observation) -> None:
        self.observations.append(observation)
        self.known = observation.status or self.known
        while observation.at_seconds - self.observations[0].at_seconds > RATE_SECONDS:
            self.observations.popleft()

    @property
    def newest(self) -> Observation:
        return self.observations[-1]

    def records_per_second(self) -> dict[tuple[str, int], float]:
        """By (topic, partition), from how far each came in the last RATE_SECONDS. Nothing of a partition whose position
        went back: other stores are served."""
        newest = self.newest
        if newest.status is None:
            return {}
        generation = newest.status["generation"]
        since = [each for each in self.observations if each.status and each.status["generation"] == generation]
        seconds = newest.at_seconds - since[0].at_seconds
        if seconds <= 0:
            return {}
        before, now = _reached(since[0].status), _reached(newest.status)
        return {
            place: (offset - before[place]) / seconds
            for place, offset in now.items()
            if place in before and offset >= before[place]
        }


def _reached(status: JSONObject | None) -> dict[tuple[str, int], int]:
    lags = [] if status is None else status["lag"]
    return {(each["topic"], each["partition"]): each["reached"] for each in lags}


def watch_view(history: History) -> RenderableType:
    """The newest state; while the service does not answer, the last that it reported."""
    problem = history.newest.problem
    asking = (
        [] if problem is None else [Text(f"{problem} Trying again; this is what it reported last.", style="yellow")]
    )
    known = [] if history.known is None else [status_view(history.known, history.records_per_second())]
    return Group(*asking, *known)


def watch_line(observation: Observation, history: History) -> str:
    """The newest state in one line, for logs."""
    if observation.status is None:
        return str(observation.problem)
    return status_line(observation.status, history.records_per_second())


def watch(connect: Connect, *, interval_seconds: float, as_json: bool) -> None:
    """Show the state every `interval_seconds` until Ctrl-C: in place on a terminal, else a line each time.

    Raises Failure where no service answers at first; later ones are shown, and it continues.
    """
    console = PlainConsole()
    history = History()

    def ask() -> JSONObject:
        with closing(connect()) as client:  # a service that restarts may have another port
            return client.get("/v1/status")

    with suppress(KeyboardInterrupt):
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
