"""Bars that show how far a load is, on standard error; or none, and then nothing is imported for them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Bar(Protocol):
    """How many of something are done, of a number that may be told later."""

    def advance(self) -> None: ...
    def is_of(self, total: int) -> None: ...


class NoBar:
    """Shows nothing."""

    def advance(self) -> None:
        """Nothing."""

    def is_of(self, total: int) -> None:
        """Nothing."""


@contextmanager
def progress_bars(*, shown: bool) -> Iterator[Callable[[str], Bar]]:
    """Makes bars by their names, shown until the end of the block."""
    if not shown:
        yield lambda _name: NoBar()
        return
    from rich.console import Console  # what is not shown need not be imported
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    class Shown:
        def __init__(self, name: str) -> None:
            self._task = progress.add_task(name, total=None)

        def advance(self) -> None:
            progress.advance(self._task)

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
