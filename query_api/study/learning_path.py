"""Learning paths: concepts in an order in which each comes after what it needs.

What comes before what is what facts say: that one requires, depends on or builds on another, or is prerequisite of it;
and after those, that one is a kind or a part of another, of which the whole and the general come first. Edges that
people made with such predicates count as facts do.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from query_api.entities.description import NEEDED_BY, NEEDS, WITHIN
from query_api.entities.entity_facts import Fact, Identity


class Order(NamedTuple):
    """That `before` is learned before `after`, since the fact says so."""

    before: Identity
    after: Identity
    fact: Fact


def orders_of(facts: Iterable[Fact]) -> list[Order]:
    """Those that need one another first, then kinds and parts; each the strongest first. One that contradicts those
    before it, also by way of others, is left out."""
    needs, within = [], []
    for fact in facts:
        subject, target = (end.identity for end in fact.ends)
        if fact.predicate in NEEDS:
            needs.append(Order(target, subject, fact))
        elif fact.predicate in NEEDED_BY:
            needs.append(Order(subject, target, fact))
        elif fact.predicate in WITHIN:
            within.append(Order(target, subject, fact))
    kept: list[Order] = []
    later: dict[Identity, set[Identity]] = defaultdict(set)  # what comes at once after each
    for order in needs + within:
        if order.after not in later[order.before] and not _leads(later, order.after, order.before):
            later[order.before].add(order.after)
            kept.append(order)
    return kept


def _leads(later: dict[Identity, set[Identity]], start: Identity, end: Identity) -> bool:
    seen, ahead = {start}, [start]
    while ahead:
        here = ahead.pop()
        if here == end:
            return True
        new = later.get(here, set()) - seen
        seen |= new
        ahead += new
    return False


def needed_for(goal: Identity, facts_of: Callable[[Identity], Iterable[Fact]], count: int) -> list[Fact]:
    """The facts that say what comes before the goal, and before that, the nearest first, of at most `count` ends."""
    known, ahead, found = {goal}, [goal], list[Fact]()
    while ahead:
        here = ahead.pop(0)
        for order in orders_of(facts_of(here)):
            if order.after != here or (order.before not in known and len(known) == count):
                continue
            found.append(order.fact)
            if order.before not in known:
                known.add(order.before)
                ahead.append(order.before)
    return found


def in_order(ends: Sequence[Identity], orders: Sequence[Order]) -> list[Identity]:
    """A topological order of the ends (Kahn 1962): of those that may come next, the one that is first in `ends`."""
    left = dict.fromkeys(ends)
    found: list[Identity] = []
    while left:
        blocked = {order.after for order in orders if order.before in left and order.after in left}
        found.append(next(end for end in left if end not in blocked))
        del left[found[-1]]
    return found
