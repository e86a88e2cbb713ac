"""A segment: an immutable graph of some documents in compressed sparse rows, both directions, by local numbers.

Documents stand in the order of their keys, passages by (document, ordinal), chunks by passage: so the passages of a
document and the chunks of a passage are neighbours in memory and need no list of their own. Entities stand in the order
in which the chunks first name them: most are named by one, which so needs no list either, and names of one text lie
together. Numbers are kept in as many bits as they need, see `arrays`.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from query_api.graph.arrays.edges import Links, Naming, TwoWay, naming_order
from query_api.graph.arrays.packed import Ascending, Packed, Skewed
from query_api.graph.arrays.texts import Codes, Texts, texts_of
from query_api.graph.arrays.weights import Weights
from query_api.graph.columns import GraphColumns, Keys
from query_api.graph.identifiers import MISSING, Identifiers, KeyOrder, find, find_all

Positions = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Segment:
    """The arrays; see the module. Edge properties are in the order of their TwoWay's edges."""

    document_keys: Keys
    collections: Codes
    document_ids: Texts
    titles: Texts
    document_passages: Ascending  # pointers: the passages of document d are [d]..[d + 1]

    passage_ids: Identifiers
    passage_documents: Ascending
    passage_chunks: Ascending  # pointers

    chunk_ids: Identifiers
    chunk_passages: Ascending

    entity_keys: Keys
    by_entity_key: KeyOrder
    entity_collections: Codes
    names: Texts
    passage_frequencies: Skewed  # in how many passages an entity is mentioned

    mentions: Naming  # chunk → entity
    mention_counts: Skewed
    mention_sentences: Skewed  # the first of each mention's, counted from the chunk's first; 0 where it is unknown
    chunk_sentences: Packed  # the first sentence that a mention of the chunk is in

    about: TwoWay  # document → entity
    about_weights: Weights
    about_surfaces: Texts  # empty where it is the document's title

    statement_chunks: Ascending
    statement_keys: Keys
    predicates: Codes
    confidences: Weights
    statement_sentences: Packed  # one more than the number; 0 where it stands in none
    roles: TwoWay  # statement → entity
    role_names: Codes

    edges: TwoWay  # chunk → chunk
    edge_kinds: Packed
    edge_weights: Weights  # to three digits, as those below and confidences

    links: Links  # chunk → document
    link_weights: Weights

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
        evidence = len(self.mentions) + len(self.about) + len(self.roles) + len(self.links)
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
        placed = _placed(columns, _found(document_keys, columns.chunk_documents, "document"))
        n_chunks, n_passages = len(placed.chunks), len(placed.passage_documents)
        chunk_keys = columns.chunk_ids[placed.chunks, 0]

        def chunk(keys: Keys) -> Positions:
            return _known(find_all(chunk_keys, keys), "chunk")

        named = _named_entities(columns)
        mention_chunks = chunk(columns.mention_chunks)
        mentions = naming_order(mention_chunks, named.of_mentions, len(named.keys))
        entity_keys = np.empty_like(named.keys)
        entity_keys[mentions.numbers] = named.keys
        entity_rows = np.empty_like(named.rows)
        entity_rows[mentions.numbers] = named.rows
        naming_chunks = mention_chunks[mentions.edges]
        naming_entities = mentions.numbers[named.of_mentions[mentions.edges]]
        chunk_sentences, sentences = _sentences(columns.mention_sentences[mentions.edges], naming_chunks, n_chunks)

        about_documents = _found(document_keys, columns.about_documents, "document")
        about_entities = mentions.numbers[named.of_documents]
        about = np.lexsort((about_entities, about_documents))
        surfaces = _unlike_titles(
            columns.about_surfaces.take(pa.array(about)), titles.take(pa.array(about_documents[about]))
        )

        statement_chunks = chunk(columns.statement_chunks)
        stated = np.lexsort((columns.statement_keys, statement_chunks))
        statement_keys = columns.statement_keys[stated]
        role_statements = _known(find_all(statement_keys, columns.role_statements), "statement")
        role_entities = mentions.numbers[named.of_roles]
        roles = np.lexsort((role_entities, role_statements))

        sources, targets = chunk(columns.edge_sources), chunk(columns.edge_targets)
        edges = np.lexsort((columns.edge_kinds, targets, sources))
        link_chunks = chunk(columns.link_chunks)
        links = np.lexsort((columns.link_documents, link_chunks))

        return cls(
            document_keys=document_keys,
            collections=Codes.build(columns.document_collections, documents),
            document_ids=texts_of(columns.document_ids.take(pa.array(documents))),
            titles=texts_of(titles),
            document_passages=Ascending.pointers(placed.passage_documents, len(documents)),
            passage_ids=Identifiers(placed.passage_ids),
            passage_documents=Ascending(placed.passage_documents),
            passage_chunks=Ascending.pointers(placed.chunk_passages, n_passages),
            chunk_ids=Identifiers(columns.chunk_ids[placed.chunks]),
            chunk_passages=Ascending(placed.chunk_passages),
            entity_keys=entity_keys,
            by_entity_key=KeyOrder(entity_keys),
            entity_collections=Codes.build(columns.entity_collections, entity_rows),
            names=texts_of(columns.entity_names.take(pa.array(entity_rows))),
            passage_frequencies=_passage_frequencies(
                placed.chunk_passages[naming_chunks], naming_entities, len(entity_keys)
            ),
            mentions=Naming.build(naming_chunks, naming_entities, mentions.is_first, n_chunks, len(entity_keys)),
            mention_counts=Skewed(columns.mention_counts[mentions.edges]),
            mention_sentences=sentences,
            chunk_sentences=chunk_sentences,
            about=TwoWay.build(about_documents[about], about_entities[about], len(documents), len(entity_keys)),
            about_weights=Weights.build(columns.about_weights[about]),
            about_surfaces=texts_of(surfaces),
            statement_chunks=Ascending(statement_chunks[stated]),
            statement_keys=statement_keys,
            predicates=Codes.build(columns.statement_predicates, stated),
            confidences=_rounded(columns.statement_confidences[stated]),
            statement_sentences=Packed(columns.statement_sentences[stated] + 1),
            roles=TwoWay.build(role_statements[roles], role_entities[roles], len(stated), len(entity_keys)),
            role_names=Codes.build(columns.role_names, roles),
            edges=TwoWay.build(sources[edges], targets[edges], n_chunks, n_chunks),
            edge_kinds=Packed(columns.edge_kinds[edges]),
            edge_weights=_rounded(columns.edge_weights[edges]),
            links=Links.build(link_chunks[links], columns.link_documents[links]),
            link_weights=_rounded(columns.link_weights[links]),
        )

    def find_documents(self, keys: Keys) -> Positions:
        return find(self.document_keys, keys)

    def find_entities(self, keys: Keys) -> Positions:
        return self.by_entity_key.find(self.entity_keys, keys)

    def called(self, entities: Positions) -> list[tuple[str, str]]:
        """(collection, normalised name) of each of these entities."""
        return list(zip(self.entity_collections.of(entities), self.names.of(entities), strict=True))

    def surface(self, about: int, document: int) -> str:
        """How a document writes the name of what it is about."""
        return self.about_surfaces[about] or self.titles[document]

    def first_sentences(self, mentions: Positions, chunks: Positions) -> Positions:
        """The first sentence number of each of these mentions, which are in these chunks; MISSING where unknown."""
        above = self.mention_sentences.at(mentions)
        return np.where(above > 0, self.chunk_sentences.at(chunks) + above - 1, MISSING)


