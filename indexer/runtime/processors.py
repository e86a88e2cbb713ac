"""How many processors this process may use: those it may run on, or what the quota of its container leaves of them.

Python counts the first (`os.sched_getaffinity`), and its `os.process_cpu_count` of 3.13 still no quota. joblib's `loky`
counts a quota, but costs an eighth of a second to import, and sees only that of the root of what is mounted.
"""

import math
import os
from collections.abc import Iterator
from pathlib import Path

CGROUPS = Path("/sys/fs/cgroup")
OWN_CGROUPS = Path("/proc/self/cgroup")


def usable_processors(cgroups: Path = CGROUPS, own_cgroups: Path = OWN_CGROUPS) -> int:
    """At least 1. A quota counts by its share of time, rounded up: 1.5 processors are 2."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([allowed, *map(math.ceil, _quotas(cgroups, own_cgroups))]))


def _quotas(cgroups: Path, own_cgroups: Path) -> Iterator[float]:
    """In processors: those of this process's control group and of all above it, in version 2 (`cpu.max`) and 1."""
    for line in _read(own_cgroups).splitlines():
        number, controllers, path = (*line.split(":", 2), "", "")[:3]
        if number == "0":
            for folder in _upwards(cgroups, path):
                yield from _quota(*(*_read(folder / "cpu.max").split(), "", "")[:2])
        elif "cpu" in controllers.split(","):
            for folder in _upwards(cgroups / "cpu", path):
                yield from _quota(_read(folder / "cpu.cfs_quota_us"), _read(folder / "cpu.cfs_period_us"))


def _upwards(root: Path, path: str) -> Iterator[Path]:
    """A group's folder and those above it. A container may be told a path that it does not see; the root is its own."""
    folder = root / path.strip("/")
    yield folder
    while folder != root:
        folder = folder.parent
        yield folder


def _quota(microseconds: str, of_microseconds: str) -> Iterator[float]:
    """Nothing for `max`, for -1, and for what is not there."""
    if microseconds.strip().isdecimal() and of_microseconds.strip().isdecimal() and int(of_microseconds):
        yield int(microseconds) / int(of_microseconds)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
