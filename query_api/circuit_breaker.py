"""Whom a failure keeps from being asked again at once."""

import threading
import time
from collections.abc import Callable

REST_SECONDS = 5.0
LONGEST_REST_SECONDS = 300.0


class Rest:
    """After a failure somebody is asked again only once in `rest_seconds`, or when he said, within five minutes.

    `problem` is why he is spared; None while he answers. Used from several threads.
    """

    def __init__(self, rest_seconds: float = REST_SECONDS, clock: Callable[[], float] = time.monotonic) -> None:
        self.problem: str | None = None
        self._rest_seconds = rest_seconds
        self._clock = clock
        self._until = 0.0
        self._lock = threading.Lock()

    def reason(self) -> tuple[str, float] | None:
        """The problem, and for how many seconds he is not to be asked; None where he may be. After a failure only who
        is told so asks, and no one else for `rest_seconds`."""
        with self._lock:
            if self.problem is None:
                return None
            left = self._until - self._clock()
            if left > 0:
                return self.problem, left
            self._until = self._clock() + self._rest_seconds
            return None

    def begin(self, problem: str, asked_seconds: float | None) -> None:
        """He failed, and asked to be left alone for so long."""
        with self._lock:
            self.problem = problem
            self._until = self._clock() + max(self._rest_seconds, min(asked_seconds or 0.0, LONGEST_REST_SECONDS))

    def end(self) -> None:
        """He answered."""
        self.problem = None
