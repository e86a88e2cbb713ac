"""How much memory this process holds, without what it has freed."""

import gc

import psutil

from indexer.runtime.resources import trim_memory


def held_bytes() -> int:
    """Resident bytes once garbage is collected and glibc has given back what was freed."""
    gc.collect()
    trim_memory()
    return int(psutil.Process().memory_info().rss)
