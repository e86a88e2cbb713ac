"""How hard the randomised tests try, and how much memory a test leaves behind.

`THOROUGH=1 .venv/bin/pytest tests/unit/indexer/fuzzing tests/unit/streams/indexing/test_histories.py` tries for a
night, 0.1 a tenth of that.
"""

import gc
import os

import psutil

from indexer.runtime.resources import trim_memory


def examples(usual: int, thorough: int) -> int:
    """How many examples a test tries."""
    return max(usual, round(thorough * float(os.environ.get("THOROUGH", "0"))))


def held_bytes() -> int:
    """Resident bytes once garbage is collected and glibc has given back what was freed."""
    gc.collect()
    trim_memory()
    return int(psutil.Process().memory_info().rss)
