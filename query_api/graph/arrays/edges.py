"""Edges of a segment by their sources and by their targets. Properties of edge i stand at place i of arrays beside it.

What is asked for is told in rows: the index into what was asked, the number of the edge, and its other end.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from query_api.graph.arrays.packed import Ascending, Packed, Positions
from query_api.graph.arrays.rows import Sorting, entries_between, entries_of, laid_out

Keys = NDArray[np.uint64]


class Reached(NamedTuple):
    """Columns of equal length: index into what was asked for, edge number, number of the node at the other end."""

    asked: Positions
    edges: Positions
    others: Positions


NOTHING = Reached(*(np.zeros(0, dtype=np.int64) for _ in Reached._fields))


@dataclass(frozen=True, slots=True)
class TwoWay:
    """Edges sorted by source: `targets[pointers[s]:pointers[s + 1]]` of source s, and their order by target."""

    pointers: Ascending
    targets: Packed
    by_target: Sorting

    @classmethod
    def build(cls, sources: Positions, targets: Positions, n_sources: int) -> Self:
        """`sources` ascending."""
        return cls(Ascending.pointers(sources, n_sources), Packed(targets), Sorting(targets.astype(np.int32)))

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
        if not len(self) or not len(targets):
            return NOTHING
        which, places = laid_out(*self.by_target.spans(self.targets.at, targets))
        edges = self.by_target.at(places)
        return Reached(which, edges, self.pointers.rows_of(edges))

    def ends(self) -> tuple[Positions, Positions]:
        """The source and the target of every edge."""
        return every_row(self.pointers), self.targets.all()


@dataclass(frozen=True, slots=True)
class Naming:
    """Edges from chunks to entities, where entities are numbered as the chunks first name them.

    Most names stand in one chunk only. So the edges that name an entity for the first time are nowhere written: chunk c
    is the first to name the entities `first[c]` to `first[c + 1]`. The others are, `again[further[c]:further[c + 1]]`.
    A chunk's edges are its further ones, then its first ones; all edges are numbered in that order.
    """

    first: Ascending
    further: Ascending
    again: Packed
    by_target: Sorting

    @classmethod
    def build(cls, sources: Positions, targets: Positions, is_first: NDArray[np.bool_], n_sources: int) -> Self:
        """Edges in the order of their numbers, `is_first` as `in_order` tells."""
        again = targets[~is_first]
        return cls(
            Ascending.pointers(sources[is_first], n_sources),
            Ascending.pointers(sources[~is_first], n_sources),
            Packed(again),
            Sorting(again.astype(np.int32)),
        )

    def __len__(self) -> int:
        return self.n_first + len(self.again)

    @property
    def n_first(self) -> int:
        """The number of entities that chunks name: they have the numbers below."""
        return self.first[len(self.first) - 1]

    @property
    def nbytes(self) -> int:
        return self.first.nbytes + self.further.nbytes + self.again.nbytes + self.by_target.nbytes

    def leaving(self, chunks: NDArray[np.integer]) -> Reached:
        """What these chunks name, chunk after chunk."""
        further, n_further = self.further.spans(chunks)
        first, n_first = self.first.spans(chunks)
        which, places = laid_out(np.zeros_like(first), n_further + n_first)
        edges = places + (further + first)[which]
        entities = places + (first - n_further)[which]
        again = np.flatnonzero(places < n_further[which])
        entities[again] = self.again.at(places[again] + further[which[again]])
        return Reached(which, edges, entities)

    def entering(self, entities: NDArray[np.integer]) -> Reached:
        """Where these entities are named, entity after entity, each one's by chunk."""
        if not len(entities) or not len(self):
            return NOTHING
        named = entities < self.n_first
        if len(self.again):
            begins, counts = self.by_target.spans(self.again.at, entities)
        else:
            begins = counts = np.zeros(len(entities), dtype=np.int64)
        which, places = laid_out(np.zeros_like(begins), counts + named)
        is_first = places == 0  # of an entity that no chunk names there is nothing at all
        edges = np.empty(len(which), dtype=np.int64)
        chunks = np.empty(len(which), dtype=np.int64)
        entity = entities[which[is_first]]
        chunk = self.first.rows_of(entity)
        edges[is_first], chunks[is_first] = entity + self.further.at(chunk + 1), chunk
        if len(which) > len(entity):
            again = self.by_target.at((begins[which] + places - 1)[~is_first])
            chunk = self.further.rows_of(again)
            edges[~is_first], chunks[~is_first] = again + self.first.at(chunk), chunk
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
    by_chunk = np.lexsort((entities, chunks))
    places = np.full(n_entities, len(by_chunk), dtype=np.int64)
    places[entities[by_chunk][::-1]] = np.arange(len(by_chunk))[::-1]  # the last to be written is the first
    order = np.argsort(places, kind="stable")
    numbers = np.empty(n_entities, dtype=np.int64)
    numbers[order] = np.arange(n_entities)
    is_first = np.zeros(len(by_chunk), dtype=bool)
    is_first[places[places < len(by_chunk)]] = True
    further_first = np.lexsort((is_first, chunks[by_chunk]))
    return NamingOrder(by_chunk[further_first], is_first[further_first], numbers)


@dataclass(frozen=True, slots=True)
class Links:
    """Edges from chunks (ascending) to documents by key, in this segment, in another, or not there yet."""

    sources: Ascending
    targets: Keys
    by_target: Sorting

    @classmethod
    def build(cls, sources: Positions, targets: Keys) -> Self:
        """`sources` ascending."""
        return cls(Ascending(sources), targets, Sorting(targets))

    @property
    def nbytes(self) -> int:
        return self.sources.nbytes + self.targets.nbytes + self.by_target.nbytes

    def leaving(self, chunks: NDArray[np.integer]) -> tuple[Positions, Positions]:
        """(index into `chunks`, edge number) of their links."""
        return entries_between(self.sources, chunks)

    def entering(self, keys: Keys) -> Reached:
        """The links to these documents, and the chunks they begin in."""
        if not len(self.targets) or not len(keys):
            return NOTHING
        which, places = laid_out(*self.by_target.spans(self._targets_at, keys))
        edges = self.by_target.at(places)
        return Reached(which, edges, self.sources.at(edges))

    def _targets_at(self, edges: Positions) -> NDArray[Any]:
        return self.targets[edges]


def every_row(pointers: Ascending) -> Positions:
    """The row of every entry."""
    return np.repeat(np.arange(len(pointers) - 1, dtype=np.int64), np.diff(pointers.all()))
