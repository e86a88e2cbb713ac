"""Memory that was freed goes back to the machine."""

import asyncio
import ctypes

EVERY_SECONDS = 30.0


async def keep_memory_small(every_seconds: float = EVERY_SECONDS) -> None:
    """Give back what was freed, for ever."""
    while True:
        await asyncio.sleep(every_seconds)
        await asyncio.to_thread(return_freed_memory)


def return_freed_memory() -> None:
    """Let the C library give back the pages it keeps after they were freed, in some 20 ms. Does nothing where it is not
    glibc.

    Batches and graphs are allocated by many threads, each in an arena of its own, and glibc keeps every arena as large
    as it ever was: after 20,000 small updates it held seven times what was in use.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
