"""Bars of the progress of a long command, on standard error."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from schemas.terminal import plain

if TYPE_CHECKING:
    from query_api.evaluation.runner import Progress


@contextmanager
def progress_bars(*, quiet: bool) -> "Iterator[Progress]":
    """Bars on standard error, one for each step of the evaluation."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    from query_api.cli.display import PlainConsole

    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=PlainConsole(stderr=True),
        disable=quiet,
    ) as progress:

        def begin(what: str, parts: int) -> Callable[[int], None]:
            bar = progress.add_task(plain(what), total=parts)
            return lambda done: progress.advance(bar, done)

        yield begin
