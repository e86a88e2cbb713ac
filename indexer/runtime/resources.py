"""The processors and the memory that this process may use, and its garbage collection.

Python's `os.sched_getaffinity` and `os.process_cpu_count` ignore the CPU quota of a container. joblib's `loky` reads
one, but takes an eighth of a second to import, and sees only that of the root of the mounted hierarchy. The functions
on memory do nothing where the C library is not glibc.
"""

import asyncio
import ctypes
import gc
import math
import os
from collections.abc import Iterator
from pathlib import Path

import psutil

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")
TRIM_SECONDS = 30.0
MMAP_BYTES = 1024**2
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8  # malloc.h


def usable_processors(cgroups: Path = CGROUPS, own_cgroups: Path = OWN_CGROUPS) -> int:
    """At least 1. A quota is rounded up: 1.5 processors count as 2."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *map(math.ceil, _quotas(cgroups, own_cgroups))]))


def usable_memory_bytes(cgroups: Path = CGROUPS, own_cgroups: Path = OWN_CGROUPS) -> int:
    """The machine's memory, or the least limit of the control groups that this process is in."""
    return min([psutil.virtual_memory().total, *_memory_limits(cgroups, own_cgroups)])


def limit_malloc_arenas() -> None:
    """Limit glibc to one arena a processor, with pages of their own for large allocations. Call before threads start.

    Dozens of threads allocate and free batches and graphs. With glibc's default of eight arenas a processor, each
    fragmented, a worker under steady small updates grew by a sixth in 20 minutes.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_M_ARENA_MAX, max(2, usable_processors()))
        library.mallopt(_M_MMAP_THRESHOLD, MMAP_BYTES)


def tune_gc(thresholds: tuple[int, int, int]) -> None:
    """Exempt the objects there are now from garbage collection, and collect less often: call when all is started."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*thresholds)


async def trim_memory_periodically(every_seconds: float = TRIM_SECONDS) -> None:
    while True:
        await asyncio.sleep(every_seconds)
        await asyncio.to_thread(trim_memory)


def trim_memory() -> None:
    """Return freed memory to the system, in some 20 ms."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def _quotas(cgroups: Path, own_cgroups: Path) -> Iterator[float]:
    """The quotas, in processors, of this process's control group and those above it, in version 2 (`cpu.max`) and 1."""
    for version, folder in _groups("cpu", cgroups, own_cgroups):
        if version == 2:
            yield from _quota(*(*_read(folder / "cpu.max").split(), "", "")[:2])
        else:
            yield from _quota(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))


def _memory_limits(cgroups: Path, own_cgroups: Path) -> Iterator[int]:
    """Bytes, in version 2 (`memory.max`) and 1, where no limit is a number larger than any memory."""
    for version, folder in _groups("memory", cgroups, own_cgroups):
        limit = _read(folder / ("memory.max" if version == 2 else "memory.limit_in_bytes")).strip()
        if limit.isdecimal() and int(limit):
            yield int(limit)


def _groups(controller: str, cgroups: Path, own_cgroups: Path) -> Iterator[tuple[int, Path]]:
    """The version and the folder of each control group that this process is in, and of those above it."""
    for line in _read(own_cgroups).splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0":
            yield from ((2, folder) for folder in _upwards(cgroups, path))
        elif controller in controllers.split(","):
            yield from ((1, folder) for folder in _upwards(cgroups / controller, path))


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """A group's folder and those above it. A container may see a path that is not mounted; the root is its own."""
    folder = root / path.strip("/")
    yield folder
    while folder != root:
        folder = folder.parent
        yield folder


def _quota(microseconds: str, period_microseconds: str) -> Iterator[float]:
    """Nothing for `max`, -1 or a missing file."""
    if microseconds.strip().isdecimal() and period_microseconds.strip().isdecimal() and int(period_microseconds):
        yield int(microseconds) / int(period_microseconds)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
