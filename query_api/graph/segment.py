"""A segment: an immutable graph of some documents in compressed sparse rows, both directions, by local numbers.

Documents and entities stand in the order of their keys, passages by (document, ordinal), chunks by passage: so the
passages of a document and the chunks of a passage are neighbours in memory and need no list of their own.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indexer.read.strings import Strings
from query_api.graph.columns import GraphColumns, Keys
from query_api.graph.identifiers import MISSING, Identifiers, find
from query_api.graph.rows import (
    Entering,
    Indices,
    Sorting,
    entries_between,
    entries_of,
    entries_with,
    row_pointers,
    rows_of,
)

UNKNOWN_SENTENCE = np.iinfo(np.uint16).max

Small = TypeVar("Small", np.uint8, np.uint16)


@dataclass(frozen=True, slots=True)
class TwoWay:
    """Edges sorted by source: `targets[pointers[s]:pointers[s + 1]]` of source s, and the way back.

    `by_target` sorts the edges by their targets; further properties of edge i stand at place i of arrays beside it.
    """

    pointers: Indices
    targets: Indices
    by_target: Entering

    @classmethod
    def build(cls, sources: NDArray[np.int64], targets: NDArray[np.int64], n_sources: int, n_targets: int) -> "TwoWay":
        """`sources` ascending."""
        narrow = targets.astype(np.int32)
        return cls(row_pointers(sources, n_sources), narrow, Entering.of(narrow, n_targets))

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def nbytes(self) -> int:
        return self.pointers.nbytes + self.targets.nbytes + self.by_target.nbytes

    def leaving(self, sources: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(index into `sources`, edge number) of the edges that begin there."""
        return entries_of(self.pointers, sources)

    def entering(self, targets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(index into `targets`, edge number) of the edges that end there."""
        return self.by_target.entries(targets)

    def sources_of(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows_of(self.pointers, edges)


@dataclass(frozen=True, slots=True)
class Links:
    """Edges from chunks (ascending) to documents by key, in this segment, in another, or not there yet."""

    sources: Indices
    targets: Keys
    by_target: Sorting

    @classmethod
    def build(cls, sources: NDArray[np.int64], targets: Keys) -> "Links":
        """`sources` ascending."""
        return cls(sources.astype(np.int32), targets, Sorting.of(targets))

    @property
    def nbytes(self) -> int:
        return self.sources.nbytes + self.targets.nbytes + self.by_target.nbytes

    def leaving(self, chunks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(index into `chunks`, edge number) of their links."""
        return entries_between(self.sources, chunks)

    def entering(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(index into `keys`, edge number) of the links to these documents."""
        return entries_with(self.targets, self.by_target, keys)


@dataclass(frozen=True, slots=True)
class Codes:
    """A column of few different strings, two bytes a row, or four where they are more than 32,767. Where all are the
    same one, no code is stored."""

    values: tuple[str, ...]
    codes: NDArray[np.int16] | NDArray[np.int32]
    length: int

    @classmethod
    def build(cls, texts: pa.Array, order: NDArray[np.int64]) -> "Codes":
        """The texts of these rows, in this order."""
        encoded = pc.dictionary_encode(texts)
        values = tuple(encoded.dictionary.to_pylist())
        width = np.int16 if len(values) <= np.iinfo(np.int16).max else np.int32
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(width)
        return cls(values, codes[order] if len(values) > 1 else codes[:0], len(order))

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes

    def __getitem__(self, position: int) -> str:
        return self.values[int(self.codes[position]) if len(self.codes) else 0]

    def of(self, rows: NDArray[np.integer]) -> list[str]:
        if not len(self.codes):
            return [self.values[0]] * len(rows) if len(rows) else []
        return [self.values[code] for code in self.codes[rows].tolist()]

    def texts(self, rows: NDArray[np.integer]) -> pa.Array:
        codes = self.codes[rows] if len(self.codes) else np.zeros(len(rows), dtype=np.int16)
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(self.values, pa.string())).cast(pa.string())


@dataclass(frozen=True, slots=True)
class Segment:
    """The arrays; see the module. Edge properties are in the order of their TwoWay's edges."""

    document_keys: Keys
    collections: Codes
    document_ids: Strings
    titles: Strings
    document_passages: Indices  # pointers: the passages of document d are [d]..[d + 1]

    passage_ids: Identifiers
    passage_documents: Indices
    passage_chunks: Indices  # pointers

    chunk_ids: Identifiers
    chunk_passages: Indices

    entity_keys: Keys
    entity_collections: Codes
    names: Strings
    passage_frequencies: NDArray[np.uint16]  # in how many passages an entity is mentioned

    mentions: TwoWay  # chunk → entity
    mention_counts: NDArray[np.uint8]
    mention_sentences: NDArray[np.uint16]  # the first of each mention's

    about: TwoWay  # document → entity
    about_weights: NDArray[np.float32]
    about_surfaces: Strings  # empty where it is the document's title

    statement_chunks: Indices  # ascending
    statement_keys: Keys
    predicates: Codes
    confidences: NDArray[np.float16]
    statement_sentences: Indices
    roles: TwoWay  # statement → entity
    role_names: Codes

    edges: TwoWay  # chunk → chunk
    edge_kinds: NDArray[np.uint8]
    edge_weights: NDArray[np.float16]

    links: Links  # chunk → document
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
        evidence = len(self.mentions) + len(self.about) + len(self.roles) + len(self.links.targets)
        return structure + evidence + len(self.edges)

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self.__slots__)

    @classmethod
    def build(cls, columns: GraphColumns) -> "Segment":
        """Sort the columns into rows. Raises ValueError when an edge names a chunk or entity that no row holds."""
        documents = np.argsort(columns.document_keys, kind="stable")
        document_keys = columns.document_keys[documents]
        entity_keys, first_rows, (mention_entities, about_entities, role_entities) = _named_entities(columns)

        chunk_documents = _found(document_keys, columns.chunk_documents, "document")
        chunks = np.lexsort(
            (columns.chunk_ordinals, columns.chunk_passage_ids[:, 0], columns.chunk_passages, chunk_documents)
        )
        chunk_ids = Identifiers(columns.chunk_ids[chunks])
        of_passage = columns.chunk_passage_ids[chunks]
        begins = np.ones(len(chunks), dtype=bool)
        begins[1:] = (of_passage[1:] != of_passage[:-1]).any(axis=1)
        chunk_passages = (np.cumsum(begins) - 1).astype(np.int32)
        passage_documents = chunk_documents[chunks][begins].astype(np.int32)
        n_chunks, n_passages, n_entities = len(chunks), len(passage_documents), len(entity_keys)

        def chunk(keys: Keys) -> NDArray[np.int64]:
            return _known(chunk_ids.positions(keys), "chunk")

        mention_chunks = chunk(columns.mention_chunks)
        by_chunk = np.lexsort((mention_entities, mention_chunks))
        mentions = TwoWay.build(mention_chunks[by_chunk], mention_entities[by_chunk], n_chunks, n_entities)

        about_documents = _found(document_keys, columns.about_documents, "document")
        by_document = np.lexsort((about_entities, about_documents))
        titles = columns.document_titles.take(pa.array(documents))
        surfaces = columns.about_surfaces.take(pa.array(by_document))

        statement_chunks = chunk(columns.statement_chunks)
        stated = np.lexsort((columns.statement_keys, statement_chunks))
        place = np.empty(len(stated), dtype=np.int64)
        place[stated] = np.arange(len(stated))
        by_key = Sorting.of(columns.statement_keys)
        role_rows = _known(find(columns.statement_keys, columns.role_statements, by_key), "statement")
        role_statements = place[role_rows]
        by_statement = np.lexsort((role_entities, role_statements))

        sources, targets = chunk(columns.edge_sources), chunk(columns.edge_targets)
        by_source = np.lexsort((columns.edge_kinds, targets, sources))
        link_chunks = chunk(columns.link_chunks)
        linked = np.lexsort((columns.link_documents, link_chunks))

        return cls(
            document_keys=document_keys,
            collections=Codes.build(columns.document_collections, documents),
            document_ids=Strings(columns.document_ids.take(pa.array(documents))),
            titles=Strings(titles),
            document_passages=row_pointers(passage_documents, len(documents)),
            passage_ids=Identifiers(of_passage[begins]),
            passage_documents=passage_documents,
            passage_chunks=row_pointers(chunk_passages, n_passages),
            chunk_ids=chunk_ids,
            chunk_passages=chunk_passages,
            entity_keys=entity_keys,
            entity_collections=Codes.build(columns.entity_collections, first_rows),
            names=Strings(columns.entity_names.take(pa.array(first_rows))),
            passage_frequencies=_passage_frequencies(mentions, chunk_passages, n_entities),
            mentions=mentions,
            mention_counts=_saturated(columns.mention_counts[by_chunk], np.uint8),
            mention_sentences=_saturated(
                np.where(columns.mention_sentences < 0, UNKNOWN_SENTENCE, columns.mention_sentences)[by_chunk],
                np.uint16,
            ),
            about=TwoWay.build(about_documents[by_document], about_entities[by_document], len(documents), n_entities),
            about_weights=columns.about_weights[by_document],
            about_surfaces=Strings(_unlike_titles(surfaces, titles.take(pa.array(about_documents[by_document])))),
            statement_chunks=statement_chunks[stated].astype(np.int32),
            statement_keys=columns.statement_keys[stated],
            predicates=Codes.build(columns.statement_predicates, stated),
            confidences=columns.statement_confidences[stated].astype(np.float16),
            statement_sentences=columns.statement_sentences[stated],
            roles=TwoWay.build(role_statements[by_statement], role_entities[by_statement], len(stated), n_entities),
            role_names=Codes.build(columns.role_names, by_statement),
            edges=TwoWay.build(sources[by_source], targets[by_source], n_chunks, n_chunks),
            edge_kinds=columns.edge_kinds[by_source],
            edge_weights=columns.edge_weights[by_source].astype(np.float16),
            links=Links.build(link_chunks[linked], columns.link_documents[linked]),
            link_weights=columns.link_weights[linked].astype(np.float16),
        )

    def find_documents(self, keys: Keys) -> NDArray[np.int64]:
        return find(self.document_keys, keys)

    def find_entities(self, keys: Keys) -> NDArray[np.int64]:
        return find(self.entity_keys, keys)

    def called(self, entities: NDArray[np.int64]) -> list[tuple[str, str]]:
        """(collection, normalised name) of each of these entities."""
        return list(zip(self.entity_collections.of(entities), self.names.of(entities), strict=True))

    def surface(self, about: int, document: int) -> str:
        """How a document writes the name of what it is about."""
        return self.about_surfaces[about] or self.titles[document]

    def first_sentences(self, mentions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The first sentence number of each of these mentions, MISSING where it is unknown or beyond 65,534."""
        numbers = self.mention_sentences[mentions].astype(np.int64)
        numbers[numbers == UNKNOWN_SENTENCE] = MISSING
        return numbers


def _named_entities(columns: GraphColumns) -> tuple[Keys, NDArray[np.int64], list[NDArray[np.int64]]]:
    """The keys of the entities that an edge names, ascending; for each a row that holds its name; which of them the
    mentions, the documents and the roles name."""
    naming = (columns.mention_entities, columns.about_entities, columns.role_entities)
    named, numbers = np.unique(np.concatenate(naming), return_inverse=True)
    known, rows = np.unique(columns.entity_keys, return_index=True)
    by_kind = np.split(numbers, np.cumsum([len(keys) for keys in naming])[:-1])
    return named, rows[_found(known, named, "entity")], by_kind


def _found(sorted_keys: Keys, wanted: Keys, kind: str) -> NDArray[np.int64]:
    return _known(find(sorted_keys, wanted), kind)


def _known(positions: NDArray[np.int64], kind: str) -> NDArray[np.int64]:
    if (positions == MISSING).any():
        raise ValueError(
            f"An edge of the graph names a {kind} that the graph does not hold; build from a whole snapshot."
        )
    return positions


def _unlike_titles(surfaces: pa.Array, titles: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(surfaces, titles), pa.scalar("", pa.string()), surfaces)


def _passage_frequencies(mentions: TwoWay, chunk_passages: Indices, n_entities: int) -> NDArray[np.uint16]:
    """How many different passages mention each entity, at most 65,535."""
    edges = mentions.by_target.order.astype(np.int64)
    entities = mentions.targets[edges]
    passages = chunk_passages[mentions.sources_of(edges)]
    fresh = np.ones(len(entities), dtype=bool)  # edges into an entity are in order of chunk, so of passage
    fresh[1:] = (entities[1:] != entities[:-1]) | (passages[1:] != passages[:-1])
    return _saturated(np.bincount(entities[fresh], minlength=n_entities), np.uint16)


def _saturated(numbers: NDArray[np.integer], kind: type[Small]) -> NDArray[Small]:
    """The numbers in a smaller type, its largest value standing for all that do not fit."""
    fitting: NDArray[Small] = np.minimum(numbers, np.iinfo(kind).max).astype(kind)
    return fitting
