"""A segment: an immutable graph of some documents in compressed sparse rows, both directions, by local numbers.

Documents and entities stand in the order of their keys, passages by (document, ordinal), chunks by passage: so the
passages of a document and the chunks of a passage are neighbours in memory and need no list of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.graph.columns import GraphColumns, Keys
from query_api.graph.identifiers import MISSING, Identifiers, find
from query_api.graph.rows import Indices, entries_of, pointers_of_counts, row_pointers, rows_of


@dataclass(frozen=True, slots=True)
class TwoWay:
    """Edges sorted by source: `targets[pointers[s]:pointers[s + 1]]` of source s, and the way back.

    Further properties of edge i stand at place i of arrays beside it. `into[into_pointers[t]:into_pointers[t + 1]]`
    are the numbers of the edges that end in t.
    """

    pointers: Indices
    targets: Indices
    into_pointers: Indices
    into: Indices

    @classmethod
    def build(cls, sources: NDArray[np.int64], targets: NDArray[np.int64], n_sources: int, n_targets: int) -> "TwoWay":
        """`sources` ascending."""
        backwards = np.argsort(targets, kind="stable").astype(np.int32)
        return cls(
            row_pointers(sources, n_sources),
            targets.astype(np.int32),
            row_pointers(targets, n_targets),
            backwards,
        )

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def nbytes(self) -> int:
        return self.pointers.nbytes + self.targets.nbytes + self.into_pointers.nbytes + self.into.nbytes

    def leaving(self, sources: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(index into `sources`, edge number) of the edges that begin there."""
        return entries_of(self.pointers, sources)

    def entering(self, targets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(index into `targets`, edge number) of the edges that end there."""
        which, places = entries_of(self.into_pointers, targets)
        return which, self.into[places].astype(np.int64)

    def sources_of(self, edges: NDArray[np.int64]) -> NDArray[np.int64]:
        return rows_of(self.pointers, edges)


@dataclass(frozen=True, slots=True)
class Links:
    """Edges from chunks to documents by key, in this segment, in another, or not there yet."""

    pointers: Indices
    targets: Keys
    by_target: Indices

    @classmethod
    def build(cls, sources: NDArray[np.int64], targets: Keys, n_sources: int) -> "Links":
        """`sources` ascending."""
        return cls(row_pointers(sources, n_sources), targets, np.argsort(targets, kind="stable").astype(np.int32))

    @property
    def nbytes(self) -> int:
        return self.pointers.nbytes + self.targets.nbytes + self.by_target.nbytes

    def entering(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(index into `keys`, edge number) of the links to these documents."""
        first = np.searchsorted(self.targets, keys, side="left", sorter=self.by_target)
        last = np.searchsorted(self.targets, keys, side="right", sorter=self.by_target)
        pointers = pointers_of_counts(last - first)
        which = np.repeat(np.arange(len(keys)), last - first)
        places = np.arange(len(which)) - pointers[which] + first[which]
        return which, self.by_target[places].astype(np.int64)


@dataclass(frozen=True, slots=True)
class Codes:
    """A column of few different strings."""

    values: tuple[str, ...]
    codes: NDArray[np.int16]

    @classmethod
    def build(cls, texts: pa.Array, order: NDArray[np.int64] | None = None) -> "Codes":
        encoded = pc.dictionary_encode(texts)
        values = encoded.dictionary.to_pylist()
        if len(values) > np.iinfo(np.int16).max:
            raise ValueError(f"A column of kinds has {len(values)} different values; at most 32,767 are kept.")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int16)
        return cls(tuple(values), codes if order is None else codes[order])

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes

    def __getitem__(self, position: int) -> str:
        return self.values[self.codes[position]]

    def texts(self) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(self.codes), pa.array(self.values, pa.string())).cast(
            pa.string()
        )


