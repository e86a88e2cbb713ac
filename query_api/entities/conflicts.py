"""What different documents, or people, state of the same thing that cannot all be so, or of which one says more; and
what documents state against the schema of their collection, to which only people's edits are held.

A function of the statements and hand-made edges that are there: their order does not matter, and what is deleted leaves
nothing behind. What one document states together is not compared.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.description import EntityDescriber
from query_api.entities.entity_facts import End, Fact, FactFinder, Identity
from query_api.index.graph.edges import Statement
from query_api.index.graph.hand_made_relations import relations_with
from query_api.index.graph.identifiers import MISSING
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
COMPARED = frozenset((*ONE_OBJECT, *ONE_SUBJECT, *WITHIN))  # predicates of facts that may conflict


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
        self,
        view: GraphView,
        catalogue: EntityCatalogue,
        collection: str,
        predicates: Collection[str],
        without: str = "",
    ) -> None:
        self._view, self._catalogue, self._collection = view, catalogue, collection
        self._finder = FactFinder(view, catalogue)
        edges = [
            each
            for each in relations_with(view.segments, predicates)
            if each.name != without and view.document_key(each.document).collection == collection
        ]
        facts = self._finder.of_statements(view.statements_of(collection, predicates), edges)
        self._facts = sorted(facts, key=lambda fact: (fact.predicate, fact.subject.key, fact.object.key))
        self._following: dict[tuple[str, Identity], list[Fact]] = defaultdict(list)
        for fact in self._facts:
            self._following[fact.predicate, fact.subject.identity].append(fact)

    def find(self, acyclic: Iterable[str], may_be_one: Container[str]) -> Iterator[Conflict]:
        """Values that `may_be_one`, which has ids of decisions about pairs, are a duplicate with that id."""
        yield from self._of_values(may_be_one)
        denials = self._finder.of_statements(self._view.statements_of(self._collection, denied=True))
        denied = [self._catalogue.keys_of(each.subject.key) for each in denials]
        facts = self._finder.of_entities(np.unique(np.concatenate(denied))) if denied else []
        stated = {fact.identity: fact for fact in facts}
        for denial in denials:
            fact = stated.get(denial.identity)
            if fact is not None and self._documents(fact).isdisjoint(self._documents(denial)):
                about, reason = f"not {denial.predicate}", "A document denies what another states."
                yield self._conflict("conflict", about, fact.ends, [fact, replace(denial, predicate=about)], reason)
        yield from chain.from_iterable(map(self.cycles, acyclic))

    def cycles(self, predicate: str) -> Iterator[Conflict]:
        """The shortest through each of the predicate's facts, each once."""
        facts = [each for each in self._facts if each.predicate == predicate]
        ends = [end.identity for fact in facts for end in fact.ends]
        numbers = {identity: at for at, identity in enumerate(dict.fromkeys(ends))}
        pairs = np.array([numbers[each] for each in ends], dtype=np.int64).reshape(-1, 2)
        joined = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(numbers) + 1,) * 2)
        _, component = connected_components(joined, connection="strong")  # facts within one are on a cycle
        is_within = (component[pairs[:, 0]] == component[pairs[:, 1]]) & (pairs[:, 0] != pairs[:, 1])
        cycles = {}
        for at in np.flatnonzero(is_within).tolist():
            cycle = [facts[at], *self.way(predicate, facts[at].object, facts[at].subject)]
            if not set.intersection(*map(self._documents, cycle)):
                ends_of = [each.subject for each in cycle]
                names = " → ".join(self._finder.reviewed(end).name for end in (*ends_of, ends_of[0]))
                reason = f"{predicate} leads back to where it began: {names}."
                found = self._conflict("conflict", f"{predicate} cycle", ends_of, cycle, reason)
                cycles[found.id] = found
        yield from cycles.values()

    def way(self, predicate: str, start: End, end: End) -> list[Fact]:
        """The fewest facts that lead from one to another; none where there is no way."""
        leading: dict[Identity, Fact] = {}  # to each that was reached
        waiting = deque([start.identity])
        while waiting and end.identity not in leading:
            for fact in self._following.get((predicate, waiting.popleft()), ()):
                if fact.object.identity not in leading:
                    leading[fact.object.identity] = fact
                    waiting.append(fact.object.identity)
        way = [leading[end.identity]] if end.identity in leading else []
        while way and way[-1].subject.identity != start.identity:
            way.append(leading[way[-1].subject.identity])
        return way[::-1]

    def _of_values(self, may_be_one: Container[str]) -> Iterator[Conflict]:
        values: dict[tuple[str, Identity], dict[Identity, list[tuple[End, End, Fact]]]]
        values = defaultdict(lambda: defaultdict(list))
        for fact in self._facts:
            for concept, about, value in (
                (fact.subject, ONE_OBJECT.get(fact.predicate), fact.object),
                (fact.object, ONE_SUBJECT.get(fact.predicate), fact.subject),
            ):
                if about is not None:
                    values[about, concept.identity][value.identity].append((concept, value, fact))
        for (about, _), of_concept in values.items():
            found = sorted(of_concept.values(), key=lambda of_value: of_value[0][1].key)
            for pair in combinations(found, 2) if len(found) <= MOST_VALUES else ():
                documents = (set().union(*(self._documents(fact) for *_, fact in of_value)) for of_value in pair)
                if set.intersection(*documents):
                    continue
                (concept, one, fact), (_, other, opposite) = (of_value[0] for of_value in pair)
                identifier = decision_id([self._finder.reviewed(each).id for each in (one, other)])
                kind = self._kind(about, one, other, may_be_one=identifier in may_be_one)
                if kind is not None:
                    differ = "One says more than the other of" if kind == "enhancement" else "Documents differ about"
                    reason = f"{differ} this: {about.replace('_', ' ')}."
                    made = self._conflict(kind, about, (concept, one, other), (fact, opposite), reason)
                    yield made._replace(id=identifier) if kind == "duplicate" else made

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
            fact.object.identity == other.identity
            for predicate in WITHIN
            for fact in self._following.get((predicate, one.identity), ())
        )

    def _documents(self, fact: Fact) -> set[object]:
        """That state it; an edge by its id."""
        of_statements = {self._view.document_of_passage(each.passage) for each in fact.statements}
        return {*of_statements, *(edge.id for edge in fact.edges)}

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
    counts: Counter[tuple[str, Misfit]] = Counter()
    examples: dict[tuple[str, Misfit], list[Statement]] = defaultdict(list)
    misfit_of = cache(choice.misfit)
    for part in view.segments:
        numbers = part.statements_in(collection)
        types = (
            [None if row == MISSING else catalogue.type_of(row) for row in rows.tolist()]
            for rows in catalogue.ends_of(part, numbers)
        )
        stated = zip(numbers.tolist(), part.segment.predicates.of(numbers), *types, strict=True)
        for number, predicate, source, target in stated:
            if (misfit := misfit_of(predicate, source, target)) is not None:
                counts[predicate, misfit] += 1
                if counts[predicate, misfit] <= EXAMPLES:
                    examples[predicate, misfit] += part.statements(np.zeros(1, np.int64), np.array([number]))
    finder = ConflictFinder(view, catalogue, collection, choice.acyclic)
    for predicate in choice.acyclic:
        facts = {fact.identity: fact for cycle in finder.cycles(predicate) for fact in cycle.facts}.values()
        if of_cycles := list(chain.from_iterable(fact.statements for fact in facts)):
            kind = predicate, Misfit("cycle", None)
            counts[kind], examples[kind] = len(of_cycles), of_cycles[:EXAMPLES]
    return [
        SchemaViolation(
            what=misfit.what,
            predicate=predicate,
            type=misfit.type,
            statements=count,
            examples=describer.of_statements(examples[predicate, misfit]),
        )
        for (predicate, misfit), count in sorted(counts.items(), key=lambda each: (-each[1], str(each[0])))
    ]
