"""What different documents, or people, state of the same thing that cannot all be so, or of which one says more; and
what documents state against the schema of their collection, to which only people's edits are held.

A function of the statements and hand-made edges that are there: their order does not matter, and what is deleted leaves
nothing behind. What one document states together is not compared.
"""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.description import EntityDescriber
from query_api.entities.entity_facts import End, Fact, FactFinder
from query_api.entities.path_search import Step, search_paths
from query_api.index.graph.edges import Statement
from query_api.index.graph.hand_made_relations import relations_with
from query_api.index.graph.view import GraphView
from schemas.choices import ReviewKind
from schemas.edits_api import ReviewedEntity, SchemaViolation
from schemas.graph_edits import GraphChoice, Misfit, decision_id
from schemas.ids import normalise_name
from schemas.predicates import ONE_OBJECT, ONE_SUBJECT

OVERLAP = 0.3  # of the words of two values, above which one may say more than the other
MOST_VALUES = 10  # a concept with more has several by nature
KIND = ONE_OBJECT["is_a"]  # a thing is of several kinds: only one that says more is compared
EXAMPLES = 3
WITHIN = ("located_in", "part_of", "subtopic_of", "is_a")

Identity = tuple[str, int]


class Conflict(NamedTuple):
    """`id` is that of a decision about it, `about` what is stated; `score` in (0, 1] is the facts' least confidence."""

    id: str
    kind: ReviewKind
    about: str
    entities: list[ReviewedEntity]
    facts: Sequence[Fact]
    reason: str
    score: float


