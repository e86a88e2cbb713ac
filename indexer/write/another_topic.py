"""A generation that continues with an empty contributions topic: restored from a backup, or whose own topic is gone."""

import shutil

import msgspec

from indexer.generation_folders import Generation, replace_file
from indexer.graph.snapshots import published_snapshots
from indexer.read.arrow_folders import MANIFEST
from indexer.write.lance_writer import forget_marks, mark_of_tables


def begin_another_topic(generation: Generation) -> None:
    """Set tables and graph to before the first offset of the topic. Where the tables have more than the newest
    snapshot of the graph, the worker makes that again from the documents topic.

    May be interrupted anywhere, and is then done again.
    """
    generation.snapshots_dir.mkdir(parents=True, exist_ok=True)
    published = published_snapshots(generation.snapshots_dir)
    in_graph = published[0].graph_position if published else -1
    if not generation.incomplete_graph_dir.exists() and (
        not published or mark_of_tables(generation.lance_dir) > in_graph
    ):
        copy = generation.incomplete_graph_dir.with_suffix(".part")
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(generation.snapshots_dir, copy)
        copy.rename(generation.incomplete_graph_dir)
    for folder in (generation.snapshots_dir, generation.incomplete_graph_dir):
        for snapshot in published_snapshots(folder):
            own = msgspec.structs.replace(snapshot, graph_position=-1).seal()
            replace_file(folder / snapshot.name / MANIFEST, msgspec.json.encode(own))
    forget_marks(generation.lance_dir)
    generation.restored_path.touch()
