"""What publishing a graph of many chunks costs the process that does it: `python -m tests.bench.publishing [CHUNKS]`.

The graph is that of `tests/bench/folders/wiki`, over and over with ids of its own; every second name is one of all
copies, the others are one of forty. Prints machine, graph and costs as JSON.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from indexer.generation_folders import Generation
from indexer.graph.snapshots import latest_snapshot
from indexer.read.published_graph import FILE, newest_folder
from schemas.graph_delta import Contribution
from schemas.ids import sha256_hex
from tests.support.fixtures.folder_graph import contributions_of
from tests.support.fixtures.graph_snapshots import write_snapshot

MIB = 1024**2
NAMED_ALIKE = 40
BUFFER_BYTES = 1024 * MIB
POLL_SECONDS = 0.01
IMPORTS = "import indexer.write.kuzu_publication"


def copies(contributions: list[Contribution], chunks: int) -> Iterator[Contribution]:
    number, made = 0, 0
    while made < chunks:
        for each in contributions:
            yield copied(each, number)
            made += len(each.chunks)
        number += 1


def copied(contribution: Contribution, number: int) -> Contribution:
    def renamed(name: str) -> str:
        return name if len(name) % 2 else f"{name} {number % NAMED_ALIKE}"

    def own(nodes: list[Any]) -> list[Any]:
        return [msgspec.structs.replace(node, id=sha256_hex(f"{node.id} {number}".encode())[:32]) for node in nodes]

    def named(edges: list[Any]) -> list[Any]:
        return [msgspec.structs.replace(edge, name=renamed(edge.name)) for edge in edges]

    return msgspec.structs.replace(
        contribution,
        document_id=f"{number}/{contribution.document_id}",
        sections=own(contribution.sections),
        chunks=own(contribution.chunks),
        about=named(contribution.about),
        mentions=named(contribution.mentions),
        statements=own([msgspec.structs.replace(each, roles=named(each.roles)) for each in contribution.statements]),
    )


def costs(arguments: list[str]) -> tuple[float, float]:
    """Processor seconds and the most memory, in MiB, of a Python process. Linux only: `ru_maxrss` begins with what the
    parent had."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    most = 0.0
    with subprocess.Popen([sys.executable, *arguments]) as process:
        while process.poll() is None:
            with suppress(OSError):
                for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                    if line.startswith("VmHWM:"):
                        most = max(most, int(line.split()[1]) / 1024)
            time.sleep(POLL_SECONDS)
    assert process.returncode == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, most


def main(chunks: int = 100_000) -> None:
    with TemporaryDirectory() as folder:
        generation = Generation(Path(folder), "g0001")
        write_snapshot(generation.snapshots_dir, copies(contributions_of("wiki"), chunks), 0, made_at_ms=1)
        snapshot = latest_snapshot(generation.snapshots_dir)
        assert snapshot is not None
        _, idle_mib = costs(["-c", f"{IMPORTS}, time; time.sleep(0.1)"])
        began = time.monotonic()
        program = ["-m", "indexer.write.kuzu_publication", folder, generation.name, str(BUFFER_BYTES)]
        seconds, most_mib = costs(program)
        wall_seconds = time.monotonic() - began
        published = newest_folder(generation.kuzu_dir)
        assert published is not None
        result = {
            "processors": os.cpu_count(),
            "load": os.getloadavg()[0],
            "rows": {name: table.rows for name, table in snapshot.tables.items()},
            "snapshot_mib": round(snapshot.content_bytes / MIB, 1),
            "file_mib": round((published / FILE).stat().st_size / MIB, 1),
            "processor_seconds": round(seconds, 2),
            "wall_seconds": round(wall_seconds, 2),
            "memory_mib": round(most_mib),
            "memory_mib_over_imports": round(most_mib - idle_mib),
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
