"""Segments back to columns, without the documents that are gone: how small segments become one larger one."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.index.graph.columns import GraphColumns, concatenated
from query_api.index.graph.segment import Segment

Dead = NDArray[np.bool_]


def merged(parts: Sequence[tuple[Segment, Dead]]) -> Segment:
    """One segment of the live documents of all parts. No document may be alive in two of them."""
    return Segment.build(concatenated([columns_of_segment(segment, dead) for segment, dead in parts]))


def columns_of_segment(segment: Segment, dead: Dead) -> GraphColumns:
    """The columns a segment was built from, less its dead documents and what only they named."""
    documents = np.flatnonzero(~dead)
    chunk_passages = segment.chunk_passages
    chunk_documents = segment.passage_documents[chunk_passages]
    alive = ~dead[chunk_documents]
    chunks = np.flatnonzero(alive)
    firsts = segment.chunk_ids.firsts

    mention_entities, mention_chunks = segment.mentions.ends()
    mentions = np.flatnonzero(alive[mention_chunks])
    about_sources, about_targets = segment.about.ends()
    about = np.flatnonzero(~dead[about_sources])
    statement_sources = segment.statements.of_entries(np.arange(len(segment.statement_keys)))
    statements = np.flatnonzero(alive[statement_sources])
    role_sources, role_targets = segment.roles.ends()
    roles = np.flatnonzero(alive[statement_sources][role_sources])
    edge_sources, edge_targets = segment.edges.ends()
    edges = np.flatnonzero(alive[edge_sources])
    link_sources, link_targets = segment.links.ends()
    links = np.flatnonzero(alive[link_sources])

    entities = np.unique(np.concatenate((mention_entities[mentions], about_targets[about], role_targets[roles])))
    passage_rows = chunk_passages[chunks]
    passage_ordinals = passage_rows - segment.document_passages[chunk_documents[chunks]]
    return GraphColumns(
        document_keys=segment.document_keys[documents],
        document_collections=segment.collections.texts(documents),
        document_ids=segment.document_ids.array.take(documents),
        document_titles=segment.titles.array.take(documents),
        document_names=segment.document_names.keys[documents],
        chunk_ids=np.column_stack((firsts[chunks], segment.chunk_ids.seconds[chunks])),
        chunk_documents=segment.document_keys[chunk_documents[chunks]],
        chunk_passage_ids=np.column_stack(
            (segment.passage_ids.firsts[passage_rows], segment.passage_ids.seconds[passage_rows])
        ),
        chunk_passages=passage_ordinals.astype(np.int32),
        chunk_ordinals=chunks.astype(np.int32),
        entity_keys=segment.entity_keys[entities],
        entity_collections=segment.entity_collections.texts(entities),
        entity_names=segment.names.texts(entities),
        mention_chunks=firsts[mention_chunks[mentions]],
        mention_entities=segment.entity_keys[mention_entities[mentions]],
        mention_counts=segment.mention_counts[mentions].astype(np.int32),
        mention_sentences=segment.first_sentences(mentions).astype(np.int32),
        about_documents=segment.document_keys[about_sources[about]],
        about_entities=segment.entity_keys[about_targets[about]],
        about_weights=segment.about_weights[about],
        about_surfaces=_surfaces(segment, about, about_sources[about]),
        statement_keys=segment.statement_keys[statements],
        statement_chunks=firsts[statement_sources[statements]],
        statement_predicates=segment.predicates.texts(statements),
        statement_confidences=segment.confidences[statements].astype(np.float32),
        statement_sentences=segment.statement_sentences[statements].astype(np.int32) - 1,
        role_statements=segment.statement_keys[role_sources[roles]],
        role_entities=segment.entity_keys[role_targets[roles]],
        role_names=segment.role_names.texts(roles),
        edge_sources=firsts[edge_sources[edges]],
        edge_targets=firsts[edge_targets[edges]],
        edge_kinds=segment.edge_kinds[edges],
        edge_weights=segment.edge_weights[edges].astype(np.float32),
        link_chunks=firsts[link_sources[links]],
        link_documents=segment.linked_documents[link_targets[links]],
        link_names=segment.linked_names.keys[link_targets[links]],
        link_weights=segment.link_weights[links].astype(np.float32),
    )


def _surfaces(segment: Segment, about: NDArray[np.int64], documents: NDArray[np.int64]) -> pa.Array:
    """How each of these documents writes the name of what it is about."""
    surfaces = segment.about_surfaces.array.take(about)
    return pc.if_else(pc.equal(surfaces, ""), segment.titles.array.take(documents), surfaces)
