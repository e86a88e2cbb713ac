"""A worker that dies: writes the story to the tables in a folder, and is killed just before one of its commits.

`python -m tests.integration.text_stores.crashing_writer FOLDER COMMIT`: COMMIT counts from 1 in the second batch; with
0 it goes through the story again and again, tells each batch on standard output, and waits to be killed.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from indexer.schema import StoredPosition
from indexer.write.lance import LanceWriter
from tests.support.fixtures.text_rows import DIMENSION, generation_in, story


class FatalCommits:
    """Stands where the writer says that it commits; the commit with the fatal number is never made."""

    def __init__(self, fatal: int) -> None:
        self._fatal = fatal
        self._made = 0

    @contextmanager
    def committing(self, _table: str) -> Iterator[None]:
        self._made += 1
        if self._made == self._fatal:
            os.kill(os.getpid(), signal.SIGKILL)
        yield


def main(folder: Path, commit: int) -> None:
    writer = LanceWriter.open(generation_in(folder), DIMENSION)
    first, second, _ = story()
    if commit:
        writer.replace(first)
        writer._maintainer = FatalCommits(commit)
        writer.replace(second)
        writer.store_positions({0: StoredPosition(19, 19)})
        return
    for number in count():
        writer.replace(story()[number % 3])
        writer.store_positions({0: StoredPosition(number, number)})
        print(number, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
