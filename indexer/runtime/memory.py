"""Memory that was freed goes back to the machine. Everything here does nothing where the C library is not glibc."""

import asyncio
import ctypes

from indexer.runtime.resources import usable_processors

EVERY_SECONDS = 30.0
LARGE_BYTES = 1024**2
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # malloc.h


def limit_malloc_arenas() -> None:
    """Call it before there are threads: as many arenas for allocations as there are processors, and pages of their own
    for large ones.

    Batches and graphs are allocated and freed by dozens of threads. With glibc's eight arenas a processor, each with a
    few small pieces between what was freed, a worker under steady small updates grew by a sixth in 20 minutes though
    nothing more was in use.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_M_ARENA_MAX, max(2, usable_processors()))
        library.mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)


async def trim_memory_periodically(every_seconds: float = EVERY_SECONDS) -> None:
    """Give back what was freed, for ever."""
    while True:
        await asyncio.sleep(every_seconds)
        await asyncio.to_thread(trim_memory)


def trim_memory() -> None:
    """Let glibc give back the pages it keeps after they were freed, in some 20 ms."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)
