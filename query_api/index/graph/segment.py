"""An immutable graph of some documents: compressed sparse rows in both directions, nodes by local numbers.

Documents and entities are in the order of their keys, passages by (document, ordinal), chunks by passage: so the
passages of a document and the chunks of a passage are adjacent and need no list of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.index.graph.builder import GraphColumns, concatenated
from query_api.index.graph.csr import (
    CompressedRows,
    Edges,
    EncodedStrings,
    Indices,
    Positions,
    SmallIntegers,
    WordEncodedStrings,
    row_pointers,
    smallest_integers,
)
from query_api.index.graph.identifiers import MISSING, Identifiers, KeyIndex, Keys, find, find_all
from query_api.index.strings import Strings

Deleted = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Segment:
    """The arrays; see the module. Properties of edges are in the order of the edges; of their weights, only those of
    `about` have more than three digits."""

    document_keys: Keys
    collections: EncodedStrings
    document_ids: Strings
    titles: Strings
    document_names: KeyIndex
    document_passages: Indices  # row pointers: the passages of document d are [d]..[d + 1]

    passage_ids: Identifiers
    passage_documents: Indices
    passage_chunks: Indices  # row pointers

    chunk_ids: Identifiers
    chunk_passages: Indices

    entity_keys: Keys
    entity_collections: EncodedStrings
    names: WordEncodedStrings
    passage_frequencies: SmallIntegers  # in how many passages an entity is mentioned

    mentions: Edges  # entity → chunk, the way that has more to read
    mention_counts: SmallIntegers
    mention_sentences: SmallIntegers  # one more than the number of the first of each; 0 where it is unknown

    typed: Edges  # entity → chunk: mentions of entities as people see them; the others are terms
    typed_types: NDArray[np.uint8]
    typed_confidences: NDArray[np.float16]
    typed_counts: SmallIntegers
    typed_sentences: SmallIntegers
    typed_surfaces: EncodedStrings

    about: Edges  # document → entity
    about_weights: NDArray[np.float32]
    about_surfaces: Strings  # empty where it is the document's title

    statements: CompressedRows  # of chunks
    statement_keys: Keys
    predicates: EncodedStrings
    confidences: NDArray[np.float16]
    statement_sentences: SmallIntegers  # one more than the number; 0 where it is in none
    extractors: EncodedStrings
    roles: Edges  # statement → entity
    role_names: EncodedStrings
    role_surfaces: EncodedStrings

    edges: Edges  # chunk → chunk
    edge_kinds: NDArray[np.uint8]
    edge_weights: NDArray[np.float16]

    linked_documents: Keys  # ascending; in this segment, in another, or not there yet
    linked_names: KeyIndex  # under which links find them
    links: Edges  # chunk → linked document
    link_weights: NDArray[np.float16]

    @property
    def n_documents(self) -> int:
        return len(self.document_keys)

    @property
    def n_passages(self) -> int:
        return len(self.passage_ids)

    @property
    def n_chunks(self) -> int:
        return len(self.chunk_ids)

    @property
    def n_nodes(self) -> int:
        return self.n_documents + self.n_passages + self.n_chunks + len(self.entity_keys) + len(self.statement_keys)

    @property
    def n_edges(self) -> int:
        """Each once: a chunk's to its passage, a passage's to its document, mentions, about, states, roles, links and
        those between chunks."""
        structure = self.n_chunks + self.n_passages + len(self.statement_keys)
        evidence = len(self.mentions) + len(self.typed) + len(self.about) + len(self.roles) + len(self.links)
        return structure + evidence + len(self.edges)

    @property
    def nbytes(self) -> int:
        return sum(self.memory().values())

    def memory(self) -> dict[str, int]:
        """Bytes by column."""
        return {name: getattr(self, name).nbytes for name in self.__slots__}

    @classmethod
    def build(cls, columns: GraphColumns) -> "Segment":
        """Sort the columns into rows. Raises ValueError when an edge names a chunk or entity that no row holds."""
        documents = np.argsort(columns.document_keys, kind="stable")
        document_keys = columns.document_keys[documents]
        titles = columns.document_titles.take(pa.array(documents))
        ordered = _ordered_chunks(columns, _found(document_keys, columns.chunk_documents, "document"))
        n_chunks, n_passages = len(ordered.chunks), len(ordered.passage_documents)
        chunk_keys = columns.chunk_ids[ordered.chunks, 0]

        def chunk(keys: Keys) -> Positions:
            return _known(find_all(chunk_keys, keys), "chunk")

        named = _named_entities(columns)
        n_entities = len(named.keys)
        mention_chunks = chunk(columns.mention_chunks)
        mentioned = np.argsort(named.of_mentions * n_chunks + mention_chunks)
        mentions = Edges.build(named.of_mentions[mentioned], mention_chunks[mentioned], n_entities, n_chunks)

        typed_chunks = chunk(columns.typed_chunks)
        by_entity = np.argsort(named.of_typed * n_chunks + typed_chunks)

        about_documents = _found(document_keys, columns.about_documents, "document")
        about = np.lexsort((named.of_documents, about_documents))
        surfaces = _without_titles(
            columns.about_surfaces.take(pa.array(about)), titles.take(pa.array(about_documents[about]))
        )

        statement_chunks = chunk(columns.statement_chunks)
        stated = np.lexsort((columns.statement_keys, statement_chunks))
        statement_keys = columns.statement_keys[stated]
        role_statements = _known(find_all(statement_keys, columns.role_statements), "statement")
        roles = np.lexsort((named.of_roles, role_statements))

        sources, targets = chunk(columns.edge_sources), chunk(columns.edge_targets)
        edges = np.lexsort((columns.edge_kinds, targets, sources))
        link_chunks = chunk(columns.link_chunks)
        linked_documents, linked, link_targets = np.unique(
            columns.link_documents, return_index=True, return_inverse=True
        )
        links = np.lexsort((link_targets, link_chunks))

        return cls(
            document_keys=document_keys,
            collections=EncodedStrings.build(columns.document_collections, documents),
            document_ids=Strings(columns.document_ids.take(pa.array(documents))),
            titles=Strings(titles),
            document_names=KeyIndex(columns.document_names[documents]),
            document_passages=row_pointers(np.bincount(ordered.passage_documents, minlength=len(documents))),
            passage_ids=Identifiers(ordered.passage_ids),
            passage_documents=ordered.passage_documents.astype(np.int32),
            passage_chunks=row_pointers(np.bincount(ordered.chunk_passages, minlength=n_passages)),
            chunk_ids=Identifiers(columns.chunk_ids[ordered.chunks]),
            chunk_passages=ordered.chunk_passages.astype(np.int32),
            entity_keys=named.keys,
            entity_collections=EncodedStrings.build(columns.entity_collections, named.rows),
            names=WordEncodedStrings.build(columns.entity_names.take(pa.array(named.rows))),
            passage_frequencies=_passage_frequencies(mentions, ordered.chunk_passages, n_entities),
            mentions=mentions,
            mention_counts=smallest_integers(columns.mention_counts[mentioned]),
            mention_sentences=smallest_integers(columns.mention_sentences[mentioned] + 1),
            typed=Edges.build(named.of_typed[by_entity], typed_chunks[by_entity], n_entities, n_chunks),
            typed_types=columns.typed_types[by_entity],
            typed_confidences=columns.typed_confidences[by_entity].astype(np.float16),
            typed_counts=smallest_integers(columns.typed_counts[by_entity]),
            typed_sentences=smallest_integers(columns.typed_sentences[by_entity] + 1),
            typed_surfaces=EncodedStrings.build(columns.typed_surfaces, by_entity),
            about=Edges.build(about_documents[about], named.of_documents[about], len(documents), n_entities),
            about_weights=columns.about_weights[about],
            about_surfaces=Strings(surfaces),
            statements=CompressedRows.build(statement_chunks[stated], n_chunks),
            statement_keys=statement_keys,
            predicates=EncodedStrings.build(columns.statement_predicates, stated),
            confidences=columns.statement_confidences[stated].astype(np.float16),
            statement_sentences=smallest_integers(columns.statement_sentences[stated] + 1),
            extractors=EncodedStrings.build(columns.statement_extractors, stated),
            roles=Edges.build(role_statements[roles], named.of_roles[roles], len(stated), n_entities),
            role_names=EncodedStrings.build(columns.role_names, roles),
            role_surfaces=EncodedStrings.build(columns.role_surfaces, roles),
            edges=Edges.build(sources[edges], targets[edges], n_chunks, n_chunks),
            edge_kinds=columns.edge_kinds[edges],
            edge_weights=columns.edge_weights[edges].astype(np.float16),
            linked_documents=linked_documents,
            linked_names=KeyIndex(columns.link_names[linked]),
            links=Edges.build(link_chunks[links], link_targets[links], n_chunks, len(linked_documents)),
            link_weights=columns.link_weights[links].astype(np.float16),
        )

    def find_documents(self, keys: Keys) -> Positions:
        return find(self.document_keys, keys)

    def find_entities(self, keys: Keys) -> Positions:
        return find(self.entity_keys, keys)

    def names_of(self, entities: Positions) -> list[tuple[str, str]]:
        """(collection, normalised name) of each of these entities."""
        return list(zip(self.entity_collections.of(entities), self.names.of(entities), strict=True))

    def surface(self, about: int, document: int) -> str:
        """How a document writes the name of what it is about."""
        return self.about_surfaces[about] or self.titles[document]

    def passages_of(self, chunks: Positions) -> Positions:
        """The passage of each of these chunks."""
        return self.chunk_passages[chunks].astype(np.int64)

    def times(self, mentions: Positions) -> Positions:
        """How often each of these mentions is made in its chunk."""
        return self.mention_counts[mentions].astype(np.int64)

    def first_sentences(self, mentions: Positions) -> Positions:
        """The number of the first sentence of each of these mentions, -1 where it is unknown."""
        return self.mention_sentences[mentions].astype(np.int64) - 1


def merged(segments: Sequence[tuple[Segment, Deleted]]) -> Segment:
    """One segment of the live documents of all. No document may be live in two of them."""
    return Segment.build(concatenated([columns_of_segment(segment, deleted) for segment, deleted in segments]))


def columns_of_segment(segment: Segment, deleted: Deleted) -> GraphColumns:
    """The columns a segment was built from, without its deleted documents and what only they named."""
    documents = np.flatnonzero(~deleted)
    chunk_passages = segment.chunk_passages
    chunk_documents = segment.passage_documents[chunk_passages]
    live = ~deleted[chunk_documents]
    chunks = np.flatnonzero(live)
    firsts = segment.chunk_ids.firsts

    mention_entities, mention_chunks = segment.mentions.ends()
    mentions = np.flatnonzero(live[mention_chunks])
    typed_entities, typed_chunks = segment.typed.ends()
    typed = np.flatnonzero(live[typed_chunks])
    about_sources, about_targets = segment.about.ends()
    about = np.flatnonzero(~deleted[about_sources])
    statement_sources = segment.statements.of_entries(np.arange(len(segment.statement_keys)))
    statements = np.flatnonzero(live[statement_sources])
    role_sources, role_targets = segment.roles.ends()
    roles = np.flatnonzero(live[statement_sources][role_sources])
    edge_sources, edge_targets = segment.edges.ends()
    edges = np.flatnonzero(live[edge_sources])
    link_sources, link_targets = segment.links.ends()
    links = np.flatnonzero(live[link_sources])

    naming = (mention_entities[mentions], typed_entities[typed], about_targets[about], role_targets[roles])
    entities = np.unique(np.concatenate(naming))
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
        typed_chunks=firsts[typed_chunks[typed]],
        typed_entities=segment.entity_keys[typed_entities[typed]],
        typed_types=segment.typed_types[typed],
        typed_confidences=segment.typed_confidences[typed].astype(np.float32),
        typed_counts=segment.typed_counts[typed].astype(np.int32),
        typed_sentences=segment.typed_sentences[typed].astype(np.int32) - 1,
        typed_surfaces=segment.typed_surfaces.texts(typed),
        about_documents=segment.document_keys[about_sources[about]],
        about_entities=segment.entity_keys[about_targets[about]],
        about_weights=segment.about_weights[about],
        about_surfaces=_surfaces(segment, about, about_sources[about]),
        statement_keys=segment.statement_keys[statements],
        statement_chunks=firsts[statement_sources[statements]],
        statement_predicates=segment.predicates.texts(statements),
        statement_confidences=segment.confidences[statements].astype(np.float32),
        statement_sentences=segment.statement_sentences[statements].astype(np.int32) - 1,
        statement_extractors=segment.extractors.texts(statements),
        role_statements=segment.statement_keys[role_sources[roles]],
        role_entities=segment.entity_keys[role_targets[roles]],
        role_names=segment.role_names.texts(roles),
        role_surfaces=segment.role_surfaces.texts(roles),
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


class _OrderedChunks(NamedTuple):
    """Chunks in the order of their passages: which row of the columns each is, and the number of its passage. The ids
    (n_passages, 2) and the documents of the passages."""

    chunks: Positions
    chunk_passages: Positions
    passage_ids: Keys
    passage_documents: Positions


def _ordered_chunks(columns: GraphColumns, chunk_documents: Positions) -> _OrderedChunks:
    chunks = np.lexsort(
        (columns.chunk_ordinals, columns.chunk_passage_ids[:, 0], columns.chunk_passages, chunk_documents)
    )
    of_passage = columns.chunk_passage_ids[chunks]
    begins = np.ones(len(chunks), dtype=bool)
    begins[1:] = (of_passage[1:] != of_passage[:-1]).any(axis=1)
    return _OrderedChunks(chunks, np.cumsum(begins) - 1, of_passage[begins], chunk_documents[chunks][begins])


class _NamedEntities(NamedTuple):
    """The keys of the entities that an edge names, ascending; for each a row that holds its name; which of them the
    terms, the mentions of entities, the documents and the roles name."""

    keys: Keys
    rows: Positions
    of_mentions: Positions
    of_typed: Positions
    of_documents: Positions
    of_roles: Positions


def _named_entities(columns: GraphColumns) -> _NamedEntities:
    naming = (columns.mention_entities, columns.typed_entities, columns.about_entities, columns.role_entities)
    keys, numbers = np.unique(np.concatenate(naming), return_inverse=True)
    rows = _known(find_all(columns.entity_keys, keys), "entity")
    return _NamedEntities(keys, rows, *np.split(numbers, np.cumsum([len(each) for each in naming])[:-1]))


def _found(sorted_keys: Keys, wanted: Keys, kind: str) -> Positions:
    return _known(find(sorted_keys, wanted), kind)


def _known(positions: Positions, kind: str) -> Positions:
    if (positions == MISSING).any():
        raise ValueError(
            f"An edge of the graph names a {kind} that the graph does not hold; build from a whole snapshot."
        )
    return positions


def _without_titles(surfaces: pa.Array, titles: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(surfaces, titles), pa.scalar("", pa.string()), surfaces)


def _passage_frequencies(mentions: Edges, chunk_passages: Positions, n_entities: int) -> SmallIntegers:
    """How many different passages mention each entity."""
    entities, chunks = mentions.ends()
    passages = chunk_passages[chunks]
    fresh = np.ones(len(entities), dtype=bool)  # mentions of an entity are in the order of chunks, so of passages
    fresh[1:] = (entities[1:] != entities[:-1]) | (passages[1:] != passages[:-1])
    return smallest_integers(np.bincount(entities[fresh], minlength=n_entities))
