"""The stores of a generation as the worker has them open, each with its thread."""

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Self

from indexer.generations import Generation
from indexer.graph.store import GraphStore
from indexer.schema import StoredPosition
from indexer.write.lance import LanceWriter
from schemas.ids import DocumentKey
from streams.runtime.store_thread import StoreThread


@dataclass(frozen=True)
class OpenStores:
    """`reached` and `graph_position` are how far the stores were when they were opened."""

    vectors: LanceWriter
    lance: StoreThread
    graph: GraphStore
    graph_thread: StoreThread
    reached: Mapping[int, StoredPosition]
    graph_position: int

    @classmethod
    async def open(
        cls,
        generation: Generation,
        dimension: int,
        kept_snapshots: int,
        lance: StoreThread,
        graph_thread: StoreThread,
        cleanup: AsyncExitStack,
    ) -> Self:
        """The tables are closed by `cleanup`, also where the rest cannot be opened."""
        vectors = await lance.call(LanceWriter.open, generation, dimension)
        cleanup.push_async_callback(lance.close, vectors.close)
        graph = await graph_thread.call(GraphStore.open, generation, kept_snapshots)
        return cls(vectors, lance, graph, graph_thread, await lance.call(vectors.positions), graph.position())

    async def with_positions(self) -> Self:
        """The same, with how far the stores are now."""
        reached = await self.lance.call(self.vectors.positions)
        return replace(self, reached=reached, graph_position=self.graph.position())

    async def graph_is_current(self) -> bool:
        """Whether the graph has what the tables have."""
        reached = await self.lance.run(self.vectors.positions)
        newest = max((stored.graph_offset for stored in reached.values()), default=-1)
        return await self.graph_thread.run(self.graph.position) >= newest

    async def differ(self, keys: Sequence[DocumentKey]) -> list[DocumentKey]:
        """The documents that the graph has in another revision than the tables, or with other numbers of chunks. To be
        asked when the graph is current."""
        rows = await self.lance.run(self.vectors.stored_documents, keys)
        in_graph = await self.graph_thread.run(self.graph.documents, keys)
        in_text = {key: (row.revision, row.chunks) for key, row in rows.items() if row.live}
        return [key for key in keys if in_graph.get(key) != in_text.get(key)]
