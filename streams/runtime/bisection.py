"""Bisecting a batch that fails, so that one poison record cannot hold up the others."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import structlog

Item = TypeVar("Item")
Result = TypeVar("Result")


async def bisect(
    batch: Sequence[Item],
    work: Callable[[Sequence[Item]], Awaitable[Sequence[Result]]],
    reject: Callable[[Item, Exception], Awaitable[Result]],
    *,
    errors: tuple[type[Exception], ...] = (Exception,),
    fatal: tuple[type[Exception], ...] = (),
    name: str,
    log_traceback: bool = True,
) -> list[Result]:
    """The results of `work` on the batch; where that fails, on its halves, in order, until the failing item is alone.

    That one goes to `reject`, with its error. `work` may be called again with a part of what it failed for. Only
    `errors` are bisected, without those of `fatal`. `name` is the batch's in the log, which gets a traceback unless
    the errors of `work` may quote documents.
    """
    try:
        return list(await work(batch))
    except fatal:
        raise
    except errors as error:
        structlog.get_logger("thalweg.worker").warning(
            "a batch failed",
            batch=name,
            records=len(batch),
            error=type(error).__name__,
            exc_info=error if log_traceback else None,
        )
        if not batch:
            raise
        if len(batch) == 1:
            return [await reject(batch[0], error)]
    results: list[Result] = []
    half = len(batch) // 2
    for part in (batch[:half], batch[half:]):
        results += await bisect(part, work, reject, errors=errors, fatal=fatal, name=name, log_traceback=log_traceback)
    return results
