"""A worker that dies: applies the story from where the store says, snapshots after the third batch, and is killed.

`python -m tests.integration.graph_store.crashing_writer FOLDER POINT`, POINT one of POINTS. With `disk full` it is not
killed: no file may grow any more from the fourth batch on, and it ends by itself.
"""

import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from indexer.errors import StoreInDoubt
from indexer.generations import Generation
from indexer.write import graph_snapshots, kuzu, kuzu_compaction
from indexer.write.kuzu import GraphWriter
from indexer.write.kuzu_database import GraphDatabase
from tests.support.fixtures.graph import generation_in, story

SNAPSHOT_AFTER = 2
POINTS = (
    "deleted, not copied",
    "not committed",
    "just committed",
    "snapshot not copied",
    "snapshot not exported",
    "snapshot without manifest",
    "snapshot not renamed",
    "compaction half loaded",
    "compacted, not put in place",
)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def dies_in_batch(writer: GraphWriter, point: str) -> None:
    run = writer._database.run

    def watched(cypher: str, **parameters: object) -> Any:
        if (point, cypher) == ("not committed", "COMMIT"):
            die()
        if point == "deleted, not copied" and cypher.startswith("COPY"):
            run("COMMIT")
            die()
        result = run(cypher, **parameters)
        if (point, cypher) == ("just committed", "COMMIT"):
            die()
        return result

    writer._database.run = watched  # type: ignore[method-assign]


def dies_in_snapshot(writer: GraphWriter, point: str) -> None:
    if point == "snapshot not copied":
        kuzu.copy_graph = lambda *_: die()  # type: ignore[assignment]
    elif point == "snapshot not exported":
        graph_snapshots.export_graph = lambda *_: die()  # type: ignore[assignment]
    elif point == "snapshot without manifest":
        graph_snapshots.replace_file = lambda *_: die()
    elif point == "snapshot not renamed":
        Path.rename = lambda *_: die()  # type: ignore[assignment, method-assign]
    elif point == "compaction half loaded":
        kuzu_compaction.MAX_SWELLING = 0.0
        copy_in = kuzu_compaction.GraphDatabase.copy_in

        def dies_at_edges(database: GraphDatabase, table: str, rows: Any) -> None:
            if table == "MENTIONS":
                die()
            copy_in(database, table, rows)

        kuzu_compaction.GraphDatabase.copy_in = dies_at_edges  # type: ignore[method-assign]
    elif point == "compacted, not put in place":
        kuzu_compaction.MAX_SWELLING = 0.0
        kuzu.replace_database = lambda *_: die()


def meets_a_full_disk(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def main(folder: Path, point: str) -> None:
    generation = generation_in(folder)
    writer = GraphWriter.open(generation)
    try:
        tell(writer, generation, point)
    except StoreInDoubt as error:
        print("in doubt:", error)
    writer.close()


def tell(writer: GraphWriter, generation: Generation, point: str) -> None:
    for position, batch in enumerate(story()):
        if position <= writer.position():
            continue
        if position == SNAPSHOT_AFTER + 1:
            if point == "disk full":
                meets_a_full_disk(generation.graph_path.stat().st_size)
            dies_in_batch(writer, point)
        writer.apply(batch, position)
        if position == SNAPSHOT_AFTER:
            writer.snapshot()
        if position == SNAPSHOT_AFTER + 1:
            dies_in_snapshot(writer, point)
            writer.snapshot()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