@dataclass(frozen=True, slots=True)
class Segment:
    """The arrays; see the module. Edge properties are in the order of their TwoWay's edges."""

    document_keys: Keys
    collections: Codes
    document_ids: pa.Array
    titles: pa.Array
    document_passages: Indices  # pointers: the passages of document d are [d]..[d + 1]

    passage_ids: Identifiers
    passage_documents: Indices
    passage_chunks: Indices  # pointers

    chunk_ids: Identifiers
    chunk_passages: Indices

    entity_keys: Keys
    entity_collections: Codes
    names: pa.Array
    name_hashes: NDArray[np.int64]  # of each name, sorted; Python's hash, so of this process only
    names_by_hash: Indices
    passage_frequencies: Indices  # in how many passages an entity is mentioned

    mentions: TwoWay  # chunk → entity
    mention_counts: NDArray[np.uint16]
    sentence_pointers: Indices
    sentences: Indices

    about: TwoWay  # document → entity
    about_weights: NDArray[np.float32]
    about_surfaces: pa.Array

    statements: Indices  # pointers: the statements of chunk c
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
        """Evidence and structure: mentions, about, states, roles, chunk edges and links, each counted once."""
        named = len(self.mentions) + len(self.about) + len(self.roles) + len(self.edges)
        return named + len(self.statement_keys) + len(self.links.targets)

    @property
    def nbytes(self) -> int:
        return sum(getattr(self, name).nbytes for name in self.__slots__)

    @classmethod
    def build(cls, columns: GraphColumns) -> "Segment":
        """Sort the columns into rows. Raises ValueError when an edge names a chunk or entity that no row holds."""
        documents = np.argsort(columns.document_keys, kind="stable")
        document_keys = columns.document_keys[documents]
        entity_keys, first_rows = np.unique(columns.entity_keys, return_index=True)
        names = columns.entity_names.take(pa.array(first_rows))
        hashes = np.fromiter((hash(name) for name in names.to_pylist()), dtype=np.int64, count=len(names))
        by_hash = np.argsort(hashes, kind="stable").astype(np.int32)

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

        def entity(keys: Keys) -> NDArray[np.int64]:
            return _found(entity_keys, keys, "entity")

        mention_chunks, mention_entities = chunk(columns.mention_chunks), entity(columns.mention_entities)
        by_chunk = np.lexsort((mention_entities, mention_chunks))
        mentions = TwoWay.build(mention_chunks[by_chunk], mention_entities[by_chunk], n_chunks, n_entities)
        _, sentence_places = entries_of(pointers_of_counts(columns.mention_sentence_counts), by_chunk)

        about_documents = _found(document_keys, columns.about_documents, "document")
        about_entities = entity(columns.about_entities)
        by_document = np.lexsort((about_entities, about_documents))

        statement_chunks = chunk(columns.statement_chunks)
        stated = np.lexsort((columns.statement_keys, statement_chunks))
        place = np.empty(len(stated), dtype=np.int64)
        place[stated] = np.arange(len(stated))
        by_key = np.argsort(columns.statement_keys, kind="stable").astype(np.int32)
        role_rows = _known(find(columns.statement_keys, columns.role_statements, by_key), "statement")
        role_statements, role_entities = place[role_rows], entity(columns.role_entities)
        by_statement = np.lexsort((role_entities, role_statements))

        sources, targets = chunk(columns.edge_sources), chunk(columns.edge_targets)
        by_source = np.lexsort((columns.edge_kinds, targets, sources))
        link_chunks = chunk(columns.link_chunks)
        linked = np.lexsort((columns.link_documents, link_chunks))

        return cls(
            document_keys=document_keys,
            collections=Codes.build(columns.document_collections, documents),
            document_ids=columns.document_ids.take(pa.array(documents)),
            titles=columns.document_titles.take(pa.array(documents)),
            document_passages=row_pointers(passage_documents, len(documents)),
            passage_ids=Identifiers(of_passage[begins]),
            passage_documents=passage_documents,
            passage_chunks=row_pointers(chunk_passages, n_passages),
            chunk_ids=chunk_ids,
            chunk_passages=chunk_passages,
            entity_keys=entity_keys,
            entity_collections=Codes.build(columns.entity_collections, first_rows),
            names=names,
            name_hashes=hashes[by_hash],
            names_by_hash=by_hash,
            passage_frequencies=_passage_frequencies(mentions, chunk_passages, n_entities),
            mentions=mentions,
            mention_counts=np.minimum(columns.mention_counts[by_chunk], np.iinfo(np.uint16).max).astype(np.uint16),
            sentence_pointers=pointers_of_counts(columns.mention_sentence_counts[by_chunk]),
            sentences=columns.sentences[sentence_places],
            about=TwoWay.build(about_documents[by_document], about_entities[by_document], len(documents), n_entities),
            about_weights=columns.about_weights[by_document],
            about_surfaces=columns.about_surfaces.take(pa.array(by_document)),
            statements=row_pointers(statement_chunks[stated], n_chunks),
            statement_keys=columns.statement_keys[stated],
            predicates=Codes.build(columns.statement_predicates, stated),
            confidences=columns.statement_confidences[stated].astype(np.float16),
            statement_sentences=columns.statement_sentences[stated],
            roles=TwoWay.build(role_statements[by_statement], role_entities[by_statement], len(stated), n_entities),
            role_names=Codes.build(columns.role_names, by_statement),
            edges=TwoWay.build(sources[by_source], targets[by_source], n_chunks, n_chunks),
            edge_kinds=columns.edge_kinds[by_source],
            edge_weights=columns.edge_weights[by_source].astype(np.float16),
            links=Links.build(link_chunks[linked], columns.link_documents[linked], n_chunks),
            link_weights=columns.link_weights[linked].astype(np.float16),
        )

    def find_documents(self, keys: Keys) -> NDArray[np.int64]:
        return find(self.document_keys, keys)

    def find_entities(self, keys: Keys) -> NDArray[np.int64]:
        return find(self.entity_keys, keys)

    def entities_named(self, names: Sequence[str], hashes: NDArray[np.int64]) -> list[tuple[int, int]]:
        """(index into `names`, entity) for each entity of such a normalised name; `hashes` are the names' hashes."""
        first = np.searchsorted(self.name_hashes, hashes, side="left")
        last = np.searchsorted(self.name_hashes, hashes, side="right")
        return [
            (at, entity)
            for at in np.flatnonzero(first < last).tolist()
            for entity in self.names_by_hash[first[at] : last[at]].tolist()
            if self.names[entity].as_py() == names[at]
        ]


def _found(sorted_keys: Keys, wanted: Keys, kind: str) -> NDArray[np.int64]:
    return _known(find(sorted_keys, wanted), kind)


def _known(positions: NDArray[np.int64], kind: str) -> NDArray[np.int64]:
    if (positions == MISSING).any():
        raise ValueError(
            f"An edge of the graph names a {kind} that the graph does not hold; build from a whole snapshot."
        )
    return positions


def _passage_frequencies(mentions: TwoWay, chunk_passages: Indices, n_entities: int) -> Indices:
    """How many different passages mention each entity."""
    if not len(mentions):
        return np.zeros(n_entities, dtype=np.int32)
    entities = rows_of(mentions.into_pointers, np.arange(len(mentions)))
    passages = chunk_passages[mentions.sources_of(mentions.into.astype(np.int64))]
    fresh = np.ones(len(entities), dtype=bool)  # edges into an entity are in order of chunk, so of passage
    fresh[1:] = (entities[1:] != entities[:-1]) | (passages[1:] != passages[:-1])
    return np.bincount(entities[fresh], minlength=n_entities).astype(np.int32)
