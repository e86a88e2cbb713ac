"""Channels fused into one order. Pure: from candidate lists and scores to ranked passages."""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from query_api.index.text.text_segments import Candidate
from query_api.retrieval.exact_scores import CandidateScores
from query_api.retrieval.scoring import (
    COVERAGE_POOL,
    COVERAGE_WEIGHT,
    by_coverage,
    min_max,
    ranked,
    ranks,
    reciprocal_rank_fusion,
    relative_to_best,
    stable_paged_order,
    text_score,
    weighted_sum,
)
from schemas.choices import Fusion, Mode
from schemas.filters import Group
from schemas.hits import DuplicateHit
from schemas.ids import DocumentKey

T = TypeVar("T")


class HitLimit(NamedTuple):
    """At most so many hits whose documents share one of these."""

    most: int
    shared: Callable[[DocumentKey], Collection[Hashable]]

    @classmethod
    def per_document(cls, most: int) -> "HitLimit":
        return cls(most, lambda key: (key,))


def apply_limits(
    limits: Sequence[HitLimit], order: Sequence[T], key_of: Callable[[T], DocumentKey], first: int | None = None
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


def further_of_documents(order: Sequence[T], key_of: Callable[[T], DocumentKey]) -> dict[DocumentKey, tuple[T, ...]]:
    """What comes after the first of each document in the order, at most two of each."""
    by_document: dict[DocumentKey, list[T]] = {}
    for unit in order:
        by_document.setdefault(key_of(unit), []).append(unit)
    return {key: tuple(units[1 : 1 + MOST_FURTHER]) for key, units in by_document.items()}


MOST_FURTHER = 2  # passages beside a document's best one
FURTHER_SHARE = 0.5  # of the score of that one which they have at least
DEPTH = 64  # candidates a text channel gives at first
UNCOMPARED = 0.125  # about what the word score makes of BM25, where that could not be computed
DEEPER = 4  # how many times more for a deeper page

Scores = Mapping[str, float]


@dataclass(frozen=True)
class FusionWeights:
    """The weight of each channel; `adaptive` uses only the graph's and the structured channel's. The graph's is
    multiplied by its gate, `structured` by how conclusive that channel is."""

    vector: float = 0.7
    keyword: float = 0.3
    graph: float = 1.0
    structured: float = 4.0  # above what all others can sum up to


class RankedPassage(NamedTuple):
    """A passage in the order of hits, with its score and rank in each channel.

    `chunk_id` is the best chunk of the passage where a channel searched chunks, or the chunk that is ranked alone.
    Confidence, duplicates and copies are added once the order is made. `further` are the next passages of its document,
    where hits are documents; they have no confidence of their own.
    """

    passage_id: str
    chunk_id: str | None
    score: float
    scores: dict[str, float]
    ranks: dict[str, int]
    key: DocumentKey
    confidence: float | None = None
    duplicates: tuple[DuplicateHit, ...] = ()
    copies: int = 0
    further: "tuple[RankedPassage, ...]" = ()

    def with_further(self, others: "Iterable[RankedPassage]") -> "RankedPassage":
        """This with those of the others as further passages that are not far below it."""
        return self._replace(further=tuple(each for each in others if each.score >= FURTHER_SHARE * self.score))


class _Unit(NamedTuple):
    """What is ranked: a passage by its best chunk, or a further chunk of it; `position` in the channel."""

    name: str
    position: int
    candidate: Candidate


class ChannelResults(NamedTuple):
    """What the channels found: lists best first, the graph's scores by passage id, its gate and how conclusive the
    structured channel is, both in [0, 1]; the exact scores of the candidates, the idf of the question's terms; the
    passages of communities, best first, which no other channel is fused with."""

    vector: Sequence[Candidate]
    keyword: Sequence[Candidate]
    graph: Scores
    structured: Sequence[Candidate] = ()
    gate: float = 0.0
    conclusiveness: float = 0.0
    exact: CandidateScores | None = None
    idf: NDArray[np.float64] = np.zeros(0)
    communities: Sequence[Candidate] = ()


def rank_passages(
    found: ChannelResults,
    document_of: Callable[[str], DocumentKey],
    *,
    mode: Mode,
    group: Group,
    fusion: Fusion,
    weights: FusionWeights,
    first: int,
    limits: Sequence[HitLimit] = (),
) -> list[RankedPassage]:
    """The first of everything found, in order; one channel alone keeps its own order and scores.

    Hybrid, by `fusion`; to each is added structured weight x conclusiveness x that channel's score:

    - `adaptive`: text score + gate x graph score, and the first twenty by what they cover together (`by_coverage`),
      weighted by the gate, unless the structured channel decides.
    - `rrf`: reciprocal rank fusion of the lists, the graph's among them where its gate is open.
    - `weighted`: weight x min-max of the scores, of vector, keyword and graph; equal ones by their text score, such as
      those that only a channel of weight 0 found.

    Mode `graph_rerank` orders what the vector channel found by cosine + gate x graph score. `document_of` is for a
    passage that only the graph found; `limits` leave out hits that have too much in common. More candidates of the same
    lists give a longer order that begins with the shorter one; so `further` passages are of the first block alone.
    """
    units = {
        "vector": _units(found.vector, group),
        "keyword": _units(found.keyword, group),
        "structured": _units(found.structured, group),
        "global": _units(found.communities, group),
    }
    scores: dict[str, Scores] = {**_scores_to_depth(units, None), "graph": found.graph}
    channels = _deciding_channels(mode, found)
    by_depth = list(_lists_by_depth(units, scores, found))
    blocks = [_fused(lists, found, mode, fusion, weights) for lists in by_depth]
    is_weighted = mode == "hybrid" and fusion == "weighted"
    ties = [_text_scores(lists, found.graph, found) for lists in by_depth] if is_weighted else []
    final: dict[str, float] = {}
    for block in reversed(blocks):
        final |= block
    candidates = {
        unit.name: unit.candidate for name in ("global", "structured", "keyword", "vector") for unit in units[name]
    }

    def key_of(unit: str) -> DocumentKey:
        candidate = candidates.get(unit)
        return document_of(unit) if candidate is None else candidate.key

    order = stable_paged_order(blocks, ties)
    further = further_of_documents(order[: len(blocks[0])], key_of) if group == "document" else {}
    order = apply_limits(limits, order, key_of, max(first, len(blocks[0])))
    if mode == "hybrid" and fusion == "adaptive":
        order = _ordered_by_coverage(order, blocks[0], final, found)
    return _passages(order[:first], further, {name: scores[name] for name in channels}, candidates, final, key_of)


def _passages(
    order: Sequence[str],
    further: Mapping[DocumentKey, Sequence[str]],
    scores: Mapping[str, Scores],
    candidates: Mapping[str, Candidate],
    final: Mapping[str, float],
    key_of: Callable[[str], DocumentKey],
) -> list[RankedPassage]:
    """The passages of units, each with its place in each channel; scores never rise along the order."""
    rankings = {name: dict(zip(ranked(of), count(1))) for name, of in scores.items()}

    def passage_of(unit: str, highest: float) -> RankedPassage:
        candidate = candidates.get(unit)
        found_by = [name for name, ranking in rankings.items() if unit in ranking]
        return RankedPassage(
            passage_id=unit if candidate is None else candidate.passage_id,
            chunk_id=None if candidate is None else candidate.chunk_id,
            score=min(final[unit], highest),
            scores={name: scores[name][unit] for name in found_by},
            ranks={name: rankings[name][unit] for name in found_by},
            key=key_of(unit),
        )

    passages: list[RankedPassage] = []
    for unit in order:
        passage = passage_of(unit, passages[-1].score if passages else final[unit])
        passages.append(passage.with_further(passage_of(each, passage.score) for each in further.get(passage.key, ())))
    return passages


def _scores_to_depth(units: Mapping[str, Sequence[_Unit]], depth: int | None) -> dict[str, Scores]:
    """The scores of each channel's units among its first candidates; of all for None."""
    return {
        name: {unit.name: unit.candidate.score for unit in of if depth is None or unit.position < depth}
        for name, of in units.items()
    }


def _lists_by_depth(
    units: Mapping[str, Sequence[_Unit]], scores: Mapping[str, Scores], found: ChannelResults
) -> Iterator[Mapping[str, Scores]]:
    """The channels' scores, first of the best `DEPTH` units alone, then of `DEEPER` times as many, and so on; in the
    end `scores`, of all."""
    depth = DEPTH
    while depth < max(len(found.vector), len(found.keyword)):
        yield _scores_to_depth(units, depth) | {"graph": found.graph}
        depth *= DEEPER
    yield scores if len(found.structured) <= depth else _scores_to_depth(units, depth) | {"graph": found.graph}


def _deciding_channels(mode: Mode, found: ChannelResults) -> list[str]:
    """The channels that decide in this mode."""
    if mode not in ("hybrid", "graph_rerank"):
        return [mode]
    names = ["vector", "keyword"] if mode == "hybrid" else ["vector"]
    return [
        *names,
        *(["structured"] if mode == "hybrid" and found.conclusiveness else []),
        *(["graph"] if found.gate else []),
    ]


def _fused(
    lists: Mapping[str, Scores], found: ChannelResults, mode: Mode, fusion: Fusion, weights: FusionWeights
) -> dict[str, float]:
    """The scores of one block of candidates."""
    graph_weight = weights.graph * found.gate
    if mode == "graph_rerank":
        return weighted_sum(
            [lists["vector"], {unit: lists["graph"].get(unit, 0.0) for unit in lists["vector"]}], [1.0, graph_weight]
        )
    if mode != "hybrid":
        return dict(lists[mode])
    if fusion == "rrf":
        lists_used = ["vector", "keyword", *(["graph"] if graph_weight else [])]
        fused = relative_to_best(reciprocal_rank_fusion([ranks(ranked(lists[name])) for name in lists_used]))
    elif fusion == "weighted":
        fused = weighted_sum(
            [min_max(lists[name]) for name in ("vector", "keyword", "graph")],
            [weights.vector, weights.keyword, graph_weight],
        )
    else:
        evidence = {unit: graph_weight * score for unit, score in lists["graph"].items()} if graph_weight else {}
        fused = weighted_sum([_text_scores(lists, evidence, found), evidence], [1.0, 1.0])
    if not found.conclusiveness:
        return fused
    structured = {unit: found.conclusiveness * score for unit, score in lists["structured"].items()}
    return weighted_sum([fused, structured], [1.0, weights.structured])


def _text_scores(lists: Mapping[str, Scores], evidence: Scores, found: ChannelResults) -> dict[str, float]:
    """The text score of every candidate. A further chunk of a passage has its own cosine, and no BM25."""
    text = [] if found.exact is None else found.exact.text.tolist()
    row_of = {} if found.exact is None else found.exact.row_of
    vector, keyword = lists["vector"], lists["keyword"]
    structured = lists["structured"] if found.conclusiveness else {}
    return {
        unit: text[row_of[unit]]
        if unit in row_of
        else text_score(vector.get(unit, 0.0), UNCOMPARED * keyword.get(unit, 0.0))
        for unit in {**vector, **keyword, **structured, **evidence}
    }


def _ordered_by_coverage(
    order: list[str], first_block: Collection[str], final: Scores, found: ChannelResults
) -> list[str]:
    """The order, the first COVERAGE_POOL of it re-ordered to cover the question; unchanged where one of them has no
    exact score, or the structured channel decides. Of the first block's units alone, so that deeper ones only append.

    Coverage is weighted by the gate: several documents answer together where they lead to each other.
    """
    if not found.gate or found.conclusiveness >= 1 or found.exact is None:
        return order
    pool = sum(unit in first_block for unit in order[:COVERAGE_POOL])
    rows = [found.exact.row_of.get(unit) for unit in order[:pool]]
    if None in rows:
        return order
    matches = found.exact.term_matches[np.array(rows, dtype=np.intp)]
    chosen = by_coverage([final[unit] for unit in order[: len(rows)]], matches, found.idf, COVERAGE_WEIGHT * found.gate)
    return [*(order[at] for at in chosen), *order[len(rows) :]]


def _units(candidates: Sequence[Candidate], group: Group) -> list[_Unit]:
    """Each passage by its best candidate; where hits are chunks, also its further chunks, each separately."""
    seen: set[str] = set()
    units = []
    for position, candidate in enumerate(candidates):
        if candidate.passage_id not in seen:
            seen.add(candidate.passage_id)
            units.append(_Unit(candidate.passage_id, position, candidate))
        elif group == "chunk" and candidate.chunk_id is not None:
            units.append(_Unit(candidate.chunk_id, position, candidate))
    return units
