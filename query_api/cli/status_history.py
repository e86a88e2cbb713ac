"""What was observed of the service's state in the last minutes: throughput, and lag over time."""

from collections import deque
from dataclasses import dataclass, field
from typing import Any

HISTORY_SECONDS = 300.0
RATE_SECONDS = 10.0

JSONObject = dict[str, Any]


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
