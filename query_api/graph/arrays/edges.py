"""Edges of a segment by their sources and by their targets. Properties of edge i stand at place i of arrays beside it.

What is asked for is told in rows: the index into what was asked, the number of the edge, and its other end.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from query_api.graph.arrays.packed import Ascending, Packed, Positions, Steep, row_pointers
from query_api.graph.arrays.rows import Entering, entries_between, entries_of, laid_out
from query_api.graph.columns import Keys


class Reached(NamedTuple):
    """Columns of equal length: index into what was asked for, edge number, number of the node at the other end."""

    asked: Positions
    edges: Positions
    others: Positions


@dataclass(frozen=True, slots=True)
class TwoWay:
    """Edges sorted by source: `targets[pointers[s]:pointers[s + 1]]` of source s, and their order by target."""

    pointers: Ascending
    targets: Packed
    by_target: Entering

    @classmethod
    def build(cls, sources: Positions, targets: Positions, n_sources: int, n_targets: int) -> Self:
        """`sources` ascending."""
        return cls(Ascending.pointers(sources, n_sources), Packed(targets), Entering.of(targets, n_targets))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def nbytes(self) -> int:
        return self.pointers.nbytes + self.targets.nbytes + self.by_target.nbytes

    def leaving(self, sources: NDArray[np.integer]) -> Reached:
        """The edges that begin there, source after source."""
        which, edges = entries_of(self.pointers, sources)
        return Reached(which, edges, self.targets.at(edges))

    def entering(self, targets: NDArray[np.integer]) -> Reached:
        """The edges that end there, target after target, each one's by source."""
        which, edges = self.by_target.entries(targets)
        return Reached(which, edges, self.pointers.rows_of(edges))

    def ends(self) -> tuple[Positions, Positions]:
        """The source and the target of every edge."""
        return every_row(self.pointers), self.targets.all()


@dataclass(frozen=True, slots=True)
class Naming:
    """Edges from chunks to entities, where entities are numbered as the chunks first name them.

    Most names stand in one chunk only. So the edges that name an entity for the first time are nowhere written: chunk c
    is the first to name the entities `first[c]` to `first[c + 1]`. The others are, `again[further[c]:further[c + 1]]`,
    and the other way about: entity e is named again in the chunks `chunks[later[e]:later[e + 1]]`. A chunk's edges are
    its further ones, then its first ones; all edges are numbered in that order.
    """

    first: Ascending
    further: Ascending
    again: Packed
    later: Steep
    chunks: Packed

    @classmethod
    def build(
        cls, sources: Positions, targets: Positions, is_first: NDArray[np.bool_], n_sources: int, n_targets: int
    ) -> Self:
        """Edges in the order of their numbers, `is_first` as `naming_order` tells."""
        again, chunks = targets[~is_first], sources[~is_first]
        by_target = np.argsort(again, kind="stable")
        return cls(
            first=Ascending.pointers(sources[is_first], n_sources),
            further=Ascending.pointers(chunks, n_sources),
            again=Packed(again),
            later=Steep(row_pointers(again, n_targets)),
            chunks=Packed(chunks[by_target]),
        )

    def __len__(self) -> int:
        return self.n_first + len(self.again)

    @property
    def n_first(self) -> int:
        """The number of entities that chunks name: they have the numbers below."""
        return self.first[len(self.first) - 1]

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self.__slots__)

    def leaving(self, chunks: NDArray[np.integer]) -> Reached:
        """What these chunks name, chunk after chunk."""
        further, n_further = self.further.spans(chunks)
        first, n_first = self.first.spans(chunks)
        which, edges = laid_out(further + first, n_further + n_first)
        of_first = edges - (further + n_further)[which]  # counted from the first entity that was new there
        entities = of_first.copy()
        again = np.flatnonzero(of_first < first[which])
        entities[again] = self.again.at(edges[again] - first[which[again]])
        return Reached(which, edges, entities)

    def naming(self, entities: NDArray[np.integer]) -> tuple[Positions, Positions]:
        """(index into `entities`, chunk) where they are named, entity after entity, each one's chunks ascending."""
        begins, counts = self.later.spans(entities)
        named = entities < self.n_first
        which, places = laid_out(begins - named, counts + named)  # the first stands before those that come later
        is_first = places < begins[which]
        chunks = self.chunks.at(places + is_first) if len(self.chunks) else places
        chunks[is_first] = self.first.rows_of(entities[named])
        return which, chunks

    def entering(self, entities: NDArray[np.integer]) -> Reached:
        """Where these entities are named, with the numbers of the edges: `naming` and a look through the chunks."""
        which, chunks = self.naming(entities)
        wanted = entities[which]
        further, n_further = self.further.spans(chunks)
        first = self.first.at(chunks)
        of_edge, places = laid_out(further, n_further)
        fitting = np.flatnonzero(self.again.at(places) == wanted[of_edge])
        edges = wanted + further + n_further  # of one that is first there
        edges[of_edge[fitting]] = places[fitting] + first[of_edge[fitting]]
        return Reached(which, edges, chunks)

    def ends(self) -> tuple[Positions, Positions]:
        """The chunk and the entity of every edge."""
        sources, _, targets = self.leaving(np.arange(len(self.first) - 1))
        return sources, targets