class _Placed(NamedTuple):
    """Chunks in the order of their passages: which row of the columns each is, and the number of its passage. The ids
    (n_passages, 2) and the documents of the passages."""

    chunks: Positions
    chunk_passages: Positions
    passage_ids: Keys
    passage_documents: Positions


def _placed(columns: GraphColumns, chunk_documents: Positions) -> _Placed:
    chunks = np.lexsort(
        (columns.chunk_ordinals, columns.chunk_passage_ids[:, 0], columns.chunk_passages, chunk_documents)
    )
    of_passage = columns.chunk_passage_ids[chunks]
    begins = np.ones(len(chunks), dtype=bool)
    begins[1:] = (of_passage[1:] != of_passage[:-1]).any(axis=1)
    return _Placed(chunks, np.cumsum(begins) - 1, of_passage[begins], chunk_documents[chunks][begins])


class _Named(NamedTuple):
    """The keys of the entities that an edge names, ascending; for each a row that holds its name; which of them the
    mentions, the documents and the roles name."""

    keys: Keys
    rows: Positions
    of_mentions: Positions
    of_documents: Positions
    of_roles: Positions


def _named_entities(columns: GraphColumns) -> _Named:
    naming = (columns.mention_entities, columns.about_entities, columns.role_entities)
    keys, numbers = np.unique(np.concatenate(naming), return_inverse=True)
    rows = _known(find_all(columns.entity_keys, keys), "entity")
    return _Named(keys, rows, *np.split(numbers, np.cumsum([len(each) for each in naming])[:-1]))


def _found(sorted_keys: Keys, wanted: Keys, kind: str) -> Positions:
    return _known(find(sorted_keys, wanted), kind)


def _known(positions: Positions, kind: str) -> Positions:
    if (positions == MISSING).any():
        raise ValueError(
            f"An edge of the graph names a {kind} that the graph does not hold; build from a whole snapshot."
        )
    return positions


def _unlike_titles(surfaces: pa.Array, titles: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(surfaces, titles), pa.scalar("", pa.string()), surfaces)


def _sentences(firsts: NDArray[np.int32], chunks: Positions, n_chunks: int) -> tuple[Packed, Skewed]:
    """`chunk_sentences` and `mention_sentences` from the first sentence of each mention, -1 where it is unknown; the
    chunks ascend."""
    known = firsts >= 0
    of_chunks, begins = np.unique(chunks[known], return_index=True)
    lowest = np.zeros(n_chunks, dtype=np.int64)
    if len(begins):
        lowest[of_chunks] = np.minimum.reduceat(firsts[known], begins)
    return Packed(lowest), Skewed(np.where(known, firsts - lowest[chunks] + 1, 0))


def _passage_frequencies(passages: Positions, entities: Positions, n_entities: int) -> Skewed:
    """How many different passages mention each entity."""
    pairs = np.sort(entities * (1 + passages.max(initial=0)) + passages)
    fresh = np.ones(len(pairs), dtype=bool)
    fresh[1:] = pairs[1:] != pairs[:-1]
    return Skewed(np.bincount(pairs[fresh] // (1 + passages.max(initial=0)), minlength=n_entities))


def _rounded(weights: NDArray[np.float32]) -> Weights:
    """To the 11 bits of a 16-bit number: few are different then."""
    return Weights.build(weights.astype(np.float16))
