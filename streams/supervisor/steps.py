"""What `thalweg up` does while it starts, each step with its seconds: a spinner at a terminal, elsewhere only lines."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console

from schemas.terminal import plain
from streams.embedded_kafka.jars import JarProgress

if TYPE_CHECKING:
    from rich.status import Status


class StartSteps:
    """Writes to standard error. Steps do not overlap; `close` gives the terminal back and may be called again."""

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
        self._status: Status | None = None
        self._jars = JarProgress()

    @contextmanager
    def step(self, doing: str, done: str) -> Iterator[None]:
        """Shows `doing` while the block runs, and says `done` with its seconds when it has ended well."""
        began = time.monotonic()
        self.show(doing)
        try:
            yield
        except BaseException:
            self.close()
            raise
        self.say_done(done, time.monotonic() - began)

    def show(self, doing: str) -> None:
        """What is being done now, until the next; where there is no terminal, nothing."""
        if not self._console.is_terminal:
            return
        if self._status is not None:
            self._status.update(f"{plain(doing)} …")
            return
        self._status = self._console.status(f"{plain(doing)} …")
        self._status.start()

    def say_done(self, done: str, seconds: float) -> None:
        """A line that stays."""
        line = plain(f"{done} ({seconds:.1f} s)")
        if self._console.is_terminal:
            self._console.print(line)
        else:
            print(line, file=sys.stderr, flush=True)

    def fetched(self, here: int, in_all: int) -> None:
        """Takes (jars here, jars in all) as `ensure_jars` reports them: a bar in place of the spinner."""
        self._stop_spinner()
        self._jars(here, in_all)

    def close(self) -> None:
        self._stop_spinner()
        self._jars.close()

    def _stop_spinner(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None
