"""Processors: those of the machine, of the affinity, or of a container's quota. Memory that is freed goes back."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from indexer.runtime.resources import trim_memory, usable_memory_bytes, usable_processors

needs_glibc = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="the C library is not glibc")
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


@pytest.fixture
def eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def control_groups(tmp_path: Path, own: str, **files: str) -> tuple[Path, Path]:
    (tmp_path / "own").write_text(own)
    for name, content in files.items():
        file = tmp_path / "cgroup" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return tmp_path / "cgroup", tmp_path / "own"


def told(tmp_path: Path, own: str, **files: str) -> int:
    return usable_processors(*control_groups(tmp_path, own, **files))


@pytest.mark.parametrize(
    ("cpu_max", "processors"),
    [
        ("max 100000\n", 8),
        ("200000 100000\n", 2),
        ("150000 100000\n", 2),
        ("50000 100000\n", 1),
        ("1600000 100000\n", 8),
        ("", 8),
        ("nonsense\n", 8),
    ],
)
@pytest.mark.usefixtures("eight_processors")
def test_a_quota_of_version_2_counts_rounded_up(tmp_path: Path, cpu_max: str, processors: int) -> None:
    assert told(tmp_path, "0::/\n", **{"cpu.max": cpu_max}) == processors


@pytest.mark.usefixtures("eight_processors")
def test_the_least_quota_on_the_way_up_counts(tmp_path: Path) -> None:
    quotas = {"a/b/cpu.max": "max 100000", "a/cpu.max": "300000 100000", "c/cpu.max": "100000 100000"}
    assert told(tmp_path, "0::/a/b\n", **quotas) == 3


@pytest.mark.usefixtures("eight_processors")
def test_a_container_that_is_told_a_path_of_its_host_has_the_quota_of_its_root(tmp_path: Path) -> None:
    assert told(tmp_path, "0::/docker/4f1\n", **{"cpu.max": "400000 100000"}) == 4


@pytest.mark.parametrize(("quota", "processors"), [("-1\n", 8), ("250000\n", 3)])
@pytest.mark.usefixtures("eight_processors")
def test_a_quota_of_version_1_counts_too(tmp_path: Path, quota: str, processors: int) -> None:
    files = {"cpu/cpu.cfs_quota_us": quota, "cpu/cpu.cfs_period_us": "100000\n"}
    assert told(tmp_path, "4:memory:/x\n2:cpu,cpuacct:/docker/4f1\n1:name=systemd:/\n", **files) == processors


@pytest.mark.usefixtures("eight_processors")
def test_where_there_are_no_control_groups_the_affinity_counts(tmp_path: Path) -> None:
    assert usable_processors(tmp_path / "none", tmp_path / "none") == 8


@pytest.mark.parametrize(
    ("own", "files", "limit"),
    [
        ("0::/a/b\n", {"a/b/memory.max": "max\n", "a/memory.max": "1048576\n"}, 1_048_576),
        ("4:memory:/docker/4f1\n", {"memory/memory.limit_in_bytes": "2097152\n"}, 2_097_152),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": "9223372036854771712\n"}, None),
        ("0::/\n", {"memory.max": "max\n"}, None),
        ("0::/\n", {}, None),
    ],
)
def test_the_least_limit_of_memory_counts(tmp_path: Path, own: str, files: dict[str, str], limit: int | None) -> None:
    assert usable_memory_bytes(*control_groups(tmp_path, own, **files)) == (limit or psutil.virtual_memory().total)


@needs_glibc
def test_freed_memory_between_pieces_in_use_is_given_back() -> None:
    pieces = [bytes(50_000) for _ in range(4_000)]
    kept = pieces[::40]
    del pieces
    before = psutil.Process().memory_info().rss
    trim_memory()
    assert psutil.Process().memory_info().rss < before - 100_000_000
    assert len(kept) == 100


@needs_glibc
def test_however_many_threads_allocate_there_are_as_many_arenas_as_processors() -> None:
    told = subprocess.run([sys.executable, "-c", ARENAS], capture_output=True, text=True, check=True).stdout
    assert 1 <= told.count("<heap nr=") <= max(2, usable_processors())
