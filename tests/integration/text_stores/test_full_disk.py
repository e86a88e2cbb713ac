"""After a full disk, applying the same batches again leaves the rows of an undisturbed run."""

import subprocess
import sys
from pathlib import Path

from indexer.generation_folders import Generation
from indexer.write.lance_writer import LanceWriter
from tests.support.fixtures.text_rows import DIMENSION, contents, generation_in, story

ROOT = Path(__file__).parents[3]
DEADLINE_SECONDS = 60

FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from indexer.errors import TransientStoreError
from indexer.write.lance_writer import LanceWriter
from tests.support.fixtures.text_rows import DIMENSION, generation_in, story

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = LanceWriter.open(generation_in(Path(sys.argv[1])), DIMENSION)
for batch in story():
    for most_bytes in (0, 200, 2_000, resource.RLIM_INFINITY):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))
        try:
            writer.replace(batch)
        except TransientStoreError:
            print("refused", flush=True)
"""


def undisturbed(folder: Path) -> dict[str, list[dict[str, object]]]:
    generation = generation_in(folder)
    writer = LanceWriter.open(generation, DIMENSION)
    for batch in story():
        writer.replace(batch)
    return contents(generation)


def test_full_disk_is_transient_and_the_call_succeeds_later(generation: Generation, tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(generation.data_dir)],
        cwd=ROOT,
        timeout=DEADLINE_SECONDS,
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.count("refused") >= len(story())
    assert contents(generation) == undisturbed(tmp_path / "undisturbed")
