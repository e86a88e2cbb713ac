"""What a process frees, the machine gets back; glibc would keep it."""

import ctypes
import subprocess
import sys

import psutil
import pytest

from indexer.runtime.resources import trim_memory
from indexer.runtime.resources import usable_processors

pytestmark = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc")

ARENAS = """
import ctypes, threading
from indexer.runtime.resources import limit_malloc_arenas
limit_malloc_arenas()
everybody = threading.Barrier(24)
def allocate():
    held = bytearray(100_000)
    everybody.wait()
threads = [threading.Thread(target=allocate) for _ in range(24)]
for thread in threads: thread.start()
for thread in threads: thread.join()
library = ctypes.CDLL(None)
library.fdopen.restype = ctypes.c_void_p
out = ctypes.c_void_p(library.fdopen(1, b"w"))
library.malloc_info(0, out)
library.fflush(out)
"""


def test_freed_memory_between_pieces_in_use_is_given_back() -> None:
    pieces = [bytes(50_000) for _ in range(4_000)]
    kept = pieces[::40]
    del pieces
    before = psutil.Process().memory_info().rss
    trim_memory()
    assert psutil.Process().memory_info().rss < before - 100_000_000
    assert len(kept) == 100


def test_however_many_threads_allocate_there_are_as_many_arenas_as_processors() -> None:
    told = subprocess.run([sys.executable, "-c", ARENAS], capture_output=True, text=True, check=True).stdout
    assert 1 <= told.count("<heap nr=") <= max(2, usable_processors())
