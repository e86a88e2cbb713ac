"""What the graph's statements say of the facts of a claim: the same, the opposite, or something that excludes it.

A statement with another object excludes a fact where a subject has one object of this predicate. That is what the graph
shows: of the subjects that have the predicate in these collections, nearly all have one object; of predicates with too
few subjects to show it, what `schemas.predicates` says. Two ends exclude each other unless one is within the other, by
its words or by what documents state.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from indexer.extraction.names import name_of
from indexer.extraction.relations import facts_in
from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.conflicts import WITHIN
from query_api.index.graph.edges import Role, Statement
from query_api.index.graph.identifiers import Keys
from query_api.index.graph.view import GraphView
from query_api.research.alignment import is_other, line_of
from schemas.graph_delta import DENIAL
from schemas.ids import DocumentKey
from schemas.predicates import IS_A, ONE_OBJECT, ONE_SUBJECT

LEAST_SUBJECTS = 20  # that show whether a predicate has one object
MOST_SHARE = 0.05  # of them with several
MOST_WITHIN = 3  # steps from a place to what it is in


class ClaimedFact(NamedTuple):
    predicate: str
    subject: str
    object: str
    denied: bool

    def __str__(self) -> str:
        return f"{'not ' if self.denied else ''}{self.subject} {self.predicate} {self.object}"


class Decision(NamedTuple):
    """A statement that supports a claimed fact or not, and, where that has another end, both as written."""

    fact: ClaimedFact
    statement: Statement
    supports: bool
    denied: bool
    claimed: str = ""
    stated: str = ""


def claimed_facts(claim: str) -> list[ClaimedFact]:
    """Read as the sentences of documents are."""
    found = [ClaimedFact(*fact[:3], extractor == DENIAL) for fact, extractor in facts_in(claim)]
    return list(dict.fromkeys(found))


@dataclass(frozen=True)
class StatedFacts:
    """Of one collection, or of all but the documents that are left out."""

    view: GraphView
    catalogue: EntityCatalogue
    collection: str | None
    left_out: frozenset[DocumentKey] = frozenset()

    def decisions(self, fact: ClaimedFact) -> Iterator[Decision]:
        ends = {"subject": fact.subject, "object": fact.object}
        keys = {role: self._keys(surface) for role, surface in ends.items()}
        both = np.unique(np.concatenate(list(keys.values())))
        for denied in (False, True):
            for statement in {each.key: each for each in self.view.statements_with(both, denied=denied)}.values():
                if statement.predicate != fact.predicate or not self._counts(statement):
                    continue
                parts = {part.name: part for part in statement.roles}
                same = [role for role in ends if role in parts and parts[role].entity in keys[role]]
                if len(same) == len(ends):
                    yield Decision(fact, statement, denied == fact.denied, denied)
                elif same and not denied and "object" in parts and self.has_one(fact.predicate, same[0]):
                    role = "object" if same[0] == "subject" else "subject"
                    if self._exclude(ends[role], keys[role], parts[role]):
                        yield Decision(fact, statement, fact.denied, denied, ends[role], parts[role].surface)

    def has_one(self, predicate: str, role: str) -> bool:
        """Whether whatever has this role in statements with the predicate has nearly always one other end."""
        if predicate == IS_A:
            return False
        pairs = np.unique(np.concatenate([np.empty((0, 2), np.int64), *self._pairs(predicate)]), axis=0)
        _, counts = np.unique(pairs[:, 0 if role == "subject" else 1], return_counts=True)
        if len(counts) < LEAST_SUBJECTS:
            return predicate in (ONE_OBJECT if role == "subject" else ONE_SUBJECT)
        return bool((counts > 1).mean() <= MOST_SHARE)

    def _pairs(self, predicate: str) -> Iterator[np.ndarray]:
        """(n, 2): the entities of subject and object, by the numbers of their names where they are no entities."""
        for part in self.view.segments:
            numbers = part.statements_in(self.collection, [predicate])
            which, edges, entities = part.segment.roles.leaving(numbers)
            keys = part.segment.entity_keys[entities]
            rows = self.catalogue.rows_of(keys)
            ends = np.where(rows >= 0, rows, -2 - (keys >> np.uint64(2)).astype(np.int64))
            pairs = np.full((len(numbers), 2), -1, dtype=np.int64)
            for column, role in enumerate(("subject", "object")):
                of_role = part.segment.role_names.among([role])[edges]
                pairs[which[of_role], column] = ends[of_role]
            yield pairs[(pairs != -1).all(axis=1)]

    def _keys(self, surface: str) -> Keys:
        named = self.view.entities_named([name_of(surface)], self.collection)
        found = [self.catalogue.keys_of(key) for keys in named.values() for key in keys]
        return np.concatenate([np.empty(0, np.uint64), *found])

    def _counts(self, statement: Statement) -> bool:
        key = self.view.document_key(self.view.document_of_passage(statement.passage))
        return self.collection in (None, key.collection) and key not in self.left_out

    def _exclude(self, claimed: str, keys: Keys, stated: Role) -> bool:
        """Whether two ends cannot both be so."""
        one, other = line_of(claimed).units, line_of(stated.surface).units
        if len(one) == len(other) == 1 and one[0].kind == other[0].kind != "name":
            return is_other(one[0], other[0])
        words, others = set(name_of(claimed).split()), set(name_of(stated.surface).split())
        own = self.catalogue.keys_of(stated.entity)
        return words.isdisjoint(others) and not (self._is_within(own, keys) or self._is_within(keys, own))

    def _is_within(self, inner: Keys, outer: Keys) -> bool:
        reached = inner
        for _ in range(MOST_WITHIN):
            stated = [each for each in self.view.statements_with(reached) if each.predicate in WITHIN]
            found = [
                part.entity
                for each in stated
                if any(role.name == "subject" and role.entity in reached for role in each.roles)
                for part in each.roles
                if part.name == "object"
            ]
            reached = np.unique(np.array(found, dtype=np.uint64))
            if np.isin(reached, outer).any():
                return True
        return False
