"""A circuit breaker: what has failed is left alone for a while, then one call probes it."""

import threading
import time
from collections.abc import Callable

RESET_SECONDS = 5.0
LONGEST_RESET_SECONDS = 300.0


class CircuitBreaker:
    """Open after a failure, for `reset_seconds` or as long as the failed side asked, at most five minutes.

    `problem` is the failure that opened it; None while it is closed. Used from several threads.
    """

    def __init__(self, reset_seconds: float = RESET_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self.problem: str | None = None
        self._reset_seconds = reset_seconds
        self._clock = clock
        self._open_until = 0.0
        self._lock = threading.Lock()

    def refusal(self) -> tuple[str, float] | None:
        """The problem and the seconds it stays open; None where the call may be made. Once the time is over one caller
        may probe, and no other for `reset_seconds`."""
        with self._lock:
            if self.problem is None:
                return None
            left = self._open_until - self._clock()
            if left > 0:
                return self.problem, left
            self._open_until = self._clock() + self._reset_seconds
            return None

    def record_failure(self, problem: str, retry_after_seconds: float | None) -> None:
        with self._lock:
            self.problem = problem
            asked = min(retry_after_seconds or 0.0, LONGEST_RESET_SECONDS)
            self._open_until = self._clock() + max(self._reset_seconds, asked)

    def record_success(self) -> None:
        self.problem = None
