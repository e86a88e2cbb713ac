"""Bars on standard error, where somebody looks at them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Bar:
    """How many of something are done, of a number that may be set later. This one shows nothing."""

    def advance(self, by: int = 1) -> None:
        """So many more."""

    def set(self, done: int) -> None:
        """So many in all."""

    def is_of(self, total: int) -> None:
        """How many there are."""


Bars = Callable[[str], Bar]
"""Makes a bar by its name."""


@contextmanager
def progress_bars(*, shown: bool) -> Iterator[Bars]:
    """Makes bars by their names, shown until the end of the block."""
    if not shown:
        yield lambda _name: Bar()
        return
    from rich.console import Console  # what is not shown need not be imported
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    class Shown(Bar):
        def __init__(self, name: str) -> None:
            self._task = progress.add_task(name, total=None)

        def advance(self, by: int = 1) -> None:
            progress.advance(self._task, by)

        def set(self, done: int) -> None:
            progress.update(self._task, completed=done)

        def is_of(self, total: int) -> None:
            progress.update(self._task, total=total)

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<10}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    ) as progress:
        yield Shown
