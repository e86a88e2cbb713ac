"""`thalweg status --watch`: the state of the service, refreshed in place until Ctrl-C."""

import json
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from query_api.cli import app as commands
from query_api.cli.display import PlainConsole
from query_api.cli.status_display import watch_line, watch_view
from schemas.errors import Failure, Unreachable, WrongSetting
from schemas.terminal import plain_json, say

if TYPE_CHECKING:
    from query_api.client import ServiceClient

HISTORY_SECONDS = 300.0
RATE_SECONDS = 10.0
PATIENCE_SECONDS = 2.0

JSONObject = dict[str, Any]
Ask = Callable[[], JSONObject]


@dataclass(frozen=True)
class Observation:
    """The service's state at a moment, in monotonic seconds; or why it did not tell."""

    at_seconds: float
    status: JSONObject | None
    problem: str | None = None


@dataclass
class History:
    """What was observed in the last minutes, and what follows from it."""

    observations: deque[Observation] = field(default_factory=deque)

    def add(self, observation: Observation) -> None:
        self.observations.append(observation)
        while observation.at_seconds - self.observations[0].at_seconds > HISTORY_SECONDS:
            self.observations.popleft()

    @property
    def newest(self) -> Observation:
        return self.observations[-1]

    @property
    def known(self) -> JSONObject | None:
        """The last state that the service told."""
        return next((each.status for each in reversed(self.observations) if each.status is not None), None)

    @property
    def lag_records(self) -> list[int | None]:
        """By observation, None where it was not known."""
        return [None if each.status is None else each.status["lag_records"] for each in self.observations]

    def records_per_second(self) -> dict[tuple[str, int], float]:
        """By (topic, partition), from how far each came in the last RATE_SECONDS. Nothing of a partition whose position
        went back: other stores are served."""
        newest = self.newest
        if newest.status is None:
            return {}
        since = [
            each
            for each in self.observations
            if each.status is not None
            and newest.at_seconds - each.at_seconds <= RATE_SECONDS
            and each.status["generation"] == newest.status["generation"]
        ]
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


class StatusSource:
    """The state of the service on a data directory or at an address, which is looked up again after each failure: a
    service that restarts may have another port."""

    def __init__(self, url: str | None, data_dir: Path | None, patience_seconds: float) -> None:
        self._url, self._data_dir, self._patience_seconds = url, data_dir, patience_seconds
        self._client: ServiceClient | None = None

    def __call__(self) -> JSONObject:
        """Raises Failure."""
        if self._client is None:
            self._client = commands.service_client(self._url, self._data_dir, patience_seconds=self._patience_seconds)
        try:
            return self._client.get("/v1/status")
        except Failure:
            self.close()
            raise

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def watch(
    url: str | None,
    data_dir: Path | None,
    *,
    interval_seconds: float,
    as_json: bool,
    output: TextIO | None = None,
) -> None:
    """Show the state every `interval_seconds` until Ctrl-C: in place on a terminal, else a line each time.

    Raises Failure where no service answers at first; later ones are shown, and it goes on.
    """
    console = PlainConsole(file=output or sys.stdout)
    history = History()
    with (
        closing(StatusSource(url, data_dir, max(interval_seconds, PATIENCE_SECONDS))) as ask,
        suppress(KeyboardInterrupt),
    ):
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
    """Raises WrongSetting, which waiting does not mend."""
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
