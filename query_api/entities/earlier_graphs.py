"""The graph as it was: kept snapshots of the generation that is served, read when somebody asks for them."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cachetools import TTLCache

from indexer.generation_folders import Generation
from indexer.graph.snapshots import GraphSnapshot, published_snapshots, read_graph
from indexer.graph.tables import GraphTables
from indexer.schema import DocumentRow
from query_api.entities.catalogue import EntityCatalogues
from query_api.index.graph.view import GraphView
from schemas.clock import rfc3339, since_ms
from schemas.ids import DocumentKey

MOST_HELD = 2  # each as large in memory as the graph that is served
HELD_SECONDS = 60.0

DocumentReader = Callable[[Iterable[DocumentKey]], Mapping[DocumentKey, DocumentRow]]


@dataclass(frozen=True)
class Moment:
    """A time in milliseconds since 1970, positions of the documents topic, or one of the contributions topic."""

    at_ms: int | None = None
    position: int | None = None
    positions: Mapping[int, int] | None = None

    @classmethod
    def of(cls, text: str, now_ms: int) -> "Moment":
        """Of digits a position of the contributions topic, else a time. Raises ValueError with a sentence."""
        if text.strip().isdecimal():
            return cls(position=int(text))
        return cls(at_ms=since_ms(text, now_ms))

    def includes(self, snapshot: GraphSnapshot) -> bool:
        """Whether the snapshot holds nothing that came later."""
        if self.positions is not None:
            return all(snapshot.positions.get(at, -1) <= offset for at, offset in self.positions.items())
        if self.position is not None:
            return snapshot.graph_position <= self.position
        return self.at_ms is None or snapshot.made_at_ms <= self.at_ms


class NotKept(LookupError):
    """No snapshot is as old; `oldest` is the graph position of the oldest that is kept and when it was made, None
    before the first."""

    def __init__(self, kept: Sequence[GraphSnapshot]) -> None:
        """`kept`, the newest first."""
        self.oldest: dict[str, int | str] | None = None
        oldest = "there is none yet"
        if kept:
            position, made_at = kept[-1].graph_position, rfc3339(kept[-1].made_at_ms)
            self.oldest = {"graph_position": position, "made_at": made_at}
            oldest = f"the oldest is of {made_at}, at graph position {position}"
        super().__init__(
            f"No snapshot of the graph from then is kept: {oldest}. THALWEG_WORKER__KEPT_SNAPSHOTS says how many are."
        )


@dataclass(frozen=True)
class EarlierGraph:
    """The graph of one kept snapshot; `revisions` are those that its documents had."""

    snapshot: GraphSnapshot
    view: GraphView
    revisions: Mapping[DocumentKey, str]
    catalogues: EntityCatalogues = field(default_factory=EntityCatalogues)

    @property
    def made_at(self) -> str:
        return rfc3339(self.snapshot.made_at_ms)

    def records(self, read: DocumentReader) -> DocumentReader:
        """Of the documents' present rows those that are of the revision here: of the others, the record that this was
        made from is not known any more."""

        def of_this_revision(keys: Iterable[DocumentKey]) -> Mapping[DocumentKey, DocumentRow]:
            return {key: row for key, row in read(keys).items() if row.revision == self.revisions.get(key, "")}

        return of_this_revision


class EarlierGraphs:
    """Reads kept snapshots, and holds the last few for a moment. Thread-safe; a call may take seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: TTLCache[tuple[str, str], EarlierGraph] = TTLCache(MOST_HELD, HELD_SECONDS)

    def at(self, generation: Generation, moment: Moment) -> EarlierGraph:
        """The newest kept snapshot that holds nothing later. Raises NotKept, and DamagedStore for a damaged one."""
        with self._lock:
            kept = published_snapshots(generation.snapshots_dir)
            chosen = next(filter(moment.includes, kept), None)
            if chosen is None:
                raise NotKept(kept)
            name = generation.name, chosen.name
            if name not in self._read:
                try:
                    self._read[name] = _read(generation, chosen)
                except FileNotFoundError:  # newer ones have just replaced it
                    raise NotKept(published_snapshots(generation.snapshots_dir)) from None
            return self._read[name]

    def prune(self) -> None:
        """Let go of what was held for long enough."""
        with self._lock:
            self._read.expire()


def _read(generation: Generation, snapshot: GraphSnapshot) -> EarlierGraph:
    tables = read_graph(generation.snapshots_dir, snapshot)
    return EarlierGraph(snapshot, GraphView.build(tables, snapshot.graph_position), _revisions(tables))


def _revisions(tables: GraphTables) -> dict[DocumentKey, str]:
    columns = (tables.documents[name].to_pylist() for name in ("collection", "document_id", "revision"))
    return {
        DocumentKey(collection, document): revision for collection, document, revision in zip(*columns, strict=True)
    }
