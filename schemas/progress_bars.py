"""Bars on standard error, where somebody looks at them."""

from collections.abc import Iterator
from contextlib import contextmanager

from schemas.terminal import plain


class Bar:
    """How many of something are done, of a number that may be set later. This one shows nothing."""

    def __init__(self, name: str, total: int | None = None) -> None:
        """Begins with none."""

    def advance(self, by: int = 1) -> None:
        """So many more."""

    def set(self, done: int, total: int | None = None, name: str | None = None) -> None:
        """So many in all; of so many, and by this name, where these are given."""


Bars = type[Bar]


@contextmanager
def progress_bars(*, shown: bool = True, in_bytes: bool = False) -> Iterator[Bars]:
    """Makes bars by their names, shown until the end of the block."""
    if not shown:
        yield Bar
        return
    from rich import progress as parts  # what is not shown need not be imported
    from rich.console import Console

    class Shown(Bar):
        def __init__(self, name: str, total: int | None = None) -> None:
            self._task = progress.add_task(plain(name), total=total)

        def advance(self, by: int = 1) -> None:
            progress.advance(self._task, by)

        def set(self, done: int, total: int | None = None, name: str | None = None) -> None:
            description = None if name is None else plain(name)
            progress.update(self._task, completed=done, total=total, description=description)

    columns = [parts.TextColumn("{task.description:<10}", markup=False), parts.BarColumn()]
    if in_bytes:
        columns += [parts.DownloadColumn(), parts.TransferSpeedColumn()]
    else:
        columns = [parts.SpinnerColumn(), *columns, parts.MofNCompleteColumn(), parts.TimeElapsedColumn()]
    with parts.Progress(*columns, parts.TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        yield Shown
