"""An immutable graph of some documents: compressed sparse rows in both directions, nodes by local numbers.

Documents and entities are in the order of their keys, passages by (document, ordinal), chunks by passage: so the
passages of a document and the chunks of a passage are adjacent and need no list of their own.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.csr import (
    CompressedRows,
    Edges,
    EncodedStrings,
    Indices,
    Positions,
    SmallIntegers,
    WordEncodedStrings,
)
from query_api.index.graph.identifiers import Identifiers, KeyIndex, Keys, find
from query_api.index.strings import StringLists, Strings

Deleted = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Segment:
    """The arrays; see the module. Properties of edges are in the order of the edges; of their weights, only those of
    `about` have more than three digits."""

    document_keys: Keys
    collections: EncodedStrings
    document_ids: Strings
    titles: Strings
    document_names: KeyIndex  # the paths of all documents, then their names, as links and wiki links have them
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

    typed: Edges  # entity → chunk: typed mentions of entities; the others are terms
    typed_types: NDArray[np.uint8]
    typed_confidences: NDArray[np.float16]
    typed_counts: SmallIntegers
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

    nodes: CompressedRows  # of documents: those that people made
    node_keys: KeyIndex
    node_names: Strings
    node_labels: Strings
    node_types: EncodedStrings
    node_aliases: StringLists
    node_attributes: Strings

    relations: CompressedRows  # of documents
    relation_names: Strings
    relation_predicates: EncodedStrings
    relation_weights: NDArray[np.float64]
    relation_attributes: Strings
    ends: Edges  # relation → reference
    end_roles: EncodedStrings
    reference_collections: EncodedStrings
    reference_names: Strings
    reference_keys: KeyIndex  # the `candidate_keys` of each reference, one reference after the other

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
        made = len(self.node_names) + len(self.relation_names)
        of_documents = self.n_documents + self.n_passages + self.n_chunks + made
        return of_documents + len(self.entity_keys) + len(self.statement_keys)

    @property
    def n_edges(self) -> int:
        """Each once: a chunk's to its passage, a passage's to its document, mentions, about, states, roles, links,
        those between chunks, and those of what people made."""
        structure = self.n_chunks + self.n_passages + len(self.statement_keys)
        made = len(self.node_names) + len(self.relation_names) + len(self.ends)
        evidence = len(self.mentions) + len(self.typed) + len(self.about) + len(self.roles) + len(self.links)
        return structure + evidence + len(self.edges) + made

    @property
    def nbytes(self) -> int:
        return sum(self.memory().values())

    def memory(self) -> dict[str, int]:
        """Bytes by column."""
        return {name: getattr(self, name).nbytes for name in self.__slots__}

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
