"""What a study set is made of: the facts of a document, a collection or an entity, and the sentences of its chunks."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.read.rows import ChunkRow
from query_api.entities.catalogue import Entity, EntityCatalogue
from query_api.entities.description import DEFINING, WITHIN, EntityDescriber
from query_api.entities.entity_centrality import entity_centrality
from query_api.entities.entity_facts import End, Fact, Identity
from query_api.index.graph.edges import Numbers
from query_api.index.graph.hand_made_relations import made_nodes
from query_api.index.graph.identifiers import MISSING, Keys
from query_api.index.graph.typed_mentions import (
    TypedMention,
    typed_mentions_in,
    typed_mentions_in_passages,
    typed_mentions_of,
)
from query_api.index.search_snapshot import Snapshot
from query_api.query.evidence_sentences import sentence_of_fact, sentences_of
from query_api.study.sentences import is_self_contained
from schemas.entities import EntityDefinition, EntityRef, Evidence
from schemas.graph_delta import LITERAL_TYPES
from schemas.ids import DocumentKey, normalise_name
from schemas.study import StudySource

MOST_OF_ONE, MOST_MENTIONS = 5_000, 20_000  # of each, and of all of the most central entities of a collection
MOST_FACTS, MOST_CHUNKS = 2_000, 2_000


class StudySentence(NamedTuple):
    """A sentence of a chunk, the mentions that are written in it, and the facts that it states."""

    text: str
    chunk: ChunkRow
    mentions: list[TypedMention]
    facts: list[Fact]


@dataclass(frozen=True)
class StudyMaterial:
    """What one snapshot holds of a scope: of an `entity`, of the document of this number in the graph, or of all of a
    collection. Reads tables: not for the event loop."""

    snapshot: Snapshot
    catalogue: EntityCatalogue
    describer: EntityDescriber
    collection: str
    document: int | None = None
    entity: Entity | None = None
    _subjects: dict[DocumentKey, frozenset[int]] = field(default_factory=dict)
    _rows: dict[int, int | None] = field(default_factory=dict)

    @cached_property
    def facts(self) -> list[Fact]:
        """The strongest first; of a collection those of its most central entities."""
        graph, finder = self.snapshot.graph, self.describer.facts
        if self.document is None:
            found = finder.of_entities(self._keys)
            if self.entity is None:
                made = (node.document for node in made_nodes(graph.segments))
                here = (each for each in made if graph.document_key(each).collection == self.collection)
                found += [fact for document in here for fact in finder.of_node(document)]
            return found[:MOST_FACTS]
        passages = np.array(graph.passages_of_document(self.document), dtype=np.int64)
        return finder.of_statements(graph.statements_in(passages))[:MOST_FACTS]

    @cached_property
    def _keys(self) -> Keys:
        """Those of the names of the entity, or of the most central ones."""
        if self.entity is not None:
            return np.array(self.entity.members, dtype=np.uint64)
        rows = self.catalogue.rows(collection=self.collection, prefix="", entity_type=None)
        rows = rows[np.argsort(-self._centrality[rows], kind="stable")]
        rows = rows[self.catalogue.mentions[rows] <= MOST_OF_ONE]
        rows = rows[np.cumsum(self.catalogue.mentions[rows]) <= MOST_MENTIONS]
        return np.array([key for row in rows.tolist() for key in self.catalogue.members[row]], dtype=np.uint64)

    @cached_property
    def _centrality(self) -> NDArray[np.float64]:
        found = entity_centrality(self.catalogue)
        shares: NDArray[np.float64] = found / max(float(found.max(initial=0.0)), 1e-300)
        return shares

    def centrality(self, row: int) -> float:
        """From 0 to 1, that of the most central entity of all."""
        return float(self._centrality[row])

    def worth(self, end: Identity) -> float:
        """The centrality of an entity; 1 for what people made."""
        return self.centrality(end[1]) if end[0] == "entity" else 1.0

    @property
    def start(self) -> Identity | None:
        """The entity of the scope."""
        row = None if self.entity is None else self.catalogue.row_of(self.entity.members[0])
        return None if row is None else ("entity", row)

    def between_concepts(self, facts: Iterable[Fact]) -> list[Fact]:
        """Those of two entities or nodes that people made; without literals, such as dates."""
        return [fact for fact in facts if all(map(self._is_concept, fact.ends))]

    def _is_concept(self, end: End) -> bool:
        return end.node is not None or (end.row is not None and self.catalogue.type_of(end.row) not in LITERAL_TYPES)

    def facts_of(self, end: Identity) -> list[Fact]:
        """Those of a concept that lead on to others."""
        kind, at = end
        finder = self.describer.facts
        found = finder.of_node(at) if kind == "node" else finder.of_entities(self._members(at))
        return list(filter(self.leads_on, self.between_concepts(found)))

    def _members(self, row: int) -> Keys:
        return np.array(self.catalogue.members[row], dtype=np.uint64)

    def reference(self, end: Identity) -> EntityRef:
        kind, at = end
        return self.describer.reference(End(at, 0, "") if kind == "entity" else End(None, 0, "", at))

    def definition(self, end: Identity) -> EntityDefinition | None:
        """Where a whole sentence says what it is."""
        found = self.describer.definition(self.catalogue[end[1]]) if end[0] == "entity" else None
        return found if found is not None and is_self_contained(found.text) else None

    def leads_on(self, fact: Fact) -> bool:
        """Whether its object is something to learn, not what only describes the subject: `is the oldest river`."""
        kind, at = fact.object.identity
        if kind != "entity" or fact.predicate not in WITHIN:
            return True
        keys = self._members(at)
        said = self.describer.facts.of_entities(keys)
        return len(self.snapshot.graph.about(keys).document) > 0 or any(
            each.predicate == DEFINING and each.subject.row == at for each in said
        )

    def evidence(self, fact: Fact) -> Evidence | None:
        return next(self.describer.evidence(fact), None)

    def source(self, sentence: StudySentence) -> StudySource:
        """Where the sentence is."""
        chunk = sentence.chunk
        start = chunk.start + chunk.text.index(sentence.text)
        found = self.describer.evidence_at(int(self.snapshot.graph.chunks([chunk.id])[0]), sentence.text)
        return StudySource(**dict(found), section=chunk.section, start=start, end=start + len(sentence.text))

    def row_of(self, entity: int) -> int | None:
        """That of the catalogue, which is asked once for each."""
        if entity not in self._rows:
            self._rows[entity] = self.catalogue.row_of(entity)
        return self._rows[entity]

    def subjects(self, key: DocumentKey) -> frozenset[int]:
        """The rows of the entities that the document of this key is about."""
        if key not in self._subjects:
            document = self.snapshot.graph.document(key)
            about = self.snapshot.graph.about_of(np.array([] if document is None else [document], dtype=np.int64))
            self._subjects[key] = frozenset(self.catalogue.rows_of(about.entity).tolist()) - {MISSING}
        return self._subjects[key]

    def mentioned_in(self, key: DocumentKey) -> frozenset[int | None]:
        """The rows of the entities that the document of this key mentions."""
        document = self.snapshot.graph.document(key)
        passages = [] if document is None else self.snapshot.graph.passages_of_document(document)
        mentions = typed_mentions_in_passages(self.snapshot.graph.segments, np.array(passages, dtype=np.int64))
        return frozenset(self.row_of(each.entity) for each in mentions)

    def _chunks(self) -> Numbers:
        """Those of the document, or that mention the entities, the most central first."""
        graph = self.snapshot.graph
        if self.document is not None:
            passages = graph.passages_of_document(self.document)
            return np.array([chunk for each in passages for chunk in graph.chunks_of_passage(each)], dtype=np.int64)
        mentioning = sorted((each.query_index, each.chunk) for each in typed_mentions_of(graph.segments, self._keys))
        return np.array(list(dict.fromkeys(chunk for _, chunk in mentioning))[:MOST_CHUNKS], dtype=np.int64)

    def sentences(self) -> Iterator[StudySentence]:
        """Each text once."""
        graph, numbers = self.snapshot.graph, self._chunks()
        texts = self.snapshot.text.chunks(graph.chunk_id(chunk) for chunk in numbers.tolist())
        mentions: dict[int, list[TypedMention]] = defaultdict(list)
        for mention in typed_mentions_in(graph.segments, numbers):
            mentions[mention.chunk].append(mention)
        stating: dict[int, list[Fact]] = defaultdict(list)
        passages = np.unique(np.array([graph.passage_of_chunk(chunk) for chunk in numbers.tolist()], dtype=np.int64))
        for statement in graph.statements_in(passages):
            if statement.sentence >= 0:
                stating[statement.chunk] += self.describer.facts.of_statements([statement])
        known: set[str] = set()
        for number in numbers.tolist():
            chunk = texts.get(graph.chunk_id(number))
            if chunk is None:  # deleted since
                continue
            for text in sentences_of(chunk.text):
                if text not in known:
                    known.add(text)
                    here = [each for each in mentions[number] if each.surface in text]
                    facts = [fact for fact in stating[number] if _states(chunk, fact) == text]
                    yield StudySentence(text, chunk, here, facts)


def _states(chunk: ChunkRow, fact: Fact) -> str | None:
    subject, target = (normalise_name(end.surface) for end in fact.ends)
    return sentence_of_fact(chunk.text, fact.predicate, subject, target)
