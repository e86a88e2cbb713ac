"""Which entities are one: groups of equal keys, and what people decided, joined to one outcome.

A newer decision holds over an older one, and any decision over equal keys. So decisions are applied from the newest to
the oldest, equal keys last, and what contradicts what was applied before it, directly or through others, is overruled:

- `same` joins its entities, pair by pair, unless that would put two together that are kept apart;
- `different` keeps two apart, unless they are together already;
- `apart` cuts the older links of one entity, those by equal keys among them.

The outcome depends on the decisions in force, each with its position, and on nothing else: not on the order in which
they are read. Links by equal keys are applied in the order of ids.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Literal, NamedTuple

BY_KEY = -1

Verdict = Literal["same", "different", "apart"]


class Decision(NamedTuple):
    """`position` is the offset of its record; `same` is about two or more entities, `different` two, `apart` one."""

    position: int
    verdict: Verdict
    entities: tuple[str, ...]


class Groups(NamedTuple):
    """`members` of each entity that is one with others, by its id, ascending; positions of `overruled` decisions: those
    of which a part has no effect."""

    members: dict[str, tuple[str, ...]]
    overruled: frozenset[int]


def _decide(found: "_Components", decision: Decision, first: str, second: str, cut: dict[str, int]) -> bool:
    """Carry a decision out for two of its entities; whether it holds beside the newer ones."""
    if decision.verdict == "different":
        return found.part(first, second)
    return _is_in_force(decision.position, first, second, cut) and found.join(first, second)


def resolve_groups(equal: Iterable[Sequence[str]], decisions: Iterable[Decision]) -> Groups:
    """The groups of entities: `equal` are ids of equal keys, each id in one of them at most.

    An entity that is decided about and is not there (yet, or any more) is a member like others: a reader leaves out
    what it does not know.
    """
    newest_first = sorted(decisions, key=lambda each: -each.position)
    cut = {each.entities[0]: each.position for each in reversed(newest_first) if each.verdict == "apart"}
    found = _Components()
    overruled: set[int] = set()
    for decision in newest_first:
        if decision.verdict == "apart":
            continue
        holds = [_decide(found, decision, *pair, cut) for pair in combinations(sorted(set(decision.entities)), 2)]
        if not all(holds):
            overruled.add(decision.position)
    for group in sorted(sorted(each for each in group if each not in cut) for group in equal):
        kept_apart = any(found.of(each).foes for each in group)
        links = combinations(group, 2) if kept_apart else ((group[0], other) for other in group[1:])
        for first, second in links:
            found.join(first, second)
    return Groups(found.groups(), frozenset(overruled))


def _is_in_force(position: int, first: str, second: str, cut: dict[str, int]) -> bool:
    """Whether a link is newer than what sets either of its ends apart."""
    return position > max(cut.get(first, BY_KEY), cut.get(second, BY_KEY))


@dataclass(eq=False)
class _Component:
    """Entities that are one, and those that must not come to them."""

    members: set[str]
    foes: set[str] = field(default_factory=set)


class _Components:
    """Disjoint sets, some of which must not come together."""

    def __init__(self) -> None:
        self._of: dict[str, _Component] = {}

    def of(self, entity: str) -> _Component:
        return self._of.setdefault(entity, _Component({entity}))

    def part(self, first: str, second: str) -> bool:
        """False where they are together already."""
        one, other = self.of(first), self.of(second)
        if one is other:
            return False
        one.foes.add(second)
        other.foes.add(first)
        return True

    def join(self, first: str, second: str) -> bool:
        """False where that would bring together what is kept apart."""
        one, other = self.of(first), self.of(second)
        if one is other:
            return True
        if one.foes & other.members or other.foes & one.members:
            return False
        smaller, larger = sorted((one, other), key=lambda each: len(each.members))
        larger.members |= smaller.members
        larger.foes |= smaller.foes
        for each in smaller.members:
            self._of[each] = larger
        return True

    def groups(self) -> dict[str, tuple[str, ...]]:
        components = {id(each): each for each in self._of.values() if len(each.members) > 1}
        return {
            entity: members
            for each in components.values()
            for members in [tuple(sorted(each.members))]
            for entity in members
        }
