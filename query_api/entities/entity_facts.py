"""Facts between entities: what statements of documents say, together with the edges that people made."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from query_api.entities.catalogue import EntityCatalogue
from query_api.index.graph.edges import Role, Statement
from query_api.index.graph.hand_made_relations import End as GraphEnd
from query_api.index.graph.hand_made_relations import MadeRelation, made_nodes, relations_of
from query_api.index.graph.identifiers import Keys, key_of
from query_api.index.graph.view import GraphView
from schemas.edits_api import ReviewedEntity
from schemas.ids import CANARY_COLLECTION, digest, document_node_id, entity_id
from schemas.predicates import fact_strength, predicate_strength

Identity = tuple[str, int]


@dataclass(frozen=True)
class End:
    """A part of a statement: `row` in the catalogue, None for a name that is not an entity; `key` of the name; `node`
    the document of a hand-made one."""

    row: int | None
    key: int
    surface: str
    node: int | None = None

    @property
    def identity(self) -> Identity:
        if self.node is not None:
            return "node", self.node
        return ("name", self.key) if self.row is None else ("entity", self.row)


class EdgeBetween(NamedTuple):
    """A hand-made edge of which both ends are entities or hand-made nodes."""

    id: str
    predicate: str
    source: End
    target: End
    weight: float


@dataclass(frozen=True)
class Fact:
    """One thing that statements say, or edges that people made, and all that say it. Ends are rows of the catalogue, or
    names."""

    subject: End
    predicate: str
    object: End
    statements: tuple[Statement, ...]
    edges: tuple[EdgeBetween, ...] = ()

    @property
    def identity(self) -> tuple[Any, ...]:
        return self.subject.identity, self.predicate, self.object.identity

    @property
    def ends(self) -> tuple[End, End]:
        return self.subject, self.object

    @property
    def strength(self) -> float:
        """The predicate's, or the weight that people gave it, and more for each further statement or edge."""
        bases = [edge.weight for edge in self.edges]
        if self.statements:
            bases.append(predicate_strength(self.predicate))
        return fact_strength(max(bases), len(self.statements) + len(self.edges))


