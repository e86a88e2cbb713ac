"""The segments of a view, numbered through, with deleted documents and merges; and look-ups over all of them.

Every state is immutable: a change makes a new tuple of segments, which shares the arrays of all that stay.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from indexer.graph.contributions import tables_of
from indexer.graph.merge import merge
from indexer.graph.tables import TABLES, GraphTables
from query_api.index.graph.builder import segment_of
from query_api.index.graph.edges import (
    About,
    MentionEdges,
    Neighbourhood,
    Numbers,
    Role,
    Statement,
    joined,
    rows_of,
)
from query_api.index.graph.identifiers import MISSING, Keys, document_key_of
from query_api.index.graph.segment import Deleted, Segment
from query_api.index.lsm import settled
from schemas.graph_delta import DENIAL, NAMING, Contribution
from schemas.ids import DocumentKey


@dataclass(frozen=True, slots=True)
class ViewSegment:
    """A segment within a view: which of its documents are deleted, and where its numbers begin."""

    segment: Segment
    deleted: Deleted
    n_deleted: int
    documents: int
    passages: int
    chunks: int
    tables: GraphTables | None

    @property
    def nbytes(self) -> int:
        kept = 0 if self.tables is None else sum(self.tables.table(name).nbytes for name in TABLES)
        return self.segment.nbytes + self.deleted.nbytes + kept

    def live(self, passages: NDArray[np.integer]) -> NDArray[np.bool_]:
        if not self.n_deleted:
            return np.ones(len(passages), dtype=bool)
        deleted: Deleted = self.deleted[self.segment.passage_documents[passages]]
        return ~deleted

    def mentions_of(self, entities: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """(index into `entities`, chunk, passage) wherever the segment mentions them, deleted or live."""
        which, _, chunks = self.segment.mentions.leaving(entities)
        return which, chunks, self.segment.passages_of(chunks)

    def is_named(self, entity: int) -> bool:
        """Whether a live document of the segment mentions, states or is about the entity."""
        local = np.array([entity])
        segment = self.segment
        documents = segment.about.entering(local).others
        if len(documents) and not self.deleted[documents].all():
            return True
        for mentions in (segment.mentions, segment.typed):
            if self.live(segment.passages_of(mentions.leaving(local).others)).any():
                return True
        chunks = segment.statements.of_entries(segment.roles.entering(local).others)
        return bool(self.live(segment.passages_of(chunks)).any())

    def statements_in(
        self, collection: str | None = None, predicates: Collection[str] | None = None, *, denied: bool = False
    ) -> Numbers:
        """What live documents, of one collection or of all, state or deny, with one of these predicates or any."""
        segment = self.segment
        keep = segment.extractors.among([DENIAL]) == denied
        if predicates is not None:
            keep &= segment.predicates.among(predicates)
        numbers = np.flatnonzero(keep)
        documents = segment.passage_documents[segment.passages_of(segment.statements.of_entries(numbers))]
        of_documents = ~self.deleted if collection is None else segment.collections.among([collection]) & ~self.deleted
        return numbers[of_documents[documents]]

    def statements(self, query_index: Numbers, statements: Numbers, *, denied: bool = False) -> Iterator[Statement]:
        """Those of these statements that state, or deny, something; `query_index` has for each an index into the
        query."""
        segment = self.segment
        chunks = segment.statements.of_entries(statements)
        which, edges, entities = segment.roles.leaving(statements)
        roles: list[list[Role]] = [[] for _ in statements]
        keys = segment.entity_keys[entities].tolist()
        written = zip(segment.role_names.of(edges), keys, segment.role_surfaces.of(edges), strict=True)
        for at, role in zip(which.tolist(), written, strict=True):
            roles[at].append(Role(*role))
        columns = (
            query_index,
            segment.statement_keys[statements],
            chunks + self.chunks,
            segment.passages_of(chunks) + self.passages,
            segment.confidences[statements],
            segment.statement_sentences[statements].astype(np.int64) - 1,
        )
        predicates, extractors = segment.predicates.of(statements), segment.extractors.of(statements)
        for (at, key, chunk, passage, confidence, sentence), predicate, extractor, of_one in zip(
            rows_of(*columns), predicates, extractors, roles, strict=True
        ):
            if denied == (extractor == DENIAL):
                yield Statement(at, key, chunk, passage, predicate, confidence, sentence, extractor, tuple(of_one))


class _Part(NamedTuple):
    """A segment, which of its documents are deleted, and the tables of one that may be merged with another."""

    segment: Segment
    deleted: Deleted
    tables: GraphTables | None

    @classmethod
    def whole(cls, segment: Segment, tables: GraphTables | None = None) -> "_Part":
        return cls(segment, np.zeros(segment.n_documents, dtype=bool), tables)

    @property
    def size(self) -> int:
        """In documents."""
        return len(self.deleted)

    @property
    def live_count(self) -> int:
        return int((~self.deleted).sum())

    def compacted(self) -> "_Part":
        tables = self.live_tables()
        return _Part.whole(segment_of(tables), tables)

    def merged(self, newer: "_Part") -> "_Part":
        """None may be live in both."""
        tables = merge(self.live_tables(), (), newer.live_tables())
        return _Part.whole(segment_of(tables), tables)

    def live_tables(self) -> GraphTables:
        """Raises ValueError for the base, whose tables are not kept."""
        if self.tables is None:
            raise ValueError("The base of a view is not merged.")
        gone = np.flatnonzero(self.deleted)
        if not len(gone):
            return self.tables
        of_each = zip(self.segment.collections.of(gone), self.segment.document_ids.of(gone), strict=True)
        return merge(self.tables, [DocumentKey(*each) for each in of_each], GraphTables.empty())


class ViewSegments(tuple[ViewSegment, ...]):
    """The base, then the newer segments, oldest first."""

    __slots__ = ()

    @classmethod
    def numbered(cls, parts: Iterable[_Part]) -> Self:
        numbered: list[ViewSegment] = []
        documents = passages = chunks = 0
        for segment, deleted, tables in parts:
            numbered.append(ViewSegment(segment, deleted, int(deleted.sum()), documents, passages, chunks, tables))
            documents += segment.n_documents
            passages += segment.n_passages
            chunks += segment.n_chunks
        return cls(numbered)

    @classmethod
    def whole(cls, tables: GraphTables) -> Self:
        """One segment without deleted documents, which stays as it is."""
        return cls.numbered([_Part.whole(segment_of(tables))])

    def with_changes(self, newest: Mapping[DocumentKey, Contribution | None]) -> Self:
        """What these documents contributed is deleted; what they contribute now is the newest segment; the base stays
        as it is."""
        keys = np.array([document_key_of(key) for key in newest], dtype=np.uint64)
        parts = []
        for part in self:
            found = part.segment.find_documents(keys)
            found = found[found != MISSING]
            deleted = part.deleted
            if len(found) and not deleted[found].all():
                deleted = deleted.copy()
                deleted[found] = True
            parts.append(_Part(part.segment, deleted, part.tables))
        contributions = [contribution for contribution in newest.values() if contribution is not None]
        if contributions:
            tables = tables_of(contributions)
            parts.append(_Part.whole(segment_of(tables), tables))
        base, *newer = parts
        return self.numbered([base, *settled(newer)])

    def of(self, number: int, kind: str) -> ViewSegment:
        """The segment of a node of this kind: `documents`, `passages` or `chunks`."""
        for part in reversed(self):
            if getattr(part, kind) <= number:
                return part
        raise IndexError(f"There is no number {number} of {kind}.")

    def with_nodes(self, numbers: Numbers, kind: str) -> Iterator[tuple[ViewSegment, Numbers, Numbers]]:
        """For each segment that holds some: (segment, indices into `numbers`, their numbers there)."""
        if len(self) == 1:
            if len(numbers):
                yield self[0], np.arange(len(numbers)), numbers
            return
        begins = np.array([getattr(part, kind) for part in self])
        at = np.searchsorted(begins, numbers, side="right") - 1
        for number in np.unique(at).tolist():
            part = self[number]
            rows = np.flatnonzero(at == number)
            yield part, rows, numbers[rows] - begins[number]

    def with_entities(self, entities: Keys) -> Iterator[tuple[ViewSegment, Numbers, Numbers]]:
        """For each segment that has some: (segment, indices into `entities`, their numbers there)."""
        for part in self:
            found = part.segment.find_entities(entities)
            rows = np.flatnonzero(found != MISSING)
            if len(rows):
                yield part, rows, found[rows]

    def documents_of_keys(self, keys: Keys) -> Numbers:
        """Live documents by key, MISSING where there is none."""
        numbers = np.full(len(keys), MISSING, dtype=np.int64)
        for part in self:
            found = part.segment.find_documents(keys)
            rows = np.flatnonzero(found != MISSING)
            rows = rows[~part.deleted[found[rows]]]
            numbers[rows] = found[rows] + part.documents
        return numbers

    def linked(self, keys: Keys, names: Keys) -> Numbers:
        """The live documents that links lead to: that of the key, else one that links find by the name, of several the
        one with the shortest id; MISSING where there is none."""
        found = self.documents_of_keys(keys)
        missing = np.flatnonzero(found == MISSING)
        if not len(missing):
            return found
        named = []
        for part in self:
            which, local = part.segment.document_names.find(names[missing])
            local %= max(part.segment.n_documents, 1)
            live = ~part.deleted[local]
            named.append((missing[which[live]], local[live] + part.documents))
        rows, documents = (np.concatenate(column) for column in zip(*named, strict=True))
        found[rows] = documents
        for row in np.flatnonzero(np.bincount(rows) > 1).tolist():
            found[row] = min(documents[rows == row].tolist(), key=self._by_id)
        return found

    def _by_id(self, document: int) -> tuple[int, str]:
        part = self.of(document, "documents")
        identifier = part.segment.document_ids[document - part.documents]
        return len(identifier), identifier


Located = Iterable[tuple[ViewSegment, Numbers, Numbers]]  # as `ViewSegments.with_entities` gives it


def neighbourhoods(
    segments: ViewSegments, entities: Sequence[int], min_mentions: int, max_mentions: int
) -> dict[int, Neighbourhood]:
    """Of each entity that a live document names; mentions of those that `min_mentions` to `max_mentions` passages
    mention."""
    keys = np.array(entities, dtype=np.uint64)
    located = list(segments.with_entities(keys))
    found = names(located)
    abouts: list[list[tuple[int, float]]] = [[] for _ in entities]
    of_about = about(located, keys)
    for at, document, weight in rows_of(of_about.query_index, of_about.document, of_about.weight):
        abouts[at].append((document, weight))
    counts = frequencies(located, len(keys))
    few = (counts >= min_mentions) & (counts <= max_mentions)
    of_each: list[list[tuple[int, int]]] = [[] for _ in entities]
    shared = mention_edges([(part, rows[few[rows]], local[few[rows]]) for part, rows, local in located], keys)
    for at, chunk, passage in rows_of(shared.query_index, shared.chunk, shared.passage):
        of_each[at].append((chunk, passage))
    return {
        entity: Neighbourhood(found[entity][1], count, of_entity, mentions_of_it)
        for entity, count, of_entity, mentions_of_it in zip(entities, counts.tolist(), abouts, of_each, strict=True)
        if entity in found
    }


def names(located: Located) -> dict[int, tuple[str, str]]:
    """{key: (collection, normalised name)} of those entities that a live document names."""
    found: dict[int, tuple[str, str]] = {}
    for part, _, local in located:
        called = zip(part.segment.entity_keys[local].tolist(), part.segment.names_of(local), strict=True)
        for at, (key, name) in zip(local.tolist(), called, strict=True):
            if key not in found and (not part.n_deleted or part.is_named(at)):
                found[key] = name
    return found


def frequencies(located: Located, n_entities: int) -> Numbers:
    """(n_entities,) in how many live passages each is mentioned."""
    counts = np.zeros(n_entities, dtype=np.int64)
    for part, rows, local in located:
        counts[rows] += part.segment.passage_frequencies[local]
        if part.n_deleted:
            which, _, passages = part.mentions_of(local)
            gone = ~part.live(passages)
            lost = np.unique(np.stack((rows[which[gone]], passages[gone])), axis=1)
            np.subtract.at(counts, lost[0], 1)
    return counts


def about(located: Located, entities: Keys, least: float = NAMING) -> About:
    """The documents that are about these entities with such a weight."""
    found: list[About] = []
    for part, rows, local in located:
        which, edges, documents = part.segment.about.entering(local)
        keep = (part.segment.about_weights[edges] >= least) & ~part.deleted[documents]
        found.append(
            About(
                rows[which][keep],
                (documents + part.documents)[keep],
                entities[rows[which]][keep],
                part.segment.about_weights[edges[keep]],
            )
        )
    return About(*joined(found, About._fields))


def mention_edges(located: Located, entities: Keys) -> MentionEdges:
    """Where these entities are mentioned."""
    found: list[MentionEdges] = []
    for part, rows, local in located:
        which, chunks, passages = part.mentions_of(local)
        keep = part.live(passages) if part.n_deleted else slice(None)
        query_index = rows[which[keep]]
        found.append(
            MentionEdges(query_index, chunks[keep] + part.chunks, passages[keep] + part.passages, entities[query_index])
        )
    return MentionEdges(*joined(found, MentionEdges._fields))
