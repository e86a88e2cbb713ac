"""Shows the first fetch of Kafka's jars in the terminal."""

import sys

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

_TEXT = "Fetching Apache Kafka (once, about 45 MB)"


class JarProgress:
    """A progress bar on standard error, or one line there when it is no terminal."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task = TaskID(0)

    def __call__(self, here: int, in_all: int) -> None:
        """Takes (jars here, jars in all) as `ensure_jars` reports them."""
        if self._bar is None:
            console = Console(stderr=True)
            if not console.is_terminal:
                if here == 0:
                    print(f"{_TEXT} …", file=sys.stderr, flush=True)
                return
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=console,
            )
            self._task = self._bar.add_task(_TEXT, total=in_all)
            self._bar.start()
        self._bar.update(self._task, completed=here)
        if here >= in_all:
            self.close()

    def close(self) -> None:
        """Gives the terminal back. May be called again."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
