"""What the graph has of an entity: definition, statements with their sentences, documents, neighbours."""

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

import numpy as np

from indexer.extraction.metadata import EXTRACTOR as HEADER
from indexer.read.rows import ChunkRow
from indexer.schema import DocumentRow
from query_api.entities.catalogue import Entity, EntityCatalogue
from query_api.entities.consolidation import Consolidated, consolidated
from query_api.entities.entity_facts import End, Fact, FactFinder
from query_api.index.graph.edges import Numbers, Statement
from query_api.index.graph.explorer import NodeRef
from query_api.index.graph.hand_made_relations import made_nodes
from query_api.index.graph.identifiers import Keys
from query_api.index.graph.typed_mentions import TypedMention, labels_of, typed_mentions_in, typed_mentions_of
from query_api.index.graph.view import GraphView
from query_api.query.analysis import normalise_text
from query_api.query.evidence_sentences import sentence_holding, sentence_of_fact, sentences_of
from schemas.api import GraphEdge
from schemas.clock import rfc3339
from schemas.entities import (
    Alias,
    ConsolidatedRelation,
    EntityDefinition,
    EntityDetail,
    EntityDocument,
    EntityNeighbour,
    EntityRef,
    EntitySummary,
    Evidence,
    StatementDetail,
    StatementPart,
)
from schemas.graph_delta import LITERAL_TYPES, NAMING
from schemas.ids import DocumentKey, normalise_name

EVIDENCE_EACH = 3
MAX_CHUNKS = 1_000  # of an entity's mentions, in which its neighbours are looked for
DEFINING = "is_a"
NEEDS, NEEDED_BY = frozenset(("requires", "depends_on", "builds_on")), frozenset(("prerequisite_of",))
WITHIN = frozenset((DEFINING, "part_of", "subtopic_of", "specialization_of", "variant_of"))
FILED_UNDER = frozenset(("domain", "topic", "category", "subject", "area"))
MAX_FILED = 20  # documents by which the domain is found

Texts = Mapping[str, ChunkRow]
ChunkReader = Callable[[Iterable[str]], Texts]
DocumentReader = Callable[[Iterable[DocumentKey]], Mapping[DocumentKey, DocumentRow]]


