"""Paths between two entities, over statements and chunks that mention both: the strongest first.

Entities that very many chunks mention are no way through.
"""

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from query_api.entities.catalogue import LITERAL_TYPES, Entity, EntityCatalogue
from query_api.entities.description import EntityDescriber
from query_api.entities.entity_facts import Fact
from query_api.entities.path_search import FoundPaths, Step, search_paths
from query_api.index.graph.typed_mentions import typed_mentions_of
from query_api.index.graph.view import GraphView
from schemas.entities import EntityPath, EntityRef, Evidence, PathStep

MAX_NEIGHBOURS = 60
HUB_CHUNKS = 400
MENTIONED_WITH = "mentioned_with"
CO_MENTION_STRENGTH = 0.3  # of one chunk that mentions both; a second one adds .1, up to .6
MOST_CO_MENTION_STRENGTH = 0.6

_Step = Step[int, Fact | None]


class PathFinder:
    """Finds paths in one view and its catalogue."""

    def __init__(self, view: GraphView, catalogue: EntityCatalogue, describer: EntityDescriber) -> None:
        self._view = view
        self._catalogue = catalogue
        self._describer = describer
        self._steps: dict[int, list[_Step]] = {}

    def paths(self, source: Entity, target: Entity, max_steps: int, limit: int) -> FoundPaths[EntityPath]:
        """At most `limit` paths of at most `max_steps` steps, none through an entity twice."""
        start, end = self._catalogue.row_of(source.members[0]), self._catalogue.row_of(target.members[0])
        if start is None or end is None or start == end:
            return FoundPaths([], truncated=False)

        def steps_from(rows: Sequence[int]) -> Iterable[_Step]:
            return self._from(rows[-1], end)

        found = search_paths(start, end, steps_from, max_steps, limit, shortest_first=False)
        return FoundPaths([self._path(start, steps, strength) for strength, steps in found.paths], found.truncated)

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
                    best[end.row] = _Step(end.row, fact.strength, fact)
        mentions = list(typed_mentions_of(self._view.segments, keys))
        chunks = np.unique(np.array([each.chunk for each in mentions], dtype=np.int64))
        if len(chunks) <= HUB_CHUNKS:
            shared = self._describer.co_mentioned(row, chunks)
            for other, times in shared.items():
                strength = min(MOST_CO_MENTION_STRENGTH, CO_MENTION_STRENGTH + 0.1 * (times - 1))
                if other not in best and self._catalogue[other].type not in LITERAL_TYPES:
                    best[other] = _Step(other, strength, None)
        return list(best.values())

    def _path(self, start: int, steps: Sequence[_Step], strength: float) -> EntityPath:
        rows = [start, *(step.target for step in steps)]
        return EntityPath(strength=round(strength, 4), steps=list(map(self._shown, rows, steps)))

    def _shown(self, row: int, step: _Step) -> PathStep:
        source, target, fact = self._catalogue[row], self._catalogue[step.target], step.over
        if fact is None:
            evidence, predicate, inverse = self._together(source, target), MENTIONED_WITH, False
        else:
            evidence = next(self._describer.evidence(fact), None)
            predicate, inverse = fact.predicate, fact.subject.row == step.target
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
