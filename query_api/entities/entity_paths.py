"""Paths between two entities, or from one to what is around it, over facts and sentences that name both.

The strongest come first; a path's strength is the product of its steps'. Names of facts that are not entities, and
hand-made nodes, are a way through, too; by sentences, entities that very many chunks mention are not.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

import numpy as np

from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.description import EntityDescriber
from query_api.entities.entity_facts import End, Fact
from query_api.entities.path_search import FoundPaths, Path, Step, search_around, search_paths
from query_api.index.graph.identifiers import Keys
from query_api.index.graph.typed_mentions import TypedMention, typed_mentions_in, typed_mentions_of
from query_api.index.graph.view import GraphView
from query_api.query.analysis import normalise_text
from schemas.entities import EntityPath, EntityRef, PathStep
from schemas.graph_delta import LITERAL_TYPES

MAX_NEIGHBOURS = 60
HUB_CHUNKS = 400
MENTIONED_WITH = "mentioned_with"
CO_MENTION_STRENGTH = 0.3  # of one chunk with such a sentence; a second one adds .1, up to .6
MOST_CO_MENTION_STRENGTH = 0.6

PathEnd = tuple[str, int]
"""The `identity` of an end of a fact: an entity, a hand-made node or a name."""
_Mentions = tuple[TypedMention, TypedMention]  # in one sentence
_Over = Fact | _Mentions
_Step = Step[PathEnd, _Over]


class PathFinder:
    """Finds paths in one view and its catalogue, over facts of these predicates, or with none given over all and over
    sentences. Reads texts; may block."""

    def __init__(
        self,
        view: GraphView,
        catalogue: EntityCatalogue,
        describer: EntityDescriber,
        predicates: Collection[str] = (),
    ) -> None:
        self._view = view
        self._catalogue = catalogue
        self._describer = describer
        self._facts = describer.facts
        self._predicates = predicates
        self._steps: dict[PathEnd, list[_Step]] = {}
        self._surfaces: dict[PathEnd, str] = {}  # of names

    def paths(self, start: PathEnd, end: PathEnd, max_steps: int, limit: int) -> FoundPaths[EntityPath]:
        """At most `limit` paths of at most `max_steps` steps, the strongest first, none through an entity twice."""
        found = self._between(start, end, max_steps, limit)
        return FoundPaths([self._path(start, *path) for path in found.paths], found.truncated)

    def around(
        self,
        start: PathEnd,
        max_steps: int,
        limit: int,
        *,
        min_strength: float,
        entity_type: str | None = None,
        through: PathEnd | None = None,
    ) -> FoundPaths[EntityPath]:
        """The strongest path to each of at most `limit` other entities and hand-made nodes, of a type, by way of
        another node where one is given."""
        first: Path[PathEnd, _Over] = (1.0, ())
        if through is not None:
            leading = self._between(start, through, max_steps, 1)
            if not leading.paths:
                return FoundPaths([], leading.truncated)
            first = leading.paths[0]
        passed = {start, *(step.target for step in first[1])}

        def is_wanted(node: PathEnd) -> bool:
            is_of_type = entity_type is None or self._reference(node).type == entity_type
            return is_of_type and node[0] != "name" and node not in passed

        def steps_from(nodes: Sequence[PathEnd]) -> Iterable[_Step]:
            return (step for step in self._from(nodes[-1]) if step.target not in passed)

        left, least = max_steps - len(first[1]), min_strength / first[0]
        found = search_around(through or start, steps_from, left, limit, min_strength=least, is_wanted=is_wanted)
        whole = [(strength * first[0], (*first[1], *steps)) for strength, steps in found.paths]
        return FoundPaths([self._path(start, *path) for path in whole], found.truncated)

    def _between(self, start: PathEnd, end: PathEnd, max_steps: int, limit: int) -> FoundPaths[Path[PathEnd, _Over]]:
        if start == end:
            return FoundPaths([], truncated=False)

        return search_paths(
            start, end, lambda nodes: self._from(nodes[-1], end), max_steps, limit, shortest_first=False
        )

    def _from(self, node: PathEnd, end: PathEnd | None = None) -> list[_Step]:
        """The strongest steps from a node, one to each other; always those to the end."""
        if node not in self._steps:
            self._steps[node] = sorted(self._all_from(node), key=lambda step: (-step.strength, step.target))
        steps = self._steps[node]
        last = [step for step in steps[MAX_NEIGHBOURS:] if step.target == end]
        return [*islice(steps, MAX_NEIGHBOURS), *last]

    def _all_from(self, node: PathEnd) -> list[_Step]:
        kind, at = node
        keys = np.array(self._catalogue.members[at] if kind == "entity" else [at], dtype=np.uint64)
        best: dict[PathEnd, _Step] = {}
        facts = self._facts.of_node(at) if kind == "node" else self._facts.of_entities(keys)
        for fact in facts:
            for end in (fact.subject, fact.object):
                self._surfaces.setdefault(end.identity, end.surface)
                is_other = end.identity != node and end.identity not in best
                if is_other and (not self._predicates or fact.predicate in self._predicates):
                    best[end.identity] = _Step(end.identity, fact.strength, fact)
        if kind == "entity" and not self._predicates:
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
            if row is None or row == own or self._catalogue.type_of(row) in LITERAL_TYPES or other.chunk in found[row]:
                continue
            names = sorted((normalise_text(each.surface) for each in (here, other)), key=len)
            if any(_names_both(sentence, *names) for sentence in sentences.get(other.chunk, ())):
                found[row][other.chunk] = here, other
        return {row: list(of_row.values()) for row, of_row in found.items() if of_row}

    def _path(self, start: PathEnd, strength: float, steps: Sequence[_Step]) -> EntityPath:
        nodes = [start, *(step.target for step in steps)]
        return EntityPath(strength=round(strength, 4), steps=list(map(self._shown, nodes, steps)))

    def _shown(self, node: PathEnd, step: _Step) -> PathStep:
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

    def _reference(self, node: PathEnd) -> EntityRef:
        kind, at = node
        row, made = (at if kind == each else None for each in ("entity", "node"))
        return self._describer.reference(End(row, at, self._surfaces.get(node, ""), made))


def _names_both(sentence: str, shorter: str, longer: str) -> bool:
    """Whether a normalised sentence has both names, also apart from the shorter one in the longer."""
    return f" {longer} " in sentence and f" {shorter} " in sentence.replace(f" {longer} ", "  ")
