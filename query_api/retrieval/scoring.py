"""The arithmetic of ranking: no input or output, no settings. Every order is total: ties are broken by id."""

from collections.abc import Iterable, Mapping, Sequence
from operator import neg
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

WORDS_WEIGHT = 0.16
ALL_WORDS = 1.25  # rare words, that holding all of a question's words is worth beside them
COVERAGE_WEIGHT = 0.5
COVERAGE_POOL = 20
MIN_VALUE = 0.3  # of a sentence that holds no word of the question
RRF_K = 60  # Cormack, Clarke, Büttcher 2009, section 2: found once, on pilot data, and not critical


def ranks(ids: Iterable[str]) -> dict[str, int]:
    """{id: rank from 1} of ids in order of merit; an id that comes twice keeps its better rank."""
    ranked: dict[str, int] = {}
    for identifier in ids:
        ranked.setdefault(identifier, len(ranked) + 1)
    return ranked


def ranked(scores: Mapping[str, float], ties: Mapping[str, float] = MappingProxyType({})) -> list[str]:
    """The ids by falling score, equal scores by falling `ties`, and these by rising id."""
    if ties:
        return sorted(scores, key=lambda identifier: (-scores[identifier], -ties.get(identifier, 0.0), identifier))
    return [identifier for _, identifier in sorted(zip(map(neg, scores.values()), scores, strict=True))]


def reciprocal_rank_fusion(lists: Sequence[Mapping[str, int]], k: int = RRF_K) -> dict[str, float]:
    """score(d) = Σ over lists r of 1 / (k + rank_r(d)); a list that lacks d adds nothing.

    Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
    SIGIR 2009. `lists` map ids to ranks from 1.
    """
    scores: dict[str, float] = {}
    for positions in lists:
        for identifier, rank in positions.items():
            scores[identifier] = scores.get(identifier, 0.0) + 1.0 / (k + rank)
    return scores


def min_max(scores: Mapping[str, float]) -> dict[str, float]:
    """(s - min) / (max - min), in [0, 1]; all 1 where all scores are equal."""
    if not scores:
        return {}
    low, high = min(scores.values()), max(scores.values())
    if high == low:
        return dict.fromkeys(scores, 1.0)
    return {identifier: (score - low) / (high - low) for identifier, score in scores.items()}


def weighted_sum(scores: Sequence[Mapping[str, float]], weights: Sequence[float]) -> dict[str, float]:
    """Σ weight_i x score_i(d); a mapping that lacks d adds nothing."""
    total: dict[str, float] = {}
    for channel, weight in zip(scores, weights, strict=True):
        if not total:
            total = {identifier: weight * score for identifier, score in channel.items()}
            continue
        for identifier, score in channel.items():
            total[identifier] = total.get(identifier, 0.0) + weight * score
    return total


def relative_to_best(scores: Mapping[str, float]) -> dict[str, float]:
    """s / max; empty where no score is above 0. Keeps the ratios, which min-max does not."""
    best = max(scores.values(), default=0.0)
    return {identifier: score / best for identifier, score in scores.items()} if best > 0 else {}


def stable_paged_order(
    scores_by_block: Sequence[Mapping[str, float]], ties_by_block: Sequence[Mapping[str, float]] = ()
) -> list[str]:
    """One order out of ever deeper ones: the ids of the first block by their scores in it, then those that only the
    second holds by their scores there, and so on; equal ones by the block's `ties`, where there are any.

    Each block's candidates include the one's before. So a deeper block never reorders the hits of a page already shown.
    """
    order: list[str] = []
    seen: set[str] = set()
    for depth, scores in enumerate(scores_by_block):
        ties = ties_by_block[depth] if ties_by_block else {}
        fresh = [identifier for identifier in ranked(scores, ties) if identifier not in seen]
        order.extend(fresh)
        seen.update(fresh)
    return order


Scores = TypeVar("Scores", float, NDArray[np.float64])


def text_score(cosine: Scores, words: Scores) -> Scores:
    """cosine + .16 x word score, neither of them normalised by what was found.

    The higher the word score, the more it is to be trusted: a question whose words are rare in the collection has a
    high one. Normalising by the best of a list throws that away. After Bruch, Gai, Ingber: "An Analysis of Fusion
    Functions for Hybrid Retrieval", TOIS 2023, which finds convex combinations of scores better than fusion by rank;
    that leaving out the normalisation is better still was measured here (docs/ranking.md).
    """
    return cosine + WORDS_WEIGHT * words


def word_score(
    bm25: NDArray[np.float64], term_matches: NDArray[np.bool_], idf: NDArray[np.float64], highest_idf: float
) -> NDArray[np.float64]:
    """(n,) BM25 x the mean idf of the held terms, weighted by idf, / highest idf², which is about the number of held
    terms, each weighing (idf / highest idf)² times its saturated frequency; + 1.25 x share⁸, where `share` is that of
    the question's idf which a passage holds.

    The specificity of a term (Spärck Jones 1972) counts twice, as in the cosine of tf-idf vectors, which has it in the
    question and in the document (Salton, Buckley 1988): common words mislead, and rare ones hardly do. Relative to the
    highest possible, that of a term in one passage, so that words weigh the same beside a cosine in a collection of
    fifty passages and in one of a million, while BM25 grows with the logarithm of its size. All words of the question
    together rarely mislead, common ones too: the last term is a soft conjunction, of which the extended Boolean model
    is the first (Salton, Fox, Wu 1983).
    """
    held = term_matches @ idf
    mean: NDArray[np.float64] = term_matches @ idf**2 / np.where(held > 0, held, 1.0)
    share = held / (float(idf.sum()) or 1.0)
    return bm25 * mean / highest_idf**2 + ALL_WORDS * share**8


def by_coverage(
    scores: Sequence[float], term_matches: NDArray[np.bool_], idf: NDArray[np.float64], weight: float
) -> list[int]:
    """An order in which the first hits together hold as many of the question's words as can be.

    One at a time: the highest score / best score + weight x the share of the question's idf
    that no hit before holds. A greedy maximum coverage, as in maximal marginal relevance (Carbonell, Goldstein 1998),
    with words in the place of similarities. `scores` fall; `term_matches` is (n, n_terms), `idf` (n_terms,). Returns
    indices, the earlier one first where two are equal.
    """
    total = float(idf.sum())
    best = scores[0] if scores else 0.0
    if not total or best <= 0:
        return list(range(len(scores)))
    left = list(range(len(scores)))
    order: list[int] = []
    open_idf = idf / total
    while left:
        gains = (term_matches[left] @ open_idf).tolist()
        if not any(gains):  # and there is nothing more to cover
            break
        values = [scores[at] / best + weight * gain for at, gain in zip(left, gains, strict=True)]
        chosen = left.pop(values.index(max(values)))
        order.append(chosen)
        open_idf = np.where(term_matches[chosen], 0.0, open_idf)
    return [*order, *left]


def sentence_weight(share: float) -> float:
    """.3 + .7 x share, for a sentence that covers this share of the question's weight."""
    return MIN_VALUE + (1 - MIN_VALUE) * share
