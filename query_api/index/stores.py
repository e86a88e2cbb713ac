"""Opening what searches read from disk: the text tables, the graph's snapshot files, and what is damaged of them."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from indexer.generations import Generation
from indexer.graph_schema import SCHEMA_VERSION
from indexer.integrity.files import Damage, is_in_tables
from indexer.read.kuzu import published_snapshots, read_graph
from indexer.read.lance import INDEX_TABLES
from indexer.verify import damage_of
from query_api.index.graph.view import GraphView
from query_api.index.snapshot import Snapshot
from query_api.index.text.snapshot import TextReader


class GraphFile(NamedTuple):
    """A snapshot file of the graph: its name in the generation's snapshot folder, the position it holds, and its
    checksum, empty where none was recorded."""

    name: str
    position: int
    checksum: str = ""


class Stores:
    """The stores of a data directory, opened to read. Calls may block for seconds: make them in a thread."""

    def __init__(self, resident_text_bytes: int, documents_topic: str) -> None:
        """Passages' texts are kept in memory up to `resident_text_bytes`; `documents_topic` is where they came from."""
        self._resident_text_bytes = resident_text_bytes
        self._documents_topic = documents_topic

    def open_tables(self, generation: Generation) -> TextReader:
        """Raises FileNotFoundError while the worker has not made them, DamagedStore where they are not what was
        written."""
        return TextReader.open(generation, max_text_bytes=self._resident_text_bytes)

    def newest_graph_file(self, generation: Generation, damaged: Collection[str] = ()) -> GraphFile | None:
        """The newest whose name is not among the `damaged`; None where there is no other."""
        for file in published_snapshots(generation.snapshots_dir):
            if file.schema == SCHEMA_VERSION and file.name not in damaged:
                return GraphFile(file.name, file.graph_position, file.checksum)
        return None

    def build_graph(self, generation: Generation, file: GraphFile | None) -> GraphView:
        """The view of a snapshot file; the empty one for None. Raises DamagedStore when it is not what was written."""
        if file is None:
            return GraphView.empty()
        return GraphView.build(read_graph(generation.snapshots_dir / file.name, file.checksum), file.position)

    def damage_of(self, generation: Generation) -> Iterator[list[Damage]]:
        """All that is not what was written, found step by step; each step reads files."""
        return damage_of(generation)

    def is_in_index(self, damage: Damage) -> bool:
        """Whether it is in a table that searches read."""
        return is_in_tables(damage, INDEX_TABLES)

    def snapshot(self, generation: Generation, reader: TextReader, graph: GraphView) -> Snapshot:
        """Text and graph as they are now. Costs nothing."""
        text = reader.snapshot()
        return Snapshot(generation.name, text, graph, self._documents_topic, text.in_memory)
