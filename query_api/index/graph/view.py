"""The graph in memory: an immutable base of compressed sparse rows, and small segments over it for what is newer.

A view never changes, so a search reads one consistent state. `with_changes` gives the next view and shares all arrays:
a changed document is marked deleted where it was, its new contribution becomes a segment, and small segments are
merged (a log-structured merge: O'Neil et al. 1996). Documents, passages and chunks are numbered across segments;
entities go by key, the same in each. A link or a mention may name what has not arrived: it counts once that is there.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indexer.graph.contributions import tables_of
from indexer.graph.tables import GraphTables
from query_api.index.graph.csr import entries_of
from query_api.index.graph.edges import (
    About,
    ChunkEdges,
    Links,
    Memory,
    MentionEdges,
    Neighbourhood,
    Numbers,
    Statement,
    joined,
    rows_of,
)
from query_api.index.graph.graph_segments import (
    ViewSegment,
    ViewSegments,
    about,
    frequencies,
    mention_edges,
    names,
    neighbourhoods,
)
from query_api.index.graph.identifiers import MISSING, Keys, document_key_of, entity_key_of, entity_keys_of
from schemas.graph_delta import ENTITY_TYPES, NAMING, Contribution
from schemas.ids import DocumentKey

NO_POSITION = -1


class GraphView:
    """One state of the graph; see the module. Safe to read from several threads."""

    def __init__(self, segments: ViewSegments, position: int) -> None:
        self.position = position
        self._segments = segments

    @classmethod
    def empty(cls) -> Self:
        return cls.build(GraphTables.empty(), NO_POSITION)

    @classmethod
    def build(cls, tables: GraphTables, position: int) -> Self:
        """The view of a snapshot's tables, which hold the contributions topic up to offset `position`."""
        return cls(ViewSegments.whole(tables), position)

    @classmethod
    def from_contributions(cls, contributions: Iterable[Contribution], position: int) -> Self:
        """A view of these documents, at most one contribution for each."""
        return cls.build(tables_of(contributions), position)

    def with_changes(self, changes: Iterable[tuple[DocumentKey, Contribution | None]], position: int) -> Self:
        """The view after these changes, in order: each replaces all its document contributed before; None withdraws it.

        Shares this view's arrays; this view stays as it is. Applying the same changes twice gives an equal view.
        """
        return type(self)(self._segments.with_changes(dict(changes)), position)

    @property
    def segments(self) -> ViewSegments:
        return self._segments

    @property
    def n_documents(self) -> int:
        return sum(part.segment.n_documents - part.n_deleted for part in self._segments)

    def memory(self) -> Memory:
        nodes = sum(part.segment.n_nodes for part in self._segments)
        edges = sum(part.segment.n_edges for part in self._segments)
        size = sum(part.nbytes for part in self._segments)
        return Memory(nodes, edges, size, size / edges if edges else 0.0)

    # Names and numbers.

    def document(self, key: DocumentKey) -> int | None:
        return self._document_of_key(document_key_of(key))

    def _document_of_key(self, key: int) -> int | None:
        found = self._segments.documents_of_keys(np.array([key], dtype=np.uint64))
        return int(found[0]) if found[0] != MISSING else None

    def document_key(self, document: int) -> DocumentKey:
        part = self._segments.of(document, "documents")
        local = document - part.documents
        return DocumentKey(part.segment.collections[local], part.segment.document_ids[local])

    def title(self, document: int) -> str:
        part = self._segments.of(document, "documents")
        return part.segment.titles[document - part.documents]

    def passages(self, passage_ids: Sequence[str]) -> Numbers:
        """The live passages of these ids, MISSING for one that the graph does not hold (yet, or any more)."""
        numbers = np.full(len(passage_ids), MISSING, dtype=np.int64)
        for part in self._segments:
            found = part.segment.passage_ids.positions_of(passage_ids)
            rows = np.flatnonzero(found != MISSING)
            rows = rows[part.live(found[rows])]
            numbers[rows] = found[rows] + part.passages
        return numbers

    def passage_id(self, passage: int) -> str:
        part = self._segments.of(passage, "passages")
        return part.segment.passage_ids.text(passage - part.passages)

    def ids_of_passages(self, passages: Sequence[int]) -> list[str]:
        """`passage_id` of many."""
        ids = np.empty(len(passages), dtype=np.object_)
        for part, rows, local in self._segments.with_nodes(np.array(passages, dtype=np.int64), "passages"):
            ids[rows] = part.segment.passage_ids.texts(local)
        found: list[str] = ids.tolist()
        return found

    def document_of_passage(self, passage: int) -> int:
        part = self._segments.of(passage, "passages")
        return int(part.segment.passage_documents[passage - part.passages]) + part.documents

    def documents_of_passages(self, passages: Numbers) -> Numbers:
        """(n_passages,) the document of each."""
        documents = np.empty(len(passages), dtype=np.int64)
        for part, rows, local in self._segments.with_nodes(passages, "passages"):
            documents[rows] = part.segment.passage_documents[local] + part.documents
        return documents

    def live_documents(self) -> Numbers:
        """The numbers of all documents that are there, ascending."""
        return np.concatenate([np.flatnonzero(~part.deleted) + part.documents for part in self._segments])

    def passages_of_document(self, document: int) -> range:
        """The passages of a document, in the order of its text."""
        part = self._segments.of(document, "documents")
        pointers, local = part.segment.document_passages, document - part.documents
        return range(pointers[local] + part.passages, pointers[local + 1] + part.passages)

    def chunks(self, chunk_ids: Sequence[str]) -> Numbers:
        """The live chunks of these ids, MISSING for one that the graph does not hold."""
        numbers = np.full(len(chunk_ids), MISSING, dtype=np.int64)
        for part in self._segments:
            found = part.segment.chunk_ids.positions_of(chunk_ids)
            rows = np.flatnonzero(found != MISSING)
            rows = rows[part.live(part.segment.passages_of(found[rows]))]
            numbers[rows] = found[rows] + part.chunks
        return numbers

    def chunk_id(self, chunk: int) -> str:
        part = self._segments.of(chunk, "chunks")
        return part.segment.chunk_ids.text(chunk - part.chunks)

    def passage_of_chunk(self, chunk: int) -> int:
        part = self._segments.of(chunk, "chunks")
        return int(part.segment.chunk_passages[chunk - part.chunks]) + part.passages

    def chunks_of_passage(self, passage: int) -> range:
        part = self._segments.of(passage, "passages")
        pointers, local = part.segment.passage_chunks, passage - part.passages
        return range(pointers[local] + part.chunks, pointers[local + 1] + part.chunks)

    def entity(self, collection: str, name: str) -> int | None:
        """The key of the entity with this normalised name, or None when no live document names it."""
        key = entity_key_of(collection, name)
        return key if self.entity_names([key]) else None

    def entities_named(self, names: Sequence[str], collection: str | None = None) -> dict[str, list[int]]:
        """{normalised name: keys of the live entities of that name}, in one collection or in all, keys ascending."""
        collections = self.collections() if collection is None else [collection]
        keys = {key: name for each in collections for key, name in zip(entity_keys_of(each, names), names, strict=True)}
        found: dict[str, list[int]] = {}
        for key in sorted(self.entity_names(list(keys))):
            found.setdefault(keys[key], []).append(key)
        return found

    def collections(self) -> list[str]:
        """The names of the collections that have or had documents here, ascending."""
        return sorted({name for part in self._segments for name in part.segment.collections.distinct().to_pylist()})

    def entity_names(self, entities: Sequence[int]) -> dict[int, tuple[str, str]]:
        """{key: (collection, normalised name)} of those entities that a live document names."""
        return names(list(self._segments.with_entities(np.array(entities, dtype=np.uint64))))

    def labels(self, names: Mapping[int, str]) -> dict[int, str]:
        """{key: a name to show} of entities by their normalised names: as the document about it writes it, else that
        name."""
        best: dict[int, tuple[float, str]] = {}
        for part, _, local in self._segments.with_entities(np.array(list(names), dtype=np.uint64)):
            which, edges, documents = part.segment.about.entering(local)
            weights = part.segment.about_weights[edges]
            for at, edge, document, weight in rows_of(which, edges, documents, weights):
                if not part.deleted[document]:
                    candidate = (-weight, part.segment.surface(edge, document))
                    key = int(part.segment.entity_keys[local[at]])
                    best[key] = min(best.get(key, candidate), candidate)
        return {**names, **{key: surface for key, (_, surface) in best.items()}}

    def persons_with(self, words: Sequence[str]) -> dict[int, tuple[str, str]]:
        """{key: (collection, normalised name)} of the persons whose names hold one of these words among others, and of
        what else has it as its whole name. Costs a look at each word of each name."""
        found: set[int] = set()
        for part in self._segments:
            names, segment = part.segment.names, part.segment
            is_wanted = pc.is_in(names.words.array, pa.array(words, pa.string())).to_numpy(zero_copy_only=False)
            places = np.flatnonzero(is_wanted[names.codes]) if is_wanted.any() else np.empty(0, dtype=np.int64)
            rows = np.unique(np.searchsorted(names.pointers, places, "right") - 1)
            which, edges, chunks = segment.typed.leaving(rows)
            is_alone = (names.pointers[rows + 1] - names.pointers[rows] == 1)[which]
            keep = (segment.typed_types[edges] == ENTITY_TYPES.index("person")) != is_alone
            found.update(segment.entity_keys[rows[which[keep & part.live(segment.passages_of(chunks))]]].tolist())
        return self.entity_names(list(found))

    # Edges.

    def mention_edges_in(self, passages: Numbers) -> MentionEdges:
        """What these passages mention: chunk → entity edges of their chunks, in the order of the text."""
        found: list[MentionEdges] = []
        for part, rows, local in self._segments.with_nodes(passages, "passages"):
            which, chunks = entries_of(part.segment.passage_chunks, local)
            at, _, entities = part.segment.mentions.entering(chunks)
            found.append(
                MentionEdges(
                    rows[which[at]],
                    chunks[at] + part.chunks,
                    local[which[at]] + part.passages,
                    part.segment.entity_keys[entities],
                )
            )
        return MentionEdges(*joined(found, MentionEdges._fields))

    def mention_edges_of(self, entities: Keys) -> MentionEdges:
        """Where these entities are mentioned."""
        return mention_edges(self._segments.with_entities(entities), entities)

    def passage_frequencies(self, entities: Keys) -> Numbers:
        """In how many live passages each entity is mentioned."""
        return frequencies(self._segments.with_entities(entities), len(entities))

    def about(self, entities: Keys, least: float = NAMING) -> About:
        """The documents that these entities name, or, with less than NAMING, that explain them."""
        return about(self._segments.with_entities(entities), entities, least)

    def neighbourhoods(self, entities: Sequence[int], min_mentions: int, max_mentions: int) -> dict[int, Neighbourhood]:
        """Of the entities that a live document names; `mentions` of those that `min_mentions` to `max_mentions`
        passages mention."""
        return neighbourhoods(self._segments, entities, min_mentions, max_mentions)

    def about_of(self, documents: Numbers, least: float = NAMING) -> About:
        """The entities that name these documents, or, with less than NAMING, that they explain."""
        found: list[About] = []
        for part, rows, local in self._segments.with_nodes(documents, "documents"):
            which, edges, entities = part.segment.about.leaving(local)
            weights = part.segment.about_weights[edges]
            keep = weights >= least
            documents_of = local[which[keep]] + part.documents
            keys = part.segment.entity_keys[entities[keep]]
            found.append(About(rows[which[keep]], documents_of, keys, weights[keep]))
        return About(*joined(found, About._fields))

    def links_from(self, passages: Numbers) -> Links:
        """The documents, among those that are there, that these passages link to."""
        found: list[Links] = []
        for part, rows, local in self._segments.with_nodes(passages, "passages"):
            which, chunks = entries_of(part.segment.passage_chunks, local)
            at, edges, targets = part.segment.links.leaving(chunks)
            documents = self._linked(part, targets)
            keep = documents != MISSING
            found.append(
                Links(
                    rows[which[at]][keep],
                    (chunks[at] + part.chunks)[keep],
                    (local[which[at]] + part.passages)[keep],
                    documents[keep],
                    part.segment.link_weights[edges[keep]].astype(np.float32),
                )
            )
        return Links(*joined(found, Links._fields))

    def links_to(self, documents: Numbers) -> Links:
        """The passages that link to these documents."""
        names = np.zeros((2, len(documents)), dtype=np.uint64)
        for part, rows, local in self._segments.with_nodes(documents, "documents"):
            names[:, rows] = part.segment.document_names.keys.reshape(2, -1)[:, local]
        found: list[Links] = []
        for part in self._segments:
            query_index, targets = part.segment.linked_names.find(names.ravel())
            query_index %= max(len(documents), 1)
            leads = self._linked(part, targets) == documents[query_index]
            at, edges, chunks = part.segment.links.entering(targets[leads])
            which = query_index[leads][at]
            passages = part.segment.passages_of(chunks)
            keep = part.live(passages)
            found.append(
                Links(
                    which[keep],
                    (chunks + part.chunks)[keep],
                    (passages + part.passages)[keep],
                    documents[which][keep],
                    part.segment.link_weights[edges[keep]].astype(np.float32),
                )
            )
        return Links(*joined(found, Links._fields))

    def _linked(self, part: ViewSegment, targets: Numbers) -> Numbers:
        """The documents that a segment's links with these targets lead to; MISSING where there is none."""
        segment = part.segment
        return self._segments.linked(segment.linked_documents[targets], segment.linked_names.keys[targets])

    def chunk_edges(self, chunks: Numbers) -> ChunkEdges:
        """Edges that leave or reach these chunks within their documents; `other` is the far end."""
        found: list[ChunkEdges] = []
        for part, rows, local in self._segments.with_nodes(chunks, "chunks"):
            reached = zip(part.segment.edges.leaving(local), part.segment.edges.entering(local), strict=True)
            query_index, edges, far = (np.concatenate(both) for both in reached)
            found.append(
                ChunkEdges(
                    rows[query_index],
                    local[query_index] + part.chunks,
                    far + part.chunks,
                    part.segment.edge_kinds[edges],
                    part.segment.edge_weights[edges].astype(np.float32),
                )
            )
        return ChunkEdges(*joined(found, ChunkEdges._fields))

    def predicates(self) -> list[str]:
        """Those of all statements and relations, in alphabetical order."""
        of_each = ((part.segment.predicates, part.segment.relation_predicates) for part in self._segments)
        return sorted({each for both in of_each for column in both for each in column.distinct().to_pylist()})

    def statements_in(self, passages: Numbers) -> list[Statement]:
        """What these passages state."""
        found: list[Statement] = []
        for part, rows, local in self._segments.with_nodes(passages, "passages"):
            which, chunks = entries_of(part.segment.passage_chunks, local)
            at, statements = part.segment.statements.entries(chunks)
            found.extend(part.statements(rows[which[at]], statements))
        return found

    def statements_with(self, entities: Keys, *, denied: bool = False) -> list[Statement]:
        """The statements, or denials, in which these entities have a part."""
        found: list[Statement] = []
        for part, rows, local in self._segments.with_entities(entities):
            which, _, statements = part.segment.roles.entering(local)
            chunks = part.segment.statements.of_entries(statements)
            keep = part.live(part.segment.passages_of(chunks))
            found.extend(part.statements(rows[which][keep], statements[keep], denied=denied))
        return found

    def statements_of(
        self, collection: str, predicates: Collection[str] | None = None, *, denied: bool = False
    ) -> list[Statement]:
        """What the documents of a collection state, or deny, with one of these predicates or any; by their keys."""
        found: list[Statement] = []
        for part in self._segments:
            numbers = part.statements_in(collection, predicates, denied=denied)
            found.extend(part.statements(np.zeros_like(numbers), numbers, denied=denied))
        return sorted(found, key=lambda each: each.key)
