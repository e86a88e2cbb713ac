"""The door to what takes seconds to import: the stores' readers, the search engine, the model.

The service opens its port first and loads this afterwards, so that it can be asked how it is from its first second on.
"""

import importlib
import threading
from collections.abc import AsyncGenerator, Callable, Collection, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from indexer.generations import Generation
from query_api.settings import SearchBudgetSettings
from schemas.frames import Done, Meta, Stage
from schemas.hits import Hit
from schemas.search import SearchRequest
from schemas.settings import EmbeddingSettings

if TYPE_CHECKING:
    from indexer.embedding.encoder import PromptedEncoder
    from indexer.integrity.damage import Damage
    from indexer.read.lance import VectorReader, VectorSnapshot
    from query_api.index.graph.view import GraphView
    from query_api.index.snapshot import QueryEncoder, Snapshot
    from query_api.rerankers.served import ServedReranker

SearchPart = Meta | Stage | Hit | Done
PartsOf = Callable[[SearchRequest, str], AsyncGenerator[SearchPart, None]]
"""The parts of the answer to a request, for a retrieval id."""


def tables_of(snapshot: "Snapshot") -> "VectorSnapshot":
    """The text tables of a snapshot, with more than a search asks of them."""
    return cast("VectorSnapshot", snapshot.text)


class SearchUnanswered(Exception):
    """No channel could answer: the stores cannot be read just now. Trying again may help."""


class GraphFile(NamedTuple):
    """A snapshot file of the graph: its name in the generation's snapshot folder, the position it holds, and its
    checksum, empty where none was recorded."""

    name: str
    position: int
    checksum: str = ""


class Engine(Protocol):
    """What the service needs of it. All but `search` may block for seconds: call them in a thread."""

    def load_encoder(self, settings: EmbeddingSettings, data_dir: Path) -> "PromptedEncoder":
        """Raises IncompatibleGeneration when there is no such model, EncoderUnavailable when an endpoint has to be
        asked about its model and is away."""
        ...

    def open_tables(self, generation: Generation, resident_text_bytes: int) -> "VectorReader":
        """With passages' texts kept in memory up to so many bytes. Raises FileNotFoundError while the worker has not
        made them, DamagedStore where they are not what was written."""
        ...

    def newest_graph_file(self, generation: Generation, passed_over: Collection[str] = ()) -> GraphFile | None:
        """The newest whose name is none of those to be `passed_over`; None where there is no other."""
        ...

    def build_graph(self, generation: Generation, file: GraphFile | None) -> "GraphView":
        """The view of a snapshot file; the empty one for None. Raises DamagedStore when it is not what was written."""
        ...

    def damage_of(self, generation: Generation) -> "Iterator[list[Damage]]":
        """All that is not what was written, found step by step; each step reads files."""
        ...

    def is_in_index(self, damage: "Damage") -> bool:
        """Whether it is in a table that searches read."""
        ...

    def snapshot(
        self, generation: Generation, reader: "VectorReader", graph: "GraphView", documents_topic: str
    ) -> "Snapshot":
        """Text and graph as they are now, to be read as long as it takes."""
        ...

    def rerank_by(self, reranker: "ServedReranker") -> None:
        """Have this put the first hits of searches into another order, from now on."""
        ...

    def reranks(self, request: SearchRequest) -> bool:
        """Whether a search for this asks a re-ranker, be it loaded or not. Costs nothing."""
        ...

    def search(
        self,
        request: SearchRequest,
        retrieval_id: str,
        snapshot: "Snapshot",
        encoder: "QueryEncoder",
        executor: Executor,
        budgets: SearchBudgetSettings,
    ) -> AsyncGenerator[SearchPart, None]:
        """The parts of an answer, as each is final: Meta, Stages, Hits in rank order, Done.

        Closing the iterator stops the work. Raises SearchUnanswered, or TransientStoreError.
        """
        ...


def load_engine() -> Engine:
    """The real one. Takes seconds the first time."""
    return cast("Engine", importlib.import_module("query_api.retrieval.loading").LoadedEngine())


class LazyEngine:
    """An engine that is loaded at its first use, in the thread that uses it; others wait for that."""

    def __init__(self, load: Callable[[], Engine] = load_engine) -> None:
        self._load = load
        self._lock = threading.Lock()
        self._engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        with self._lock:
            if self._engine is None:
                self._engine = self._load()
            return self._engine
