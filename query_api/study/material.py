"""What a study set is made of: the facts of a document, a collection or an entity, and the sentences of its chunks."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from indexer.read.rows import ChunkRow
from query_api.entities.catalogue import LITERAL_TYPES, Entity, EntityCatalogue
from query_api.entities.description import EntityDescriber
from query_api.entities.entity_centrality import entity_centrality
from query_api.entities.entity_facts import Fact
from query_api.index.graph.edges import Numbers
from query_api.index.graph.identifiers import Keys
from query_api.index.graph.typed_mentions import TypedMention, typed_mentions_in, typed_mentions_of
from query_api.index.search_snapshot import Snapshot
from query_api.query.evidence_sentences import sentence_of_fact, sentences_of
from schemas.ids import DocumentKey, normalise_name

MOST_MENTIONS = 20_000  # of the most central entities of a collection, which are looked at
MOST_FACTS, MOST_CHUNKS = 2_000, 3_000


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

    @cached_property
    def facts(self) -> list[Fact]:
        """The strongest first; of a collection those of its most central entities."""
        graph, finder = self.snapshot.graph, self.describer.facts
        if self.document is None:
            return finder.of_entities(self._keys)[:MOST_FACTS]
        passages = np.array(graph.passages_of_document(self.document), dtype=np.int64)
        return finder.of_statements(graph.statements_in(passages))[:MOST_FACTS]

    @cached_property
    def _keys(self) -> Keys:
        """Those of the names of the entity, or of the most central ones."""
        if self.entity is not None:
            return np.array(self.entity.members, dtype=np.uint64)
        rows = self.catalogue.rows(collection=self.collection, prefix="", entity_type=None)
        rows = rows[np.argsort(-self._centrality[rows], kind="stable")]
        rows = rows[np.cumsum(self.catalogue.mentions[rows]) <= MOST_MENTIONS]
        return np.array([key for row in rows.tolist() for key in self.catalogue.members[row]], dtype=np.uint64)

    @cached_property
    def _centrality(self) -> NDArray[np.float64]:
        found = entity_centrality(self.catalogue)
        return found / max(found.max(initial=0.0), np.finfo(np.float64).tiny)

    def centrality(self, row: int) -> float:
        """From 0 to 1, that of the most central entity of all."""
        return float(self._centrality[row])

    def concepts(self) -> list[int]:
        """The rows of the entities that its facts join, the most central first; without literals, such as dates."""
        rows = {end.row for fact in self.facts for end in fact.ends if end.row is not None}
        named = [row for row in rows if self.catalogue.type_of(row) not in LITERAL_TYPES]
        return sorted(named, key=lambda row: (-self.centrality(row), row))

    def subjects(self, key: DocumentKey) -> frozenset[int]:
        """The rows of the entities that the document of this key is about."""
        if key not in self._subjects:
            document = self.snapshot.graph.document(key)
            about = self.snapshot.graph.about_of(np.array([] if document is None else [document], dtype=np.int64))
            self._subjects[key] = frozenset(self.catalogue.rows_of(about.entity).tolist())
        return self._subjects[key]

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
        known = set()
        for number in numbers.tolist():
            chunk = texts.get(graph.chunk_id(number))
            for text in sentences_of(chunk.text) if chunk is not None else ():
                if text not in known:
                    known.add(text)
                    here = [each for each in mentions[number] if each.surface in text]
                    facts = [fact for fact in stating[number] if _states(chunk, fact) == text]
                    yield StudySentence(text, chunk, here, facts)


def _states(chunk: ChunkRow, fact: Fact) -> str | None:
    subject, target = (normalise_name(end.surface) for end in fact.ends)
    return sentence_of_fact(chunk.text, fact.predicate, subject, target)
