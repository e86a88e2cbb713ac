"""What the graph states of the facts of a claim: the same, the opposite, or something that excludes it.

A fact with another object excludes one where a subject has one object of this predicate. That is what the graph shows:
of a sample of subjects at most three in a hundred have several, with three more counted that were not seen (the rule of
three, Hanley and Lippman-Hand 1983). Of predicates that have one by `schemas.predicates` it is so unless a tenth have
several. Ends exclude each other unless they have a word in common, or anything is within one of
them, as the other may be.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from indexer.extraction.names import name_of
from indexer.extraction.prose.facts import TIME
from indexer.extraction.relations import facts_in
from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.conflicts import WITHIN
from query_api.entities.entity_facts import Fact, FactFinder, sample_statements
from query_api.index.graph.identifiers import Keys
from query_api.index.graph.view import GraphView
from query_api.research.alignment import is_other, is_same, units_of
from schemas.graph_delta import DENIAL
from schemas.predicates import IS_A, ONE_OBJECT, ONE_SUBJECT

SAMPLE = 1_000  # statements
LEAST_REFUTING = 20  # subjects
REFUTED, SHOWN, UNSEEN = 0.1, 0.03, 3
_WITHIN = frozenset((*WITHIN, "capital_of"))
_ON_A_DAY = re.compile(rf"\b(born|died|founded|created|released|opened) on (?={TIME.pattern})")


class ClaimedFact(NamedTuple):
    subject: str
    predicate: str
    object: str
    denied: bool

    def __str__(self) -> str:
        return f"{'not ' if self.denied else ''}{self.subject} · {self.predicate} · {self.object}"


class Decision(NamedTuple):
    """A fact of the graph, which bears a claimed one out or not; and an end that excludes it, as claimed and stated."""

    fact: Fact
    supports: bool
    instead: tuple[str, str] | None = None


def claimed_facts(claim: str) -> list[ClaimedFact]:
    """Read as the sentences of documents are, of which few say `born on`."""
    found = facts_in(_ON_A_DAY.sub(r"\1 in ", claim))
    read = (ClaimedFact(each.subject, each.predicate, each.object, by == DENIAL) for each, by in found)
    return list(dict.fromkeys(read))


class StatedFacts:
    """Of one collection, or of all."""

    def __init__(self, view: GraphView, catalogue: EntityCatalogue, collection: str | None) -> None:
        self._view, self._catalogue, self._collection = view, catalogue, collection
        self._facts = FactFinder(view, catalogue)
        self.has_one = lru_cache(None)(self._has_one)

    def decisions(self, claimed: ClaimedFact) -> Iterator[Decision]:
        subject, target = self._keys(claimed.subject), self._keys(claimed.object)
        both = np.unique(np.concatenate((subject, target)))
        denials = self._facts.of_statements(self._view.statements_with(both, denied=True))
        for fact in denials:
            if fact.predicate == claimed.predicate and fact.subject.key in subject and fact.object.key in target:
                yield Decision(fact, claimed.denied)
        for fact in self._facts.of_entities(both):
            if fact.predicate != claimed.predicate:
                continue
            own = {"subject": fact.subject.key in subject, "object": fact.object.key in target}
            if all(own.values()):
                yield Decision(fact, not claimed.denied)
            for role, end, other in (
                ("subject", claimed.object, fact.object.surface),
                ("object", claimed.subject, fact.subject.surface),
            ):
                if own[role] and sum(own.values()) == 1:
                    one, stated = units_of(end), units_of(other)
                    if len(one) == len(stated) == 1 and one[0].kind == "time" and is_same(one[0], stated[0]):
                        yield Decision(fact, not claimed.denied)
                    elif self.has_one(fact.predicate, role) and self.excludes(end, other):
                        yield Decision(fact, claimed.denied, (end, other))

    def _has_one(self, predicate: str, role: str) -> bool:
        """Whether what has this role in facts with the predicate has nearly always one other end."""
        if predicate == IS_A:  # a thing is of several kinds
            return False
        sample = sample_statements(self._view, self._collection, predicate, SAMPLE, 0)
        keys = {part.entity for each in sample for part in each.roles if part.name == role}
        facts = self._facts.of_statements(self._view.statements_with(np.array(sorted(keys), dtype=np.uint64)))
        counts = Counter(getattr(each, role).identity for each in facts if each.predicate == predicate)
        several = sum(count > 1 for count in counts.values())
        if predicate in (ONE_OBJECT if role == "subject" else ONE_SUBJECT):
            return len(counts) < LEAST_REFUTING or several <= REFUTED * len(counts)
        return role == "subject" and several + UNSEEN <= SHOWN * len(counts)

    def _keys(self, surface: str) -> Keys:
        """Of all names that are one with what is called so."""
        named = self._view.entities_named([name_of(surface)], self._collection)
        found = [self._catalogue.keys_of(key) for keys in named.values() for key in keys]
        return np.concatenate([np.empty(0, np.uint64), *found])

    def excludes(self, claimed: str, stated: str) -> bool:
        """Whether two values of what has one cannot both be so."""
        one, other = units_of(claimed), units_of(stated)
        if len(one) == len(other) == 1 and "name" not in (one[0].kind, other[0].kind):
            return is_other(one[0], other[0])
        is_apart = set(name_of(claimed).split()).isdisjoint(name_of(stated).split())
        return is_apart and not any(map(self._holds_others, (claimed, stated)))

    def _holds_others(self, surface: str) -> bool:
        """Whether anything is within it, as Leeds is in England: then the other value may be."""
        keys = self._keys(surface)
        return any(each.predicate in _WITHIN and each.object.key in keys for each in self._facts.of_entities(keys))
