"""Typed mentions of entities, in the segments of a view: each with a type, a confidence and a surface."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.index.graph.csr import entries_of
from query_api.index.graph.edges import Numbers
from query_api.index.graph.graph_segments import ViewSegment, ViewSegments
from query_api.index.graph.identifiers import Keys
from schemas.graph_delta import ENTITY_TYPES


class TypedMention(NamedTuple):
    """`entity` is a key; `query_index` the index into the query; `type` of ENTITY_TYPES."""

    query_index: int
    entity: int
    chunk: int
    passage: int
    document: int
    type: str
    confidence: float
    times: int
    surface: str


class TypedEntities(NamedTuple):
    """The entities of one segment that a live document mentions, with what speaks for their types and labels.

    `votes` is (n, number of ENTITY_TYPES): confidence times number of mentions. `surfaces` are the commonest, each
    `surface_counts` times; of equally common ones the first in the order of the alphabet.
    """

    keys: Keys
    collections: pa.Array
    names: pa.Array
    votes: NDArray[np.float64]
    mentions: Numbers
    surfaces: pa.Array
    surface_counts: Numbers


def typed_mentions_of(segments: ViewSegments, entities: Keys) -> Iterator[TypedMention]:
    """Where these entities are mentioned."""
    for part, rows, local in segments.with_entities(entities):
        which, edges, chunks = part.segment.typed.leaving(local)
        yield from _mentions(part, rows[which], edges, local[which], chunks)


def typed_mentions_in(segments: ViewSegments, chunks: Numbers) -> Iterator[TypedMention]:
    """The entities that these chunks mention."""
    for part, rows, local in segments.with_nodes(chunks, "chunks"):
        which, edges, entities = part.segment.typed.entering(local)
        yield from _mentions(part, rows[which], edges, entities, local[which])


def typed_mentions_in_passages(segments: ViewSegments, passages: Numbers) -> Iterator[TypedMention]:
    """The entities that these passages mention."""
    for part, rows, local in segments.with_nodes(passages, "passages"):
        at, chunks = entries_of(part.segment.passage_chunks, local)
        which, edges, entities = part.segment.typed.entering(chunks)
        yield from _mentions(part, rows[at[which]], edges, entities, chunks[which])


def _mentions(
    part: ViewSegment, query_index: Numbers, edges: Numbers, entities: Numbers, chunks: Numbers
) -> Iterator[TypedMention]:
    segment = part.segment
    passages = segment.passages_of(chunks)
    live = np.flatnonzero(part.live(passages))
    edges, passages = edges[live], passages[live]
    columns = (
        query_index[live].tolist(),
        segment.entity_keys[entities[live]].tolist(),
        (chunks[live] + part.chunks).tolist(),
        (passages + part.passages).tolist(),
        (segment.passage_documents[passages] + part.documents).tolist(),
        [ENTITY_TYPES[number] for number in segment.typed_types[edges].tolist()],
        segment.typed_confidences[edges].tolist(),
        segment.typed_counts[edges].tolist(),
        segment.typed_surfaces.of(edges),
    )
    for row in zip(*columns, strict=True):
        yield TypedMention(*row)


def typed_entities(part: ViewSegment) -> TypedEntities:
    """Those of a segment. Costs a pass over its mentions."""
    segment = part.segment
    entities, chunks = segment.typed.ends()
    live = np.flatnonzero(part.live(segment.passages_of(chunks)))
    entities, counts = entities[live], segment.typed_counts[live].astype(np.int64)
    rows, local = np.unique(entities, return_inverse=True)
    kinds = len(ENTITY_TYPES)
    weights = counts * segment.typed_confidences[live].astype(np.float64)
    votes = np.zeros((len(rows), kinds))
    np.add.at(votes, (local, segment.typed_types[live]), weights)
    surfaces, surface_counts = _commonest(local, segment.typed_surfaces.codes[live].astype(np.int64), counts, part)
    return TypedEntities(
        segment.entity_keys[rows],
        segment.entity_collections.texts(rows),
        segment.names.texts(rows),
        votes,
        np.bincount(local, counts, len(rows)).astype(np.int64),
        surfaces,
        surface_counts,
    )


def _commonest(local: Numbers, codes: Numbers, counts: Numbers, part: ViewSegment) -> tuple[pa.Array, Numbers]:
    """(surface, how often) of each entity `local`, which is 0 to n - 1, each at least once."""
    distinct = part.segment.typed_surfaces.distinct()
    order = np.empty(len(distinct), dtype=np.int64)
    order[pc.sort_indices(distinct).to_numpy()] = np.arange(len(distinct))
    pairs, which = np.unique(local * max(1, len(distinct)) + codes, return_inverse=True)
    totals = np.bincount(which, counts, len(pairs)).astype(np.int64)
    owners, surfaces = np.divmod(pairs, max(1, len(distinct)))
    best = np.lexsort((order[surfaces], -totals, owners))
    first = best[np.unique(owners[best], return_index=True)[1]]
    return distinct.take(pa.array(surfaces[first])), totals[first]


def labels_of(mentions: Sequence[TypedMention]) -> dict[str, int]:
    """How often each surface is written, the commonest first."""
    counts: dict[str, int] = {}
    for each in mentions:
        counts[each.surface] = counts.get(each.surface, 0) + each.times
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))