class NamingOrder(NamedTuple):
    """How entities are numbered by who names them first, and edges in the order that `Naming` wants.

    `edges` are the rows of the edges in their order, `is_first` of each, in that order, whether it is an entity's
    first; `numbers` the new number of each entity.
    """

    edges: Positions
    is_first: NDArray[np.bool_]
    numbers: Positions


def naming_order(chunks: Positions, entities: Positions, n_entities: int) -> NamingOrder:
    """Of edges in any order. Entities that no chunk names come last; else the order is as it was."""
    by_chunk = np.argsort(chunks * n_entities + entities)
    of_chunk = chunks[by_chunk]
    places = np.full(n_entities, len(by_chunk), dtype=np.int64)
    places[entities[by_chunk][::-1]] = np.arange(len(by_chunk))[::-1]  # the last to be written is the first
    named = places < len(by_chunk)
    is_first = np.zeros(len(by_chunk), dtype=bool)
    is_first[places[named]] = True
    numbers = np.empty(n_entities, dtype=np.int64)
    numbers[named] = np.cumsum(is_first)[places[named]] - 1
    numbers[~named] = np.arange(np.count_nonzero(named), n_entities)
    n_chunks = int(of_chunk[-1]) + 1 if len(of_chunk) else 0
    further = row_pointers(of_chunk[~is_first], n_chunks)
    standing = np.arange(np.count_nonzero(is_first)) + further[of_chunk[is_first] + 1]
    stands_first = np.zeros_like(is_first)
    stands_first[standing] = True
    edges = np.empty_like(by_chunk)
    edges[standing], edges[~stands_first] = by_chunk[is_first], by_chunk[~is_first]
    return NamingOrder(edges, stands_first, numbers)


@dataclass(frozen=True, slots=True)
class Links:
    """Edges from chunks (ascending) to documents by key, in this segment, in another, or not there yet."""

    sources: Ascending
    documents: Keys  # ascending, each once
    targets: Packed
    by_target: Entering

    @classmethod
    def build(cls, sources: Positions, targets: Keys) -> Self:
        """`sources` ascending."""
        documents, numbers = np.unique(targets, return_inverse=True)
        return cls(Ascending(sources), documents, Packed(numbers), Entering.of(numbers, len(documents)))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self.__slots__)

    def leaving(self, chunks: NDArray[np.integer]) -> tuple[Positions, Positions, Keys]:
        """(index into `chunks`, edge number, key of the document) of their links."""
        which, edges = entries_between(self.sources, chunks)
        return which, edges, self.keys_of(edges)

    def keys_of(self, edges: Positions) -> Keys:
        """What these edges lead to."""
        return self.documents[self.targets.at(edges)]

    def entering(self, keys: Keys) -> Reached:
        """The links to these documents, and the chunks they begin in."""
        places = self.documents.searchsorted(keys)
        known = np.flatnonzero(places < len(self.documents))
        known = known[self.documents[places[known]] == keys[known]]
        which, edges = self.by_target.entries(places[known])
        return Reached(known[which], edges, self.sources.at(edges))


def every_row(pointers: Ascending) -> Positions:
    """The row of every entry."""
    return np.repeat(np.arange(len(pointers) - 1, dtype=np.int64), np.diff(pointers.all()))
