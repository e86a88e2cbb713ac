"""What the graph's statements say of the facts of a claim: the same, the opposite, or something that excludes it.

A statement with another object excludes a fact where a subject has one object of this predicate. That is what the graph
shows: of at least a hundred subjects that have the predicate in these collections at most three in a hundred have
several objects, the upper bound of that share by the rule of three (Hanley and Lippman-Hand 1983). Of the predicates of
which `schemas.predicates` says that there is one, it is so unless the graph shows the opposite: a tenth with several.
Two ends exclude each other unless one is within the other, by
its words or by what documents state.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from indexer.extraction.names import name_of
from indexer.extraction.prose.facts import TIME
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

LEAST_SHOWN = 20  # subjects, below which the graph refutes nothing
REFUTED = 0.1  # the share of subjects with several objects above which a predicate that should have one has not
SHOWN, UNSEEN = 0.03, 3  # the share below which any predicate has one, with so many more of them that were not seen
_ON_A_DAY = re.compile(rf"\b(born|died|founded|created|released|opened) on (?={TIME.pattern})")
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
    """Read as the sentences of documents are, which say `(12 May 1954 – …)` or `born in 1954` rather than `born on`."""
    plain = _ON_A_DAY.sub(r"\1 in ", claim)
    found = [ClaimedFact(*fact[:3], extractor == DENIAL) for fact, extractor in facts_in(plain)]
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
        """Whether whatever has this role in statements with the predicate has one other end, nearly always."""
        pairs = np.unique(np.concatenate([np.empty((0, 2), np.int64), *self._pairs(predicate)]), axis=0)
        _, counts = np.unique(pairs[:, 0 if role == "subject" else 1], return_counts=True)
        several = int((counts > 1).sum())
        if predicate != IS_A and predicate in (ONE_OBJECT if role == "subject" else ONE_SUBJECT):
            return len(counts) < LEAST_SHOWN or several <= REFUTED * len(counts)
        return role == "subject" and bool(len(counts)) and several + UNSEEN <= SHOWN * len(counts)

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
