"""One consistent state of both stores for a whole search, and what a search needs to read from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.read.resident.scope import Scope
from query_api.index.graph.view import GraphView
from schemas.curation import LinkingChoice
from schemas.hits import SnapshotInfo
from schemas.ids import DocumentKey, format_positions

if TYPE_CHECKING:
    from indexer.read.lance import VectorSnapshot
    from indexer.read.resident.documents import DocumentIndex
    from indexer.read.resident.words import ComparedRows
    from indexer.read.rows import ChunkRow, ChunkSpan, FoundChunk, FoundPassage, PassageRow
    from indexer.schema import DocumentRow


class Reached(Protocol):
    """How far the log had been applied in one partition."""

    @property
    def offset(self) -> int: ...


class TextSnapshot(Protocol):
    """One state of the text stores. Thread-safe; every call sees the same state; nothing returned is ever stale in it.

    A search calls each at most a few times, from threads. Ids that are not there are left out of the answers.
    Raises TransientStoreError when the store cannot be read just now.
    """

    @property
    def table_versions(self) -> Mapping[str, int]: ...
    @property
    def positions(self) -> Mapping[int, Reached]: ...
    @property
    def opened_at(self) -> datetime: ...
    @property
    def fields(self) -> "DocumentIndex":
        """What the live documents say of themselves: filters are resolved by it."""
        ...

    def vector_search(self, vector: NDArray[np.float32], limit: int, scope: Scope) -> Sequence["FoundChunk"]:
        """The nearest live chunks of the scope, best first, ties by id. `vector` is (dim,) float32, L2-normalised."""
        ...

    def keyword_search(self, query: str, limit: int, scope: Scope) -> Sequence["FoundPassage"]:
        """The live passages of the scope with the highest BM25 over title, headings, text; best first, ties by id."""
        ...

    def compare_words(self, query: str, passage_ids: Sequence[str], collection: str | None) -> "ComparedRows":
        """The BM25 of these passages over the collection, which of the question's terms each holds, the terms' idf."""
        ...

    def passages_holding(self, names: Sequence[str], collection: str | None) -> Sequence[int]:
        """For each name, how many passages of the collection hold all its words; 0 for one of stop words only."""
        ...

    def bm25_of(
        self, queries: Sequence[str], passage_ids: Sequence[str], collection: str | None
    ) -> Sequence[NDArray[np.float64]]:
        """For each query (n_passages,) the BM25 of these passages, as `compare_words` gives it."""
        ...

    def compare_vectors(self, vector: NDArray[np.float32], passage_ids: Sequence[str]) -> NDArray[np.float64]:
        """(n_passages,) the cosine of each passage's nearest chunk; NaN where the store cannot tell at once."""
        ...

    def revisions(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, str]:
        """The revisions of the documents that are live. Costs nothing."""
        ...

    def leads(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, str]:
        """The first passage of each document that has any. Costs nothing."""
        ...

    def documents(self, keys: Sequence[DocumentKey]) -> Mapping[DocumentKey, "DocumentRow"]: ...
    def passages(self, ids: Sequence[str]) -> Mapping[str, "PassageRow"]: ...
    def chunks_of_passages(self, passage_ids: Sequence[str]) -> Mapping[str, Sequence["ChunkRow"]]: ...
    def chunks_in(self, spans: Sequence["ChunkSpan"]) -> Mapping[DocumentKey, Sequence["ChunkRow"]]:
        """The chunks of these spans by document, each once, in document order."""
        ...

    def vectors(self, chunk_ids: Sequence[str]) -> Mapping[str, NDArray[np.float32]]:
        """The vectors of chunks, each (dim,) float32, L2-normalised. No answer of the service holds any."""
        ...


class QueryEncoder(Protocol):
    """Turns a question into a vector."""

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1. Raises EncoderFailure when there is none just now."""
        ...


@dataclass(frozen=True)
class Snapshot:
    """Both stores at one moment. A passage that is newer in `text` than in `graph` is found by its text only.

    `in_memory` where no search that shows passages reads a table. `linking` is what collections chose, by name.
    """

    generation: str
    text: TextSnapshot
    graph: GraphView
    documents_topic: str
    in_memory: bool = False
    linking: Mapping[str, LinkingChoice] = field(default_factory=dict)

    @property
    def reached(self) -> dict[int, int]:
        """By partition, the offset up to which the log had been applied; -1 for nothing yet."""
        return {partition: reached.offset for partition, reached in self.text.positions.items()}

    def info(self) -> SnapshotInfo:
        return SnapshotInfo(
            generation=self.generation,
            graph_position=self.graph.position,
            table_versions=dict(self.text.table_versions),
            positions=format_positions(
                {partition: offset for partition, offset in self.reached.items() if offset >= 0}
            ),
            as_of=self.text.opened_at.isoformat(),
        )


@dataclass(frozen=True)
class ServedSnapshot(Snapshot):
    """One that the service opened: `tables` hold more than a search reads."""

    tables: "VectorSnapshot" = field(kw_only=True)


class Candidate(NamedTuple):
    """A passage that a channel found. `chunk_id` is the chunk it was found by, where the channel looks at chunks."""

    passage_id: str
    score: float
    key: DocumentKey
    chunk_id: str | None = None
