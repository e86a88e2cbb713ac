"""Paths between two entities, over statements and chunks that mention both: the strongest first.

Yen's k shortest paths (1971) are more than people look at: the search is best-first over partial paths, by the product
of their strengths, and ends at a bound of expanded entities. Entities that very many chunks mention are no way through.
"""

import heapq
from itertools import count, islice
from typing import NamedTuple

import numpy as np

from query_api.entities.catalogue import LITERAL_TYPES, Entity, EntityCatalogue
from query_api.entities.description import EntityDescriber
from query_api.entities.entity_facts import Fact
from query_api.index.graph.typed_mentions import typed_mentions_of
from query_api.index.graph.view import GraphView
from schemas.entities import EntityPath, EntityRef, Evidence, PathStep

MAX_EXPANDED = 300
MAX_PATHS_THROUGH = 2  # of one entity
MAX_NEIGHBOURS = 60
HUB_CHUNKS = 400
MENTIONED_WITH = "mentioned_with"
CO_MENTION_STRENGTH = 0.3  # of one chunk that mentions both; a second one adds .1, up to .6
MOST_CO_MENTION_STRENGTH = 0.6


class _Step(NamedTuple):
    source: int
    target: int
    strength: float
    fact: Fact | None


class _Found(NamedTuple):
    paths: list[EntityPath]
    truncated: bool


class PathFinder:
    """Finds paths in one view and its catalogue."""

    def __init__(self, view: GraphView, catalogue: EntityCatalogue, describer: EntityDescriber) -> None:
        self._view = view
        self._catalogue = catalogue
        self._describer = describer
        self._steps: dict[int, list[_Step]] = {}

    def paths(self, source: Entity, target: Entity, max_steps: int, limit: int) -> _Found:
        """At most `limit` paths of at most `max_steps` steps, none through an entity twice."""
        start, end = self._catalogue.row_of(source.members[0]), self._catalogue.row_of(target.members[0])
        if start is None or end is None or start == end:
            return _Found([], truncated=False)
        number = count()
        waiting: list[tuple[float, int, int, tuple[_Step, ...]]] = [(-1.0, 0, next(number), ())]
        passed: dict[int, int] = {}
        found: list[EntityPath] = []
        while waiting and len(found) < limit:
            negative, length, _, steps = heapq.heappop(waiting)
            here = steps[-1].target if steps else start
            if here == end:
                found.append(self._path(steps, -negative))
                continue
            if passed.get(here, 0) >= MAX_PATHS_THROUGH or length == max_steps:
                continue
            if len(self._steps) >= MAX_EXPANDED and here not in self._steps:
                return _Found(found, truncated=True)
            passed[here] = passed.get(here, 0) + 1
            visited = {start, *(step.target for step in steps)}
            for step in self._from(here, end):
                if step.target not in visited:
                    heapq.heappush(waiting, (negative * step.strength, length + 1, next(number), (*steps, step)))
        return _Found(found, truncated=False)

    def _from(self, row: int, end: int) -> list[_Step]:
        """The strongest steps from an entity, one to each other; always those to the end."""
        if row not in self._steps:
            self._steps[row] = sorted(self._all_from(row), key=lambda step: (-step.strength, step.target))
        steps = self._steps[row]
        last = [step for step in steps[MAX_NEIGHBOURS:] if step.target == end]
        return [*islice(steps, MAX_NEIGHBOURS), *last]

    def _all_from(self, row: int) -> list[_Step]:
        keys = np.array(self._catalogue.members[row], dtype=np.uint64)
        best: dict[int, _Step] = {}
        for fact in self._describer.facts_of(keys):
            for end in (fact.subject, fact.object):
                if end.row is not None and end.row != row and end.row not in best:
                    best[end.row] = _Step(row, end.row, fact.strength, fact)
        mentions = list(typed_mentions_of(self._view.segments, keys))
        chunks = np.unique(np.array([each.chunk for each in mentions], dtype=np.int64))
        if len(chunks) <= HUB_CHUNKS:
            shared = self._describer.co_mentioned(row, chunks)
            for other, times in shared.items():
                strength = min(MOST_CO_MENTION_STRENGTH, CO_MENTION_STRENGTH + 0.1 * (times - 1))
                if other not in best and self._catalogue[other].type not in LITERAL_TYPES:
                    best[other] = _Step(row, other, strength, None)
        return list(best.values())

    def _path(self, steps: tuple[_Step, ...], strength: float) -> EntityPath:
        return EntityPath(strength=round(strength, 4), steps=[self._shown(step) for step in steps])

    def _shown(self, step: _Step) -> PathStep:
        source, target = self._catalogue[step.source], self._catalogue[step.target]
        if step.fact is None:
            evidence, predicate, inverse = self._together(source, target), MENTIONED_WITH, False
        else:
            evidence = next(self._describer.evidence(step.fact), None)
            predicate, inverse = step.fact.predicate, step.fact.subject.row == step.target
        return PathStep(
            source=_reference(source),
            predicate=predicate,
            target=_reference(target),
            inverse=inverse,
            strength=step.strength,
            evidence=evidence,
        )

    def _together(self, one: Entity, other: Entity) -> Evidence | None:
        """The first sentence that names both, else the chunk."""
        places = [
            {each.chunk: each for each in typed_mentions_of(self._view.segments, np.array(entity.members, np.uint64))}
            for entity in (one, other)
        ]
        shared = sorted(places[0].keys() & places[1].keys())
        return self._describer.evidence_of_mentions([(places[0][at], places[1][at]) for at in shared])


def _reference(entity: Entity) -> EntityRef:
    return EntityRef(id=entity.id, label=entity.label, type=entity.type)