class ConflictFinder:
    """Of the facts with these predicates in one collection; the hand-made edge `without` is as if it were not there."""

    def __init__(
        self, view: GraphView, catalogue: EntityCatalogue, collection: str, predicates: Iterable[str], without: str = ""
    ) -> None:
        self._view, self._catalogue, self._collection = view, catalogue, collection
        self._finder = FactFinder(view, catalogue)
        wanted = set(predicates)
        edges = [
            each
            for each in relations_with(view.segments, wanted)
            if each.name != without and view.document_key(each.document).collection == collection
        ]
        facts = self._finder.of_statements(self._statements(wanted), edges)
        self._facts = sorted(facts, key=lambda fact: (fact.predicate, fact.subject.key, fact.object.key))
        self._following: dict[tuple[str, Identity], list[Fact]] = defaultdict(list)
        for fact in self._facts:
            self._following[fact.predicate, fact.subject.identity].append(fact)

    def find(self, acyclic: Iterable[str], may_be_one: Container[str]) -> Iterator[Conflict]:
        """Values that `may_be_one`, which has ids of decisions about pairs, are a duplicate with that id."""
        yield from self._of_values(may_be_one)
        for denial in self._finder.of_statements(self._statements(None)):
            for fact in self._finder.of_entities(self._catalogue.keys_of(denial.subject.key)):
                if fact.identity == denial.identity and self._documents(fact).isdisjoint(self._documents(denial)):
                    denied = replace(denial, predicate=f"not {denial.predicate}")
                    reason = "A document denies what another states."
                    yield self._conflict("conflict", denied.predicate, fact.ends, [fact, denied], reason)
        yield from chain.from_iterable(map(self.cycles, acyclic))

    def cycles(self, predicate: str) -> Iterator[Conflict]:
        """The shortest through each of the predicate's facts, each once."""
        cycles = {}
        for fact in (each for each in self._facts if each.predicate == predicate):
            cycle = [fact, *self.way(predicate, fact.object, fact.subject)]
            if len(cycle) > 1 and not set.intersection(*map(self._documents, cycle)):
                ends = [each.subject for each in cycle]
                names = " → ".join(self._finder.reviewed(end).name for end in (*ends, ends[0]))
                reason = f"{predicate} leads back to where it began: {names}."
                found = self._conflict("conflict", f"{predicate} cycle", ends, cycle, reason)
                cycles[found.id] = found
        yield from cycles.values()

    def way(self, predicate: str, start: End, end: End, **bounds: int) -> list[Fact]:
        """The fewest facts that lead from one to the other; none where there is no way within the bounds."""

        def steps_from(nodes: Sequence[Identity]) -> list[Step[Identity, Fact]]:
            facts = self._following.get((predicate, nodes[-1]), ())
            return [Step(fact.object.identity, 1.0, fact) for fact in facts]

        paths = search_paths(start.identity, end.identity, steps_from, limit=1, shortest_first=True, **bounds).paths
        return [step.over for _, steps in paths for step in steps]

    def _of_values(self, may_be_one: Container[str]) -> Iterator[Conflict]:
        values: dict[tuple[str, str], dict[str, list[tuple[End, End, Fact]]]] = defaultdict(lambda: defaultdict(list))
        for fact in self._facts:
            for concept, about, value in (
                (fact.subject, ONE_OBJECT.get(fact.predicate), fact.object),
                (fact.object, ONE_SUBJECT.get(fact.predicate), fact.subject),
            ):
                if about is not None:
                    values[about, self._id(concept)][self._id(value)].append((concept, value, fact))
        for (about, _), found in values.items():
            for pair in combinations(sorted(found), 2) if len(found) <= MOST_VALUES else ():
                (concept, one, fact), (_, other, opposite) = (found[each][0] for each in pair)
                documents = [set().union(*(self._documents(each) for *_, each in found[value])) for value in pair]
                kind = self._kind(about, one, other, may_be_one=decision_id(pair) in may_be_one)
                if kind is not None and documents[0].isdisjoint(documents[1]):
                    differ = "One says more than the other of" if kind == "enhancement" else "Documents differ about"
                    reason = f"{differ} this: {about.replace('_', ' ')}."
                    made = self._conflict(kind, about, (concept, one, other), (fact, opposite), reason)
                    yield made._replace(id=decision_id(pair)) if kind == "duplicate" else made

    def _kind(self, about: str, one: End, other: End, *, may_be_one: bool) -> ReviewKind | None:
        if may_be_one:
            return "duplicate"
        if self._says_more(one, other) or self._says_more(other, one):
            return "enhancement"
        return None if about == KIND else "conflict"

    def _says_more(self, one: End, other: End) -> bool:
        """Whether it has the words of the other and more, or is stated to be in it."""
        words, fewer = ({*normalise_name(end.surface).split()} for end in (one, other))
        return (fewer < words and len(fewer) > OVERLAP * len(words)) or any(
            fact.predicate in WITHIN and [end.identity for end in fact.ends] == [one.identity, other.identity]
            for fact in self._finder.of_entities(self._catalogue.keys_of(one.key))
        )

    def _statements(self, predicates: set[str] | None) -> list[Statement]:
        """Those with these predicates; for None the denials."""
        found: list[Statement] = []
        for part in self._view.segments:
            numbers = part.statements_in(self._collection, denied=predicates is None)
            if predicates is not None:
                numbers = numbers[part.segment.predicates.among(predicates)[numbers]]
            found += part.statements(np.zeros_like(numbers), numbers, denied=predicates is None)
        return sorted(found, key=lambda each: each.key)

    def _documents(self, fact: Fact) -> set[object]:
        """That state it; an edge by its id."""
        of_statements = {self._view.document_of_passage(each.passage) for each in fact.statements}
        return {*of_statements, *(edge.id for edge in fact.edges)}

    def _id(self, end: End) -> str:
        return self._finder.reviewed(end).id

    def _conflict(
        self, kind: ReviewKind, about: str, ends: Iterable[End], facts: Sequence[Fact], reason: str
    ) -> Conflict:
        entities = list(map(self._finder.reviewed, ends))
        least = min(max((each.confidence for each in fact.statements), default=1.0) for fact in facts)
        identifier = decision_id([each.id for each in entities], about)
        return Conflict(identifier, kind, about, entities, facts, reason, round(float(least), 3))


def schema_violations(
    view: GraphView, catalogue: EntityCatalogue, describer: EntityDescriber, collection: str, choice: GraphChoice
) -> list[SchemaViolation]:
    """The kinds of which there are most statements first. Costs a pass over all statements of the collection."""
    found: dict[tuple[str, Misfit], list[Statement]] = defaultdict(list)
    for part in view.segments:
        numbers = part.statements_in(collection)
        for statement in part.statements(np.zeros_like(numbers), numbers):
            known = {role.name: catalogue.label_and_type(role.entity) for role in statement.roles}
            source, target = (found and found[1] for found in map(known.get, ("subject", "object")))
            if (misfit := choice.misfit(statement.predicate, source, target)) is not None:
                found[statement.predicate, misfit].append(statement)
    finder = ConflictFinder(view, catalogue, collection, choice.acyclic)
    for predicate in choice.acyclic:
        facts = {fact.identity: fact for cycle in finder.cycles(predicate) for fact in cycle.facts}.values()
        if stated := list(chain.from_iterable(fact.statements for fact in facts)):
            found[predicate, Misfit("cycle", None)] = stated
    return [
        SchemaViolation(
            what=misfit.what,
            predicate=predicate,
            type=misfit.type,
            statements=len(stated),
            examples=describer.of_statements(stated[:EXAMPLES]),
        )
        for (predicate, misfit), stated in sorted(found.items(), key=lambda each: (-len(each[1]), str(each[0])))
    ]
