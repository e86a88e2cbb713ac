"""Walks over relations, the edges that people made: from what a seed is to what they join it with.

A relation of weight w leads on with w x min(1, (10 / fan)^.25), fan the number of relations at the end that it leaves.
A way counts with v = .3 + .7 x the larger of two: the share of the question's words, but for those in the name of where
it starts, that its predicates, its notes and the names on it hold; and how well the best document that it goes by fits.
What has no passage of its own, a node without text or a document that holds nothing, is walked over and costs no hop.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np

from query_api.index.graph.hand_made_relations import End, MadeRelation, has_relations, relations_of
from query_api.index.graph.view import GraphView
from query_api.query.analysis import Question
from query_api.retrieval.scoring import sentence_weight
from schemas.graph_delta import decode_attributes

Follows = Callable[[str], bool]
"""Whether relations of this predicate are followed."""
EntryPassages = Callable[[int], Sequence[tuple[int, float]]]
"""Where a path enters a document: (passage, share in (0, 1]) of each."""

MAX_FAN = 200  # relations that are followed from one end, the heaviest
MAX_SKIPPED = 2  # ends without a passage, beside the hops
MAX_FRONTIER = 200  # ends that are walked on from, the strongest
SPECIFIC_FAN = 10  # relations of one end; one that more leave leads on the less surely
MAX_CROWD = 40  # passages that mention an entity


class RelationStep(NamedTuple):
    """A relation that is walked to `end`; `inverse` where it leads the other way. `attributes` are the relation's."""

    predicate: str
    inverse: bool
    end: End
    attributes: str


class Reached(NamedTuple):
    """Where a walk is: from which of the starts, how strongly, over which steps; `weight` is the product of their
    weights, `stems` are those of the question that the steps hold, `fit` is that of what they go by."""

    origin: int
    end: End
    weight: float
    strength: float
    steps: tuple[RelationStep, ...] = ()
    stems: frozenset[str] = frozenset()
    fit: float = 0.0


class Relevance(NamedTuple):
    """What is asked: the stems of the question that a text holds, for each start how many of them are open there, and
    how well documents fit by their text, in [0, 1]."""

    stems_in: Callable[[str], frozenset[str]]
    open_stems: Sequence[frozenset[str]]
    fitting: Mapping[int, float]

    @classmethod
    def of(cls, view: GraphView, question: Question, documents: Sequence[int], prior: Mapping[int, float]) -> Self:
        """Of a question, for starts at these documents; `prior` is how well passages fit."""
        fitting: dict[int, float] = {}
        for passage, fit in prior.items():
            document = view.document_of_passage(passage)
            fitting[document] = max(fit, fitting.get(document, 0.0))
        stems = frozenset(question.stems)
        return cls(question.stems_in, [stems - question.stems_in(view.title(each)) for each in documents], fitting)


class Entered(NamedTuple):
    """A passage where a walk comes out; of an entity, `entity` and the chunk that mentions it, -1 for a document about
    it."""

    passage: int
    strength: float
    reached: Reached
    entity: int = 0
    chunk: int = -1


def walk_relations(
    view: GraphView,
    starts: Sequence[Mapping[End, float]],
    follows: Follows,
    hops: int,
    relevance: Relevance | None = None,
) -> Iterator[Reached]:
    """The ends that at most so many hops lead to, from each start by the strongest way, or by several, each longer and
    stronger; `starts` are how strongly each begins at several ends. Without `relevance` v is 1."""
    frontier = [Reached(at, end, weight, weight) for at, ends in enumerate(starts) for end, weight in ends.items()]
    best = {(each.origin, each.end): math.inf for each in frontier}
    for length in range(1, hops + MAX_SKIPPED + 1):
        found: dict[tuple[int, End], Reached] = {}
        for here, relation, other, inverse, share in _leading_on(view, frontier, follows):
            weight = here.weight * share
            if weight > best.get((here.origin, other), 0.0):
                step = RelationStep(relation.predicate, inverse, other, relation.attributes)
                reached = Reached(here.origin, other, weight, weight, (*here.steps, step), here.stems, here.fit)
                if relevance is not None:
                    reached = _weighed(view, reached, here.end, relevance)
                if reached.strength > best.get((here.origin, other), 0.0):
                    best[here.origin, other] = reached.strength
                    found[here.origin, other] = reached
        yield from found.values()
        goes_on = (each for each in found.values() if _hops(view, each) < hops or has_no_passage(view, each.end))
        frontier = sorted(goes_on, key=lambda each: (-each.strength, each.origin, each.end))[:MAX_FRONTIER]
        if not frontier or length - hops >= MAX_SKIPPED:
            return


def _weighed(view: GraphView, reached: Reached, before: End, relevance: Relevance) -> Reached:
    """`before` is the end that its last step leaves."""
    step, fit = reached.steps[-1], reached.fit
    said = f"{step.predicate.replace('_', ' ')} {_note(step.attributes)}"
    if len(reached.steps) > 1 and before.kind == "document":
        said += f" {view.title(before.at)}"
        fit = max(fit, relevance.fitting.get(before.at, 0.0))
    wanted = relevance.open_stems[reached.origin]
    stems = reached.stems | (relevance.stems_in(said) & wanted)
    value = sentence_weight(max(fit, len(stems) / max(1, len(wanted))))
    return reached._replace(strength=reached.weight * value, stems=stems, fit=fit)


@lru_cache(10_000)
def _note(attributes: str) -> str:
    return str(decode_attributes(attributes).get("note") or "")


def note_of(step: RelationStep) -> str | None:
    """Why people say that it holds; None where they do not."""
    return _note(step.attributes) or None


def _leading_on(
    view: GraphView, frontier: Sequence[Reached], follows: Follows
) -> Iterator[tuple[Reached, MadeRelation, End, bool, float]]:
    ends = list(dict.fromkeys(each.end for each in frontier))
    ways: list[list[tuple[MadeRelation, End, bool]]] = [[] for _ in ends]
    for relation in relations_of(view.segments, ends, MAX_FAN):
        if follows(relation.predicate):
            here = ends[relation.query_index]
            ways[relation.query_index] += ((relation, other, inverse) for other, inverse in relation.others(here))
    of_end = dict(zip(ends, ways, strict=True))
    for each in frontier:
        fan = len(of_end[each.end])
        for relation, other, inverse in of_end[each.end]:
            yield each, relation, other, inverse, relation.weight * min(1.0, (SPECIFIC_FAN / fan) ** 0.25)


def _hops(view: GraphView, reached: Reached) -> int:
    return sum(not has_no_passage(view, step.end) for step in reached.steps)


def has_no_passage(view: GraphView, end: End) -> bool:
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
    relations = relations_of(view.segments, ends, MAX_FAN)
    leading = {ends[each.query_index] for each in relations if each.source and each.target}
    return [not leading.isdisjoint(of_one) for of_one in starts]


def chunks_of(view: GraphView, passage: int) -> dict[End, float]:
    return {End("chunk", chunk): 1.0 for chunk in view.chunks_of_passage(passage)}


def entities_at(view: GraphView, document: int, mentioned: Mapping[int, float]) -> dict[End, float]:
    """The entities that a passage represents: those that its document is about by its title, and those that it mentions
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