class FactFinder:
    """Finds the facts of one view and its catalogue."""

    def __init__(self, view: GraphView, catalogue: EntityCatalogue) -> None:
        self._view = view
        self._catalogue = catalogue

    def of_entities(self, keys: Keys) -> list[Fact]:
        """What is stated, or joined by people, with these entities as subject or object, the strongest first."""
        relations = self._relations_of([GraphEnd("entity", key) for key in keys.tolist()])
        return self.of_statements(self._view.statements_with(keys), relations)

    def among(self, ends: Collection[Identity]) -> list[Fact]:
        """What is stated of, or joined by people, two of these entities and nodes, the strongest first."""
        rows = [at for kind, at in ends if kind == "entity"]
        keys = np.array([key for row in rows for key in self._catalogue.members[row]], dtype=np.uint64)
        statements: list[Statement] = []
        for part, _, local in self._view.segments.with_entities(keys):
            stated = np.unique(part.segment.roles.entering(local).others)
            both = np.isin(np.stack(self._catalogue.ends_of(part, stated)), rows).all(axis=0)
            live = part.live(part.segment.passages_of(part.segment.statements.of_entries(stated)))
            statements += part.statements(np.zeros_like(stated[both & live]), stated[both & live])
        made = [GraphEnd("entity", key) for key in keys.tolist()]
        made += [GraphEnd("document", at) for kind, at in ends if kind == "node"]
        facts, wanted = self.of_statements(statements, self._relations_of(made)), {*ends}
        return [fact for fact in facts if len({end.identity for end in fact.ends} & wanted) == 2]

    def of_node(self, document: int) -> list[Fact]:
        """The edges that people made between the hand-made node of a document and entities or other nodes."""
        return self.of_statements([], self._relations_of([GraphEnd("document", document)]))

    def _relations_of(self, ends: Sequence[GraphEnd]) -> list[MadeRelation]:
        return list({each.document: each for each in relations_of(self._view.segments, ends)}.values())

    def _between(self, relation: MadeRelation) -> EdgeBetween | None:
        source, target = self.end_of_relation(relation.source), self.end_of_relation(relation.target)
        if source is None or target is None:
            return None
        return EdgeBetween(relation.name, relation.predicate, source, target, relation.weight)

    def end_of_relation(self, end: GraphEnd | None) -> End | None:
        """None for what is not there, and a name that is not an entity."""
        if end is None:
            return None
        if end.kind == "chunk":
            label = self._view.title(self._view.document_of_passage(self._view.passage_of_chunk(end.at)))
            return End(None, key_of(self._view.chunk_id(end.at)), label)
        if end.kind == "entity":
            row = self._catalogue.row_of(end.at)
            return None if row is None else End(row, end.at, self._catalogue[row].label)
        node = next(made_nodes(self._view.segments, np.array([end.at])), None)
        if node is None:
            return End(None, key_of(document_node_id(self._view.document_key(end.at))), self._view.title(end.at))
        return End(None, key_of(digest("node", node.name)[:32]), node.label, end.at)

    def of_statements(self, statements: Iterable[Statement], relations: Iterable[MadeRelation] = ()) -> list[Fact]:
        """What these say, the strongest first."""
        joined: dict[tuple[object, ...], list[EdgeBetween]] = defaultdict(list)
        edges = (self._between(each) for each in sorted(relations, key=lambda each: each.name))
        for edge in filter(None, edges):
            joined[edge.source.identity, edge.predicate, edge.target.identity].append(edge)
        found: dict[tuple[object, ...], list[tuple[Statement, End, End]]] = defaultdict(list)
        for statement in {each.key: each for each in statements}.values():
            subject, target = self._end(statement, "subject"), self._end(statement, "object")
            if subject is not None and target is not None:
                identity = subject.identity, statement.predicate, target.identity
                found[identity].append((statement, subject, target))
        facts = [
            Fact(
                of_one[0][1], of_one[0][0].predicate, of_one[0][2], tuple(each for each, *_ in of_one), tuple(by_people)
            )
            for identity, of_one in found.items()
            for by_people in [joined.pop(identity, [])]
        ]
        facts += [Fact(of[0].source, of[0].predicate, of[0].target, (), tuple(of)) for of in joined.values()]
        return sorted(facts, key=lambda fact: (-fact.strength, -len(fact.statements), fact.predicate, _order(fact)))

    def _end(self, statement: Statement, role: str) -> End | None:
        part = next((each for each in statement.roles if each.name == role), None)
        return None if part is None else self.end_of(part)

    def reviewed(self, end: End) -> ReviewedEntity:
        """An end with the id that its name has where it is not an entity."""
        if end.row is not None:
            entity = self._catalogue[end.row]
            return ReviewedEntity(id=entity.id, name=entity.label, type=entity.type, mentions=entity.mentions)
        name = self._view.entity_names([end.key]).get(end.key)
        identifier = f"{end.key:032x}" if name is None else entity_id(*name)
        return ReviewedEntity(id=identifier, name=end.surface, type="", mentions=0)

    def end_of(self, part: Role) -> End:
        return End(self._catalogue.row_of(part.entity), part.entity, part.surface)


def _order(fact: Fact) -> tuple[str, str]:
    return fact.subject.surface, fact.object.surface


def sample_statements(
    view: GraphView, collection: str | None, predicate: str | None, size: int, seed: int
) -> list[Statement]:
    """So many statements of live documents at random, of a collection and with a predicate, or of all for None; the
    same for the same seed and graph. Each is as likely."""
    predicates = None if predicate is None else [predicate]
    found = [(part, part.statements_in(collection, predicates)) for part in view.segments]
    if collection is None:
        found = [(part, np.setdiff1d(numbers, part.statements_in(CANARY_COLLECTION))) for part, numbers in found]
    keys = np.sort(np.concatenate([part.segment.statement_keys[numbers] for part, numbers in found]))
    drawn = np.random.default_rng(seed).permutation(keys)[:size]
    chosen = ((part, numbers[np.isin(part.segment.statement_keys[numbers], drawn)]) for part, numbers in found)
    read = {each.key: each for part, those in chosen for each in part.statements(np.zeros_like(those), those)}
    return [read[key] for key in drawn.tolist()]
