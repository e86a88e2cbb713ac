"""Walks over relations, the edges that people made: from what a seed is to what they join it with.

A relation of weight w leads on with w / fan^.25, fan the number of relations at the end it is left from. What has no
passage of its own, a node without text or a document that holds nothing, is a stone to step on: it costs no hop.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from query_api.index.graph.relations import End, MadeRelation, has_relations, relations_of
from query_api.index.graph.view import GraphView

Follows = Callable[[str], bool]
"""Whether relations of this predicate are followed."""
EntryPassages = Callable[[int], Sequence[tuple[int, float]]]
"""Where a path enters a document: (passage, share in (0, 1]) of each."""

MAX_STONES = 2  # beside the hops
MAX_FRONTIER = 200  # ends that are walked on from, the strongest
MAX_CROWD = 40  # passages that mention an entity


class RelationStep(NamedTuple):
    """A relation that is walked to `end`; `inverse` where it leads the other way. `attributes` are the relation's."""

    predicate: str
    inverse: bool
    end: End
    attributes: str


class Reached(NamedTuple):
    """Where a walk is: from which of the starts, how strongly, over which steps."""

    origin: int
    end: End
    strength: float
    steps: tuple[RelationStep, ...] = ()


class Entered(NamedTuple):
    """A passage where a walk comes out; of an entity, `entity` and the chunk that mentions it, -1 for a document about
    it."""

    passage: int
    strength: float
    reached: Reached
    entity: int = 0
    chunk: int = -1


def walk_relations(
    view: GraphView, starts: Sequence[Mapping[End, float]], follows: Follows, hops: int
) -> Iterator[Reached]:
    """The ends that at most so many hops lead to, each once from each start, the strongest way; `starts` are how
    strongly each begins at several ends."""
    frontier = [Reached(at, end, strength) for at, ends in enumerate(starts) for end, strength in ends.items()]
    best = {(each.origin, each.end): math.inf for each in frontier}
    for length in range(1, hops + MAX_STONES + 1):
        found: dict[tuple[int, End], Reached] = {}
        for here, relation, other, inverse, share in _leading_on(view, frontier, follows):
            strength = here.strength * share
            if strength > best.get((here.origin, other), 0.0):
                best[here.origin, other] = strength
                step = RelationStep(relation.predicate, inverse, other, relation.attributes)
                found[here.origin, other] = Reached(here.origin, other, strength, (*here.steps, step))
        yield from found.values()
        goes_on = (each for each in found.values() if _hops(view, each) < hops or is_stone(view, each.end))
        frontier = sorted(goes_on, key=lambda each: (-each.strength, each.origin, each.end))[:MAX_FRONTIER]
        if not frontier or length - hops >= MAX_STONES:
            return


def _leading_on(
    view: GraphView, frontier: Sequence[Reached], follows: Follows
) -> Iterator[tuple[Reached, MadeRelation, End, bool, float]]:
    ends = list(dict.fromkeys(each.end for each in frontier))
    ways: list[list[tuple[MadeRelation, End, bool]]] = [[] for _ in ends]
    for relation in relations_of(view.segments, ends):
        if follows(relation.predicate):
            here = ends[relation.query_index]
            ways[relation.query_index] += ((relation, other, inverse) for other, inverse in relation.others(here))
    of_end = dict(zip(ends, ways, strict=True))
    for each in frontier:
        fan = len(of_end[each.end])
        for relation, other, inverse in of_end[each.end]:
            yield each, relation, other, inverse, relation.weight / math.sqrt(math.sqrt(fan))


def _hops(view: GraphView, reached: Reached) -> int:
    return sum(not is_stone(view, step.end) for step in reached.steps)


def is_stone(view: GraphView, end: End) -> bool:
    return end.kind == "document" and not len(view.passages_of_document(end.at))


def passages_at(view: GraphView, reached: Iterable[Reached], entries: EntryPassages) -> Iterator[Entered]:
    """Where walks come out: a document's entries, a chunk's passage; of an entity, the documents about it, alias weight
    / sqrt(documents), and the passages that mention it, 1 / sqrt(passages), if 40 at most do."""
    walks = list(reached)
    entities = view.neighbourhoods(
        list(dict.fromkeys(each.end.at for each in walks if each.end.kind == "entity")), 1, MAX_CROWD
    )
    for each in walks:
        kind, at = each.end
        if kind == "document":
            for passage, share in entries(at):
                yield Entered(passage, each.strength * share, each)
        elif kind == "chunk":
            yield Entered(view.passage_of_chunk(at), each.strength, each)
        elif (near := entities.get(at)) is not None:
            for document, weight in near.about:
                for passage, share in entries(document):
                    yield Entered(passage, each.strength * share * weight / math.sqrt(len(near.about)), each, at)
            for chunk, passage in near.mentions:
                yield Entered(passage, each.strength / math.sqrt(near.frequency), each, at, chunk)


def joins(view: GraphView, passages: Sequence[int]) -> list[bool]:
    """Whether a relation joins each passage's document, or a chunk of it, with something that is there."""
    if not has_relations(view.segments):
        return [False] * len(passages)
    starts = [{End("document", view.document_of_passage(each)): 1.0, **chunks_of(view, each)} for each in passages]
    ends = [end for of_one in starts for end in of_one]
    leading = {ends[each.query_index] for each in relations_of(view.segments, ends) if each.source and each.target}
    return [not leading.isdisjoint(of_one) for of_one in starts]


def chunks_of(view: GraphView, passage: int) -> dict[End, float]:
    return {End("chunk", chunk): 1.0 for chunk in view.chunks_of_passage(passage)}


def entities_at(view: GraphView, document: int, mentioned: Mapping[int, float]) -> dict[End, float]:
    """The entities that a passage stands for: those that its document is about by its title, and those that it mentions
    with their values / sqrt(passages that mention each), if 40 at most do."""
    keys = list(mentioned)
    crowds = view.passage_frequencies(np.array(keys, dtype=np.uint64)).tolist()
    found = {
        End("entity", key): mentioned[key] / math.sqrt(max(crowd, 1))
        for key, crowd in zip(keys, crowds, strict=True)
        if crowd <= MAX_CROWD
    }
    about = view.about_of(np.array([document]))
    return found | {
        End("entity", key): 1.0
        for key, weight in zip(about.entity.tolist(), about.weight.tolist(), strict=True)
        if weight >= 1
    }
