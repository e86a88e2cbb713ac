"""What a graph view answers: edges in columns of equal length, statements, neighbourhoods."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.identifiers import Keys

Numbers = NDArray[np.int64]


class MentionEdges(NamedTuple):
    """Mentions, one a row; `query_index` is the index into the query, `chunk` mentions `entity`."""

    query_index: Numbers
    chunk: Numbers
    passage: Numbers
    entity: Keys


class About(NamedTuple):
    """Which document is about which entity; `weight` is 1 for a whole title, less for an alias."""

    query_index: Numbers
    document: Numbers
    entity: Keys
    weight: NDArray[np.float32]


class Links(NamedTuple):
    """Links from chunks to documents that are there."""

    query_index: Numbers
    chunk: Numbers
    passage: Numbers
    document: Numbers
    weight: NDArray[np.float32]


class ChunkEdges(NamedTuple):
    """Edges between chunks of one document; `kind` indexes CHUNK_EDGE_KINDS."""

    query_index: Numbers
    chunk: Numbers
    other: Numbers
    kind: NDArray[np.uint8]
    weight: NDArray[np.float32]


class Role(NamedTuple):
    """An entity in a statement, as its document writes it."""

    name: str
    entity: int
    surface: str


class Statement(NamedTuple):
    """A fact with its roles, anchored at the chunk that states it. `sentence` is -1 where it is in none."""

    query_index: int
    key: int
    chunk: int
    passage: int
    predicate: str
    confidence: float
    sentence: int
    extractor: str
    roles: tuple[Role, ...]


class Neighbourhood(NamedTuple):
    """An entity's normalised name; in how many passages it is mentioned; the documents that are about it, each with
    its alias weight; and the (chunk, passage) of each mention, where requested."""

    name: str
    frequency: int
    about: Sequence[tuple[int, float]]
    mentions: Sequence[tuple[int, int]] = ()


class Memory(NamedTuple):
    """What a view holds. `bytes` counts every array, `edges` each edge once."""

    nodes: int
    edges: int
    bytes: int
    bytes_per_edge: float


_DTYPES = {"entity": np.uint64, "weight": np.float32, "kind": np.uint8}


def joined(found: Sequence[tuple[NDArray[Any], ...]], fields: tuple[str, ...]) -> list[NDArray[Any]]:
    """The columns of all, one after the other."""
    if not found:
        return [np.empty(0, dtype=_DTYPES.get(field, np.int64)) for field in fields]
    if len(found) == 1:
        return list(found[0])
    return [np.concatenate(columns) for columns in zip(*found, strict=True)]


def rows_of(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """The rows of columns of equal length, as plain numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)