class EntityDescriber:
    """Describes entities of one view and its catalogue. `chunks` reads texts, `documents` rows; they may block."""

    def __init__(
        self, view: GraphView, catalogue: EntityCatalogue, chunks: ChunkReader, documents: DocumentReader
    ) -> None:
        self._view = view
        self._catalogue = catalogue
        self._chunks = chunks
        self._document_rows = documents
        self.facts = FactFinder(view, catalogue)

    def describe(
        self, entity: Entity, limit: int, since_ms: int | None = None, earlier: "EntityDescriber | None" = None
    ) -> EntityDetail:
        """With at most `limit` of each kind, the strongest and most frequent first. With `since_ms` (milliseconds since
        1970) only the statements and documents whose records are from then or later; and with an `earlier` view, of the
        same catalogue, the facts that were stated there and no longer are."""
        keys = np.array(entity.members, dtype=np.uint64)
        mentions = list(typed_mentions_of(self._view.segments, keys))
        facts = self.facts.of_entities(keys)
        documents = self._documents(keys, mentions)
        neighbours, near = self._neighbours(entity, mentions, facts)
        treating = [each.document for each in mentions]
        related = consolidated(self._view, self._catalogue, list(dict.fromkeys(treating)), near)
        withdrawn = None if earlier is None else earlier.facts_missing_from(facts, keys)
        if since_ms is not None:
            facts, documents = self._since(since_ms, facts, documents)
        names = labels_of(mentions)
        return EntityDetail(
            **summary(entity).model_dump(),
            definition=self._definition(entity, facts, documents),
            domain=self._domain(entity, documents),
            prerequisites=self._joined(entity, facts, NEEDS, NEEDED_BY)[:limit],
            parents=self._joined(entity, facts, WITHIN, frozenset())[:limit],
            subtopics=self._joined(entity, facts, frozenset(), WITHIN)[:limit],
            example=self._first_mention(mentions),
            aliases=[Alias(surface=surface, mentions=times) for surface, times in list(names.items())[:limit]],
            statements=self.details(facts[:limit]),
            documents=documents[:limit],
            document_count=len(documents),
            neighbours=neighbours[:limit],
            consolidated=[self._consolidated(each) for each in related[:limit]],
            truncated=max(map(len, (names, facts, documents, neighbours, related, withdrawn or ()))) > limit,
            graph_position=self._view.position,
            withdrawn=None if earlier is None or withdrawn is None else earlier.details(withdrawn[:limit]),
        )

    def facts_missing_from(self, later: Sequence[Fact], keys: Keys) -> list[Fact]:
        """What documents state here of these entities, and the later facts do not have from documents."""
        stated = {fact.identity for fact in later if fact.statements}
        return [fact for fact in self.facts.of_entities(keys) if fact.statements and fact.identity not in stated]

    def _since(
        self, since_ms: int, facts: Sequence[Fact], documents: Sequence[EntityDocument]
    ) -> tuple[list[Fact], list[EntityDocument]]:
        rows = self._document_rows([DocumentKey(each.collection, each.document_id) for each in documents])
        recent = {key for key, row in rows.items() if row.timestamp_ms >= since_ms}

        def is_recent(statement: Statement) -> bool:
            return self._view.document_key(self._view.document_of_passage(statement.passage)) in recent

        return (
            [fact for fact in facts if any(map(is_recent, fact.statements))],
            [each for each in documents if DocumentKey(each.collection, each.document_id) in recent],
        )

    def _consolidated(self, found: Consolidated) -> ConsolidatedRelation:
        return ConsolidatedRelation(
            entity=self.reference(End(found.row, 0, "")),
            documents=len(found.documents),
            document_ids=[self._view.document_key(each).document_id for each in found.documents[:EVIDENCE_EACH]],
        )

    def of_statements(self, statements: Iterable[Statement]) -> list[StatementDetail]:
        """What these state, each fact once, the strongest first."""
        return self.details(self.facts.of_statements(statements))

    def details(self, facts: Sequence[Fact], evidence_each: int = EVIDENCE_EACH) -> list[StatementDetail]:
        texts = self._texts_of(facts, evidence_each)
        return [self._statement(fact, texts, evidence_each) for fact in facts]

    def of_chunk(self, chunk: int) -> tuple[list[EntityRef], list[StatementDetail]]:
        """The entities that a chunk mentions, in the order of the catalogue, and what it states."""
        mentions = typed_mentions_in(self._view.segments, np.array([chunk]))
        rows = {row for each in mentions if (row := self._catalogue.row_of(each.entity)) is not None}
        passage = np.array([self._view.passage_of_chunk(chunk)])
        stated = (each for each in self._view.statements_in(passage) if each.chunk == chunk)
        return ([self.reference(End(row, 0, "")) for row in sorted(rows)], self.of_statements(stated))

    def reference(self, end: End) -> EntityRef:
        if end.node is not None:
            made = next(made_nodes(self._view.segments, np.array([end.node])))
            return EntityRef(id=made.name, label=made.label, type=made.type)
        if end.row is None:
            return EntityRef(label=end.surface)
        entity = self._catalogue[end.row]
        return EntityRef(id=entity.id, label=entity.label, type=entity.type)

    def _statement(self, fact: Fact, texts: Texts, evidence_each: int = EVIDENCE_EACH) -> StatementDetail:
        first = fact.statements[:1]
        return StatementDetail(
            subject=self.reference(fact.subject),
            predicate=fact.predicate,
            object=self.reference(fact.object),
            further=[
                StatementPart(role=part.name, entity=self.reference(self.facts.end_of(part)))
                for statement in first
                for part in statement.roles
                if part.name not in ("subject", "object")
            ],
            strength=fact.strength,
            stated=len(fact.statements),
            by_people=[edge.id for edge in fact.edges],
            evidence=list(self.evidence(fact, texts, evidence_each)),
        )

    def _texts_of(self, facts: Sequence[Fact], evidence_each: int = EVIDENCE_EACH) -> Texts:
        return self._chunks(
            dict.fromkeys(
                self._view.chunk_id(statement.chunk) for fact in facts for statement in fact.statements[:evidence_each]
            )
        )

    def evidence(self, fact: Fact, texts: Texts | None = None, most: int = EVIDENCE_EACH) -> Iterator[Evidence]:
        """A few places that state it, with the sentence that names both ends."""
        texts = self._texts_of([fact]) if texts is None else texts
        for statement in fact.statements[:most]:
            ends = {part.name: normalise_name(part.surface) for part in statement.roles}
            names = [ends.get("subject", ""), ends.get("object", "")]
            yield self._at(statement.chunk, texts, names, statement)

    def evidence_of_mentions(self, one: TypedMention, other: TypedMention) -> Evidence:
        """Of mentions in one chunk, with the sentence that names both."""
        names = [normalise_name(each.surface) for each in (one, other)]
        return self._at(one.chunk, self._chunks([self._view.chunk_id(one.chunk)]), names)

    def evidence_of_edge(self, source: NodeRef, target: NodeRef, edge: GraphEdge) -> Evidence | None:
        """The sentence of a fact between two entities, or that of a chunk which names an entity; else None."""
        kinds = {source.kind, target.kind}
        if kinds == {"entity"}:
            own, others = (self._catalogue.keys_of(each.at) for each in (source, target))
            facts = (fact for fact in self.facts.of_entities(own) if fact.predicate == edge.label)
            stated = (fact for fact in facts if not _keys_of(fact).isdisjoint(others.tolist()))
            return next((found for fact in stated for found in self.evidence(fact)), None)
        if kinds == {"entity", "chunk"}:
            entity, chunk = (source, target) if source.kind == "entity" else (target, source)
            names = [name for _, name in self._view.entity_names([entity.at]).values()]
            texts = self._chunks([self._view.chunk_id(chunk.at)])
            return self._at(chunk.at, texts, names)
        return None

    def sentences_of(self, chunks: Iterable[int]) -> dict[int, list[str]]:
        """{number of a chunk: its sentences, normalised, with a blank before and after}."""
        ids = {self._view.chunk_id(chunk): chunk for chunk in chunks}
        texts = self._chunks(ids)
        return {
            ids[each]: [f" {normalise_text(sentence)} " for sentence in sentences_of(row.text)]
            for each, row in texts.items()
        }

    def _at(self, chunk: int, texts: Texts, names: Sequence[str], stated: Statement | None = None) -> Evidence:
        row = texts.get(self._view.chunk_id(chunk))
        sentence = None
        if row is not None and stated is None:
            sentence = sentence_holding(row.text, names)
        elif row is not None and stated is not None:
            sentence = sentence_of_fact(row.text, stated.predicate, *names[:2], is_stated=stated.sentence >= 0)
        return self.evidence_at(chunk, sentence)

    def evidence_at(self, chunk: int, sentence: str | None) -> Evidence:
        """This sentence of a chunk."""
        document = self._view.document_of_passage(self._view.passage_of_chunk(chunk))
        key = self._view.document_key(document)
        record = self._document_rows([key]).get(key)
        return Evidence(
            sentence=sentence,
            chunk_id=self._view.chunk_id(chunk),
            collection=key.collection,
            document_id=key.document_id,
            title=self._view.title(document),
            version=None if record is None else record.version,
            position=None if record is None else f"{record.partition}:{record.offset}",
            stated_at=None if record is None else rfc3339(record.timestamp_ms),
        )

    def definition(self, entity: Entity) -> EntityDefinition | None:
        """The surest sentence that says what it is; else the beginning of a document that is about it."""
        keys = np.array(entity.members, dtype=np.uint64)
        documents = self._documents(keys, list(typed_mentions_of(self._view.segments, keys)))
        return self._definition(entity, self.facts.of_entities(keys), documents)

    def _definition(
        self, entity: Entity, facts: Sequence[Fact], documents: Sequence[EntityDocument]
    ) -> EntityDefinition | None:
        """The surest sentence that says what it is; else the beginning of a document that is about it."""
        members = set(entity.members)
        defining = [
            fact for fact in facts if fact.statements and fact.predicate == DEFINING and fact.subject.key in members
        ]
        for fact in sorted(defining, key=lambda each: -max(one.confidence for one in each.statements)):
            for evidence in self.evidence(fact):
                if evidence.sentence:
                    return EntityDefinition(text=evidence.sentence, source=evidence)
        return self._beginning(entity) if any(each.about for each in documents) else None

    def _joined(
        self, entity: Entity, facts: Iterable[Fact], onward: Container[str], back: Container[str]
    ) -> list[EntityRef]:
        """The other ends of facts that lead there by one of the predicates `onward`, or from there by one of `back`."""
        own = self._catalogue.row_of(entity.members[0])
        found: dict[tuple[str, int], EntityRef] = {}
        for fact in facts:
            for end, other, predicates in ((fact.subject, fact.object, onward), (fact.object, fact.subject, back)):
                if end.row == own and other.row != own and fact.predicate in predicates:
                    found.setdefault(other.identity, self.reference(other))
        return list(found.values())

    def _domain(self, entity: Entity, documents: Sequence[EntityDocument]) -> str:
        """What most of the documents state as their topic or the like (ties: the first), else the collection."""
        keys = (DocumentKey(each.collection, each.document_id) for each in documents[:MAX_FILED])
        numbers = [number for key in keys if (number := self._view.document(key)) is not None]
        first = [passage for number in numbers for passage in self._view.passages_of_document(number)[:1]]
        stated = self._view.statements_in(np.array(first, dtype=np.int64))
        filed = (each for each in stated if each.predicate in FILED_UNDER and each.extractor == HEADER)
        topics = Counter(part.surface for each in filed for part in each.roles if part.name == "object")
        return topics.most_common(1)[0][0] if topics else entity.collection

    def _first_mention(self, mentions: Sequence[TypedMention]) -> Evidence | None:
        for one in sorted(mentions, key=lambda each: (each.document, each.chunk))[:1]:
            texts = self._chunks([self._view.chunk_id(one.chunk)])
            return self._at(one.chunk, texts, [normalise_name(one.surface)])
        return None

    def _beginning(self, entity: Entity) -> EntityDefinition | None:
        about = self._view.about(np.array(entity.members, dtype=np.uint64))
        rows = sorted(zip((-about.weight).tolist(), about.document.tolist(), strict=True))
        for _, document in rows[:1]:
            passages = self._view.passages_of_document(document)
            chunks = [chunk for passage in passages[:1] for chunk in self._view.chunks_of_passage(passage)]
            texts = self._chunks([self._view.chunk_id(chunk) for chunk in chunks])
            for chunk in chunks:
                row = texts.get(self._view.chunk_id(chunk))
                for sentence in sentences_of(row.text) if row is not None else ():
                    if _names(sentence, entity) and len(sentence.split()) > len(entity.label.split()) + 2:
                        return EntityDefinition(text=sentence, source=self._at(chunk, texts, [entity.name]))
        return None

    def _documents(self, keys: Keys, mentions: Sequence[TypedMention]) -> list[EntityDocument]:
        counts: Counter[int] = Counter()
        for mention in mentions:
            counts[mention.document] += mention.times
        about = self._view.about(keys, least=0.0)
        relevance: dict[int, float] = {}
        for document, weight in zip(about.document.tolist(), about.weight.tolist(), strict=True):
            relevance[document] = max(relevance.get(document, 0.0), round(weight, 3))
        found = []
        for document in {*counts, *relevance}:
            key = self._view.document_key(document)
            found.append(
                EntityDocument(
                    collection=key.collection,
                    document_id=key.document_id,
                    title=self._view.title(document),
                    mentions=counts[document],
                    about=relevance.get(document, 0.0) >= NAMING,
                    relevance=relevance.get(document, 0.0),
                )
            )
        return sorted(found, key=lambda each: (not each.about, -each.relevance, -each.mentions, each.document_id))

    def _neighbours(
        self, entity: Entity, mentions: Sequence[TypedMention], facts: Sequence[Fact]
    ) -> tuple[list[EntityNeighbour], set[int]]:
        """The neighbours, and the rows of all of them and of the entity itself. By statements, then by the chunks that
        mention both, those of frequent entities counting less (the square root of their mentions)."""
        own = self._catalogue.row_of(entity.members[0])
        shared = self.co_mentioned(own, np.unique([each.chunk for each in mentions])[:MAX_CHUNKS])
        strengths: dict[int, float] = {}
        predicates: dict[int, dict[str, None]] = defaultdict(dict)
        for fact in facts:
            for end in (fact.subject, fact.object):
                if end.row is not None and end.row != own:
                    strengths[end.row] = max(strengths.get(end.row, 0.0), fact.strength)
                    predicates[end.row][fact.predicate] = None
        rows = {*strengths, *shared}

        def weight(row: int) -> tuple[float, float, int]:
            return -strengths.get(row, 0.0), -shared[row] / float(np.sqrt(self._catalogue.mentions[row])), row

        neighbours = [
            EntityNeighbour(
                entity=self.reference(End(row, 0, "")),
                strength=strengths.get(row, 0.0),
                predicates=list(predicates[row]),
                shared_chunks=shared[row],
            )
            for row in sorted(rows, key=weight)
        ]
        return neighbours, rows if own is None else {*rows, own}

    def co_mentioned(self, own: int | None, chunks: Numbers) -> Counter[int]:
        """In how many of the chunks each other entity is mentioned; what is a literal, such as a date, is left out."""
        found: Counter[int] = Counter()
        seen: set[tuple[int, int]] = set()
        for mention in typed_mentions_in(self._view.segments, chunks.astype(np.int64)):
            row = self._catalogue.row_of(mention.entity)
            if row is None or row == own or mention.type in LITERAL_TYPES or (mention.chunk, row) in seen:
                continue
            seen.add((mention.chunk, row))
            found[row] += 1
        return found


def summary(entity: Entity) -> EntitySummary:
    return EntitySummary(
        id=entity.id,
        collection=entity.collection,
        label=entity.label,
        type=entity.type,
        confidence=entity.confidence,
        salience=entity.salience,
        mentions=entity.mentions,
        names=len(entity.members),
    )


def _names(sentence: str, entity: Entity) -> bool:
    return sentence_holding(sentence, [normalise_name(entity.label)]) is not None


def _keys_of(fact: Fact) -> set[int]:
    return {part.entity for statement in fact.statements for part in statement.roles}
