"""Paths between two entities, over facts and sentences that name both: the strongest first.

Names of facts that are not entities are a way through, too; entities that very many chunks mention are not.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from query_api.entities.catalogue import LITERAL_TYPES, Entity, EntityCatalogue
from query_api.entities.description import EntityDescriber
from query_api.entities.entity_facts import End, Fact
from query_api.entities.path_search import FoundPaths, Step, search_paths
from query_api.index.graph.identifiers import Keys
from query_api.index.graph.typed_mentions import TypedMention, typed_mentions_in, typed_mentions_of
from query_api.index.graph.view import GraphView
from query_api.query.analysis import normalise_text
from schemas.entities import EntityPath, EntityRef, PathStep

MAX_NEIGHBOURS = 60
HUB_CHUNKS = 400
MENTIONED_WITH = "mentioned_with"
CO_MENTION_STRENGTH = 0.3  # of one chunk with such a sentence; a second one adds .1, up to .6
MOST_CO_MENTION_STRENGTH = 0.6

_Node = tuple[str, int]  # the `identity` of an end of a fact
_Mentions = tuple[TypedMention, TypedMention]  # in one sentence
_Step = Step[_Node, Fact | _Mentions]


class PathFinder:
    """Finds paths in one view and its catalogue. Reads texts; may block."""

    def __init__(self, view: GraphView, catalogue: EntityCatalogue, describer: EntityDescriber) -> None:
        self._view = view
        self._catalogue = catalogue
        self._describer = describer
        self._steps: dict[_Node, list[_Step]] = {}
        self._surfaces: dict[_Node, str] = {}  # of names

    def paths(self, source: Entity, target: Entity, max_steps: int, limit: int) -> FoundPaths[EntityPath]:
        """At most `limit` paths of at most `max_steps` steps, none through an entity twice."""
        rows = [self._catalogue.row_of(each.members[0]) for each in (source, target)]
        if rows[0] is None or rows[1] is None or rows[0] == rows[1]:
            return FoundPaths([], truncated=False)
        start, end = ("entity", rows[0]), ("entity", rows[1])

        def steps_from(nodes: Sequence[_Node]) -> Iterable[_Step]:
            return self._from(nodes[-1], end)

        found = search_paths(start, end, steps_from, max_steps, limit, shortest_first=False)
        return FoundPaths([self._path(start, steps, strength) for strength, steps in found.paths], found.truncated)

    def _from(self, node: _Node, end: _Node) -> list[_Step]:
        """The strongest steps from a node, one to each other; always those to the end."""
        if node not in self._steps:
            self._steps[node] = sorted(self._all_from(node), key=lambda step: (-step.strength, step.target))
        steps = self._steps[node]
        last = [step for step in steps[MAX_NEIGHBOURS:] if step.target == end]
        return [*islice(steps, MAX_NEIGHBOURS), *last]

    def _all_from(self, node: _Node) -> list[_Step]:
        kind, at = node
        keys = np.array(self._catalogue.members[at] if kind == "entity" else [at], dtype=np.uint64)
        best: dict[_Node, _Step] = {}
        for fact in self._describer.facts_of(keys):
            for end in (fact.subject, fact.object):
                self._surfaces.setdefault(end.identity, end.surface)
                if end.identity != node and end.identity not in best:
                    best[end.identity] = _Step(end.identity, fact.strength, fact)
        if kind == "entity":
            for row, together in self._named_together(at, keys).items():
                strength = min(MOST_CO_MENTION_STRENGTH, CO_MENTION_STRENGTH + 0.1 * (len(together) - 1))
                best.setdefault(("entity", row), _Step(("entity", row), strength, together[0]))
        return list(best.values())

    def _named_together(self, own: int, keys: Keys) -> dict[int, list[_Mentions]]:
        """{the row of another entity: mentions of both in a sentence, of each chunk that has one}; without literals,
        such as dates, and nothing where very many chunks mention the entity."""
        mentions = {each.chunk: each for each in typed_mentions_of(self._view.segments, keys)}
        if len(mentions) > HUB_CHUNKS:
            return {}
        sentences = self._describer.sentences_of(mentions)
        found: dict[int, dict[int, _Mentions]] = defaultdict(dict)
        for other in typed_mentions_in(self._view.segments, np.array(sorted(mentions), dtype=np.int64)):
            row, here = self._catalogue.row_of(other.entity), mentions[other.chunk]
            if row is None or row == own or self._catalogue[row].type in LITERAL_TYPES or other.chunk in found[row]:
                continue
            names = sorted((normalise_text(each.surface) for each in (here, other)), key=len)
            if any(_names_both(sentence, *names) for sentence in sentences.get(other.chunk, ())):
                found[row][other.chunk] = here, other
        return {row: list(of_row.values()) for row, of_row in found.items() if of_row}

    def _path(self, start: _Node, steps: Sequence[_Step], strength: float) -> EntityPath:
        nodes = [start, *(step.target for step in steps)]
        return EntityPath(strength=round(strength, 4), steps=list(map(self._shown, nodes, steps)))

    def _shown(self, node: _Node, step: _Step) -> PathStep:
        inverse = False
        if isinstance(step.over, Fact):
            evidence = next(self._describer.evidence(step.over), None)
            predicate, inverse = step.over.predicate, step.over.subject.identity == step.target
        else:
            evidence, predicate = self._describer.evidence_of_mentions(*step.over), MENTIONED_WITH
        return PathStep(
            source=self._reference(node),
            predicate=predicate,
            target=self._reference(step.target),
            inverse=inverse,
            strength=step.strength,
            evidence=evidence,
        )

    def _reference(self, node: _Node) -> EntityRef:
        kind, at = node
        return self._describer.reference(End(at if kind == "entity" else None, at, self._surfaces.get(node, "")))


def _names_both(sentence: str, shorter: str, longer: str) -> bool:
    """Whether a normalised sentence has both names, also apart from the shorter one in the longer."""
    return f" {longer} " in sentence and f" {shorter} " in sentence.replace(f" {longer} ", "  ")
