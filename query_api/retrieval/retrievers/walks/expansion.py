"""Expanding around a few strong seeds: how near, how central, how directly related each passage is to them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.retrieval.retrievers.graph_edges import Reach, strongest
from query_api.retrieval.retrievers.graph_results import Findings
from query_api.retrieval.retrievers.walks.centrality import centrality
from query_api.retrieval.retrievers.walks.start import Beginning

CONNECTIVITY, CENTRALITY, RELATIONSHIP = 0.5, 0.3, 0.2


class Discovered(NamedTuple):
    """Passages as rows, seeds as columns."""

    passages: list[int]
    distances: NDArray[np.float64]  # (n_passages, n_seeds)


def expansion(beginning: Beginning) -> Findings:
    """Score = .5 connectivity + .3 centrality + .2 relationship, of the seeds and what so many hops from them reach,
    one or two.

    - connectivity = exp(-Σ w · d / Σ w) over the seeds that reach it: d is the length of the shortest way from
      a seed of weight w, an edge of weight e being 1 / e long.
    - centrality = the PageRank of its document / the highest of those discovered.
    - relationship = the strongest edge from a seed, w · e, as a share of the strongest of all.
    """
    parents = beginning.gathered.parents
    if not parents:
        return beginning.findings({}, {}, [])
    seeds = [parent.passage for parent in parents]
    weights = np.array([parent.weight for parent in parents])
    first = beginning.first_steps()
    near = distances(seeds, first)
    nearest = dict(zip(near.passages, connectivity(near.distances, weights).tolist(), strict=True))
    stepped = {reach.passage for reach in first}
    ring = sorted(
        (each for each in nearest if each in stepped and each not in seeds), key=lambda each: (-nearest[each], each)
    )
    middle, second = beginning.second_steps(ring, first) if beginning.hops > 1 else ([], [])
    found = distances(seeds, first, [parent.passage for parent in middle], second)
    direct = dict.fromkeys(found.passages, 0.0)
    for reach in first:
        direct[reach.passage] = max(direct[reach.passage], weights[reach.reason.origin] * reach.score)
    ranks = centrality(beginning.view)[beginning.view.documents_of_passages(np.array(found.passages, dtype=np.int64))]
    scores = (
        CONNECTIVITY * connectivity(found.distances, weights)
        + CENTRALITY * ranks / (ranks.max() or 1.0)
        + RELATIONSHIP * np.array(list(direct.values())) / (max(direct.values()) or 1.0)
    )
    reasons = {passage: reach.reason for passage, reach in (strongest(second) | strongest(first)).items()}
    return beginning.findings(dict(zip(found.passages, scores.tolist(), strict=True)), reasons, middle)


def distances(
    seeds: Sequence[int], first: Sequence[Reach], middle: Sequence[int] = (), second: Sequence[Reach] = ()
) -> Discovered:
    """How far each passage is from each seed, infinite where two steps do not lead there.

    `first` begins at the seeds; `second` at the passages of `middle`, whose origins count on from the seeds.
    """
    row_of = {
        passage: row for row, passage in enumerate(dict.fromkeys([*seeds, *(r.passage for r in (*first, *second))]))
    }
    lengths = np.full((len(row_of), len(seeds)), np.inf)
    lengths[[row_of[seed] for seed in seeds], range(len(seeds))] = 0.0
    for passage, score, reason in first:
        lengths[row_of[passage], reason.origin] = min(lengths[row_of[passage], reason.origin], 1 / score)
    before = lengths.copy()
    for passage, score, reason in second:
        way = before[row_of[middle[reason.origin - len(seeds)]]] + 1 / score
        lengths[row_of[passage]] = np.minimum(lengths[row_of[passage]], way)
    return Discovered(list(row_of), lengths)


def connectivity(lengths: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_passages,) exp of minus the mean distance to the seeds that reach it, by their weights; 0 where none does."""
    reaches = np.isfinite(lengths)
    of_those = reaches @ weights
    means = np.where(reaches, lengths, 0.0) @ weights / np.where(of_those > 0, of_those, 1.0)
    near: NDArray[np.float64] = np.where(of_those > 0, np.exp(-means), 0.0)
    return near
