"""What different documents, or people, state of the same thing that cannot all be so, or of which one says more.

A function of the statements and hand-made edges that are there: their order does not matter, and what is deleted leaves
nothing behind. What one document states together is not compared.
"""

from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, combinations
from typing import NamedTuple

import numpy as np

from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.entity_facts import End, Fact, FactFinder
from query_api.entities.path_search import Step, shortest_way
from query_api.index.graph.edges import Statement
from query_api.index.graph.hand_made_relations import made_relations
from query_api.index.graph.view import GraphView
from schemas.choices import ReviewKind
from schemas.edits_api import ReviewedEntity
from schemas.graph_edits import decision_id
from schemas.ids import normalise_name
from schemas.predicates import ONE_OBJECT, ONE_SUBJECT

OVERLAP = 0.3  # of the words of two values, above which one may say more than the other
MOST_VALUES = 10  # a concept with more has several by nature
MOST_FOLLOWED = 1_000  # nodes, from the object of one fact
KIND = ONE_OBJECT["is_a"]  # a thing is of several kinds: only one that says more is compared
Identity = tuple[str, int]
WITHIN = ("located_in", "part_of", "subtopic_of", "is_a")


class Conflict(NamedTuple):
    """`id` is that of a decision about it, `about` what is stated; `score` in (0, 1] is the facts' least confidence."""

    id: str
    kind: ReviewKind
    about: str
    entities: list[ReviewedEntity]
    facts: tuple[Fact, ...]
    reason: str
    score: float


class ConflictFinder:
    """Of one collection of a view. `acyclic` are predicates beside `is_a` without cycles."""

    def __init__(
        self, view: GraphView, catalogue: EntityCatalogue, collection: str, acyclic: Collection[str] = ()
    ) -> None:
        self._view, self._catalogue, self._collection = view, catalogue, collection
        self._acyclic = sorted({"is_a", *acyclic})
        self._finder = FactFinder(view, catalogue)
        predicates = {*ONE_OBJECT, *ONE_SUBJECT, *self._acyclic}
        edges = [
            each
            for each in made_relations(view.segments)
            if each.predicate in predicates and view.document_key(each.document).collection == collection
        ]
        facts = self._finder.of_statements(self._statements(predicates), edges)
        self._facts = sorted(facts, key=lambda fact: (fact.predicate, *map(self._id, fact.ends)))

    def find(self, may_be_one: Container[str]) -> Iterator[Conflict]:
        """Each once. Values that `may_be_one`, which has ids of decisions about pairs, are a duplicate with that id."""
        found = chain(self._of_values(may_be_one), self._of_denials(), *map(self.cycles, self._acyclic))
        yield from {each.id: each for each in found}.values()

    def cycles(self, predicate: str) -> Iterator[Conflict]:
        """The shortest through each of the predicate's facts."""
        facts = [fact for fact in self._facts if fact.predicate == predicate]
        following: dict[Identity, list[Fact]] = defaultdict(list)
        for fact in facts:
            following[fact.subject.identity].append(fact)

        def steps_from(here: Identity) -> list[Step[Identity, Fact]]:
            return [Step(fact.object.identity, 1.0, fact) for fact in following.get(here, ())]

        for first in facts:
            way = shortest_way(first.object.identity, first.subject.identity, steps_from, MOST_FOLLOWED)
            if way is not None:
                cycle = [first, *(step.over for step in way)]
                ends = [fact.subject for fact in cycle]
                names = " → ".join(self._finder.reviewed(end).name for end in (*ends, ends[0]))
                if not set.intersection(*map(self._documents, cycle)):
                    reason = f"{predicate} leads back to where it began: {names}."
                    yield self._conflict("conflict", f"{predicate} cycle", ends, cycle, reason)

    def _of_values(self, may_be_one: Container[str]) -> Iterator[Conflict]:
        values: dict[tuple[str, str], dict[str, list[_Reading]]] = defaultdict(lambda: defaultdict(list))
        for fact in self._facts:
            subject, target = fact.ends
            if about := ONE_OBJECT.get(fact.predicate):
                values[self._id(subject), about][self._id(target)].append(_Reading(about, subject, target, fact))
            if about := ONE_SUBJECT.get(fact.predicate):
                values[self._id(target), about][self._id(subject)].append(_Reading(about, target, subject, fact))
        for found in values.values():
            for one, other in combinations(sorted(found), 2) if len(found) <= MOST_VALUES else ():
                stated = [set().union(*(self._documents(each.fact) for each in found[value])) for value in (one, other)]
                if stated[0].isdisjoint(stated[1]):
                    pair = decision_id([one, other])
                    yield from self._compared(found[one][0], found[other][0], pair if pair in may_be_one else None)

    def _compared(self, one: "_Reading", other: "_Reading", pair: str | None) -> Iterator[Conflict]:
        about, ends, facts = one.about, (one.concept, one.value, other.value), (one.fact, other.fact)
        if pair is not None:
            reason = f"The {about} of the same, perhaps, written in two ways."
            yield self._conflict("duplicate", about, ends, facts, reason)._replace(id=pair)
        elif self._says_more(one.value, other.value) or self._says_more(other.value, one.value):
            yield self._conflict(
                "enhancement", about, ends, facts, f"One names the {about.replace('_', ' ')} more precisely."
            )
        elif about != KIND:
            yield self._conflict(
                "conflict", about, ends, facts, f"Documents disagree about this: {about.replace('_', ' ')}."
            )

    def _says_more(self, one: End, other: End) -> bool:
        """Whether it has the words of the other and more, or is stated to be in it."""
        words, fewer = ({*normalise_name(end.surface).split()} for end in (one, other))
        return (fewer < words and len(fewer) > OVERLAP * len(words)) or any(
            fact.predicate in WITHIN and [end.identity for end in fact.ends] == [one.identity, other.identity]
            for fact in self._finder.of_entities(self._catalogue.keys_of(one.key))
        )

    def _of_denials(self) -> Iterator[Conflict]:
        for denial in self._finder.of_statements(self._statements(None)):
            for fact in self._finder.of_entities(self._catalogue.keys_of(denial.subject.key)):
                if fact.identity == denial.identity and self._documents(fact).isdisjoint(self._documents(denial)):
                    denied = replace(denial, predicate=f"not {denial.predicate}")
                    reason = "A document denies what another states."
                    yield self._conflict("conflict", denied.predicate, fact.ends, [fact, denied], reason)

    def _statements(self, predicates: Collection[str] | None) -> list[Statement]:
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
        return Conflict(identifier, kind, about, entities, tuple(facts), reason, round(float(least), 3))


class _Reading(NamedTuple):
    """A fact as the value of a concept."""

    about: str
    concept: End
    value: End
    fact: Fact
