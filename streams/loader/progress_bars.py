"""Bars on standard error, where somebody looks at them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Bar:
    """How many of something are done, of a number that may be set later. This one shows nothing."""

    def advance(self, by: int = 1) -> None:
        """So many more."""

    def set(self, done: int) -> None:
        """So many in all."""

    def is_of(self, total: int) -> None:
        """How many there are."""


class Bars(Protocol):
    """Makes a bar by its name."""

    def __call__(self, name: str, total: int | None = None, /) -> Bar: ...


def no_bars(_name: str, _total: int | None = None, /) -> Bar:
    """Where nobody looks."""
    return Bar()


@contextmanager
def progress_bars(*, shown: bool, in_bytes: bool = False) -> Iterator[Bars]:
    """Makes bars by their names, shown until the end of the block."""
    if not shown:
        yield no_bars
        return
    from rich import progress as parts  # what is not shown need not be imported
    from rich.console import Console

    class Shown(Bar):
        def __init__(self, name: str, total: int | None = None) -> None:
            self._task = progress.add_task(name, total=total)

        def advance(self, by: int = 1) -> None:
            progress.advance(self._task, by)

        def set(self, done: int) -> None:
            progress.update(self._task, completed=done)

        def is_of(self, total: int) -> None:
            progress.update(self._task, total=total)

    columns = [parts.TextColumn("{task.description:<10}"), parts.BarColumn()]
    if in_bytes:
        columns += [parts.DownloadColumn(), parts.TransferSpeedColumn(), parts.TimeRemainingColumn()]
    else:
        columns = [parts.SpinnerColumn(), *columns, parts.MofNCompleteColumn(), parts.TimeElapsedColumn()]
    with parts.Progress(*columns, console=Console(stderr=True)) as progress:
        yield Shown
