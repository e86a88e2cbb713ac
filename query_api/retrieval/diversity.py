"""How many hits may have something in common: their document, or a value of one of its fields. Pure.

Places are taken in their order, each by what is taken before it, so the first ones are the same whatever page they are
made for.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import NamedTuple, TypeVar

from schemas.ids import DocumentKey

T = TypeVar("T")


class Limit(NamedTuple):
    """At most so many hits whose documents share one of these."""

    most: int
    shared: Callable[[DocumentKey], Collection[Hashable]]

    @classmethod
    def per_document(cls, most: int) -> "Limit":
        return cls(most, lambda key: (key,))


def at_most(
    limits: Sequence[Limit], order: Sequence[T], key_of: Callable[[T], DocumentKey], first: int | None = None
) -> list[T]:
    """The first of the order, or all for None, without those that would be one too many for any of the limits."""
    if not limits:
        return list(order[:first])
    taken: list[Counter[Hashable]] = [Counter() for _ in limits]
    kept: list[T] = []
    for unit in order:
        key = key_of(unit)
        shares = [limit.shared(key) for limit in limits]
        full = any(
            counted[each] >= limit.most
            for limit, counted, shared in zip(limits, taken, shares, strict=True)
            for each in shared
        )
        if full:
            continue
        for counted, shared in zip(taken, shares, strict=True):
            counted.update(shared)
        kept.append(unit)
        if first is not None and len(kept) >= first:
            break
    return kept
