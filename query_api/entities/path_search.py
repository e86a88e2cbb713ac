"""Best-first search for paths between two nodes.

Yen's k shortest paths (1971) are more than people look at: the search is over partial paths, by their lengths or by the
product of their steps' strengths, and ends at a bound of expanded nodes.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import count
from typing import Generic, NamedTuple, TypeVar

MAX_EXPANDED = 300
MAX_PATHS_THROUGH = 2  # of one node

N = TypeVar("N", bound=Hashable)
V = TypeVar("V")
P = TypeVar("P")


class Step(NamedTuple, Generic[N, V]):
    """To a node; `strength` is in (0, 1], `over` what leads there."""

    target: N
    strength: float
    over: V


class FoundPaths(NamedTuple, Generic[P]):
    """`truncated` where there may be more than was looked at."""

    paths: list[P]
    truncated: bool


Path = tuple[float, tuple[Step[N, V], ...]]  # its strength, and its steps


def search_paths(
    start: N,
    end: N,
    steps_from: Callable[[Sequence[N]], Iterable[Step[N, V]]],
    max_steps: int,
    limit: int,
    *,
    shortest_first: bool,
) -> FoundPaths[Path[N, V]]:
    """At most `limit` paths of at most `max_steps` steps, none through a node twice: the strongest first, or the
    shortest and of one length the strongest. `steps_from` gives the steps that may follow the nodes of a path."""
    number = count()
    waiting: list[tuple[tuple[float, float], int, Path[N, V]]] = [((0.0, 0.0), next(number), (1.0, ()))]
    passed: Counter[N] = Counter()
    found: list[Path[N, V]] = []
    truncated = False
    while waiting and len(found) < limit:
        _, _, (strength, steps) = heapq.heappop(waiting)
        nodes = [start, *(step.target for step in steps)]
        here = nodes[-1]
        if here == end:
            found.append((strength, steps))
        elif len(steps) == max_steps or passed[here] >= MAX_PATHS_THROUGH:
            continue
        elif here not in passed and len(passed) >= MAX_EXPANDED:
            truncated = True
        else:
            passed[here] += 1
            for step in steps_from(nodes):
                if step.target not in nodes:
                    whole, length = strength * step.strength, len(nodes)
                    rank = (length, -whole) if shortest_first else (-whole, length)
                    heapq.heappush(waiting, (rank, next(number), (whole, (*steps, step))))
    return FoundPaths(found, truncated)


def search_around(
    start: N,
    steps_from: Callable[[Sequence[N]], Iterable[Step[N, V]]],
    max_steps: int,
    limit: int,
    *,
    min_strength: float,
    is_wanted: Callable[[N], bool],
) -> FoundPaths[Path[N, V]]:
    """The strongest path from a node to each of at most `limit` wanted others within `max_steps` steps, the strongest
    first; none weaker than `min_strength`."""
    number = count()
    waiting: list[tuple[float, int, int, Path[N, V]]] = [(-1.0, 0, next(number), (1.0, ()))]
    passed: dict[N, int] = {}  # with the fewest steps: a weaker path that is shorter leads on where a longer one ends
    found: list[Path[N, V]] = []
    while waiting and len(found) < limit and len(passed) < MAX_EXPANDED:
        _, length, _, (strength, steps) = heapq.heappop(waiting)
        here = steps[-1].target if steps else start
        if passed.get(here, max_steps + 1) <= length:
            continue
        if steps and here not in passed and is_wanted(here):
            found.append((strength, steps))
        passed[here] = length
        for step in steps_from([here]) if length < max_steps else ():
            whole = strength * step.strength
            if whole >= min_strength and passed.get(step.target, max_steps + 1) > length + 1:
                heapq.heappush(waiting, (-whole, length + 1, next(number), (whole, (*steps, step))))
    return FoundPaths(found, truncated=any(path[1][-1].target not in passed for *_, path in waiting))
