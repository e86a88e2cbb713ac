"""One consistent state of both stores for a whole search."""

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from indexer.read.rows import PassageRow
from query_api.index.community_view import CommunityView
from query_api.index.curation_follower import Curation
from query_api.index.graph.view import GraphView
from query_api.index.text.text_snapshot import TextSnapshot
from query_api.index.text.vectors import CosineSpread
from schemas.curation import LinkingChoice
from schemas.hits import SnapshotInfo
from schemas.ids import format_positions


class QueryEncoder(Protocol):
    """Turns a question into a vector. `background` are the cosines of texts that have nothing to do with each other."""

    @property
    def background(self) -> CosineSpread: ...

    def encode_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(n_texts, dimension) float32, each row of L2 norm 1. Raises EncoderFailure when there is none just now."""
        ...


@dataclass(frozen=True)
class Snapshot:
    """Both stores at one moment. A passage that is newer in `text` than in `graph` is found by its text only.

    `in_memory` where no search that shows passages reads a table. `linking` is what collections chose, by name, and
    `curation` what people say about their graphs. `communities` are the newest found, of an older graph perhaps.
    """

    generation: str
    text: TextSnapshot
    graph: GraphView
    documents_topic: str
    in_memory: bool = False
    linking: Mapping[str, LinkingChoice] = field(default_factory=dict)
    curation: Curation = field(default_factory=Curation)
    communities: CommunityView | None = None

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


class PassageReader:
    """The passages that one search has read, each read once. Thread-safe."""

    def __init__(self, text: TextSnapshot) -> None:
        self._text = text
        self._rows: dict[str, PassageRow | None] = {}
        self._lock = threading.Lock()

    def read(self, passage_ids: Iterable[str]) -> dict[str, PassageRow]:
        """The passages that are there, one call to the store for those not yet read. Raises TransientStoreError."""
        wanted = dict.fromkeys(passage_ids)
        with self._lock:
            unread = [identifier for identifier in wanted if identifier not in self._rows]
            if unread:
                found = self._text.passages(unread)
                self._rows.update((identifier, found.get(identifier)) for identifier in unread)
            rows = {identifier: self._rows[identifier] for identifier in wanted}
        return {identifier: row for identifier, row in rows.items() if row is not None}
