"""The arithmetic of ranking: no input or output, no settings. Every order is total: ties are broken by id."""

from collections.abc import Iterable, Mapping, Sequence

RRF_K = 60  # Cormack, Clarke, Büttcher 2009, section 2: found once, on pilot data, and not critical


def ranks(ids: Iterable[str]) -> dict[str, int]:
    """{id: rank from 1} of ids in order of merit; an id that comes twice keeps its better rank."""
    ranked: dict[str, int] = {}
    for identifier in ids:
        ranked.setdefault(identifier, len(ranked) + 1)
    return ranked


def ranked(scores: Mapping[str, float]) -> list[str]:
    """The ids by falling score, equal scores by rising id."""
    return sorted(scores, key=lambda identifier: (-scores[identifier], identifier))


def reciprocal_rank_fusion(
    lists: Sequence[Mapping[str, int]], weights: Sequence[float] | None = None, k: int = RRF_K
) -> dict[str, float]:
    """score(d) = Σ over lists r of weight_r / (k + rank_r(d)); a list that lacks d adds nothing.

    Cormack, Clarke, Büttcher: "Reciprocal Rank Fusion outperforms Condorcet and individual Rank Learning Methods",
    SIGIR 2009. `lists` map ids to ranks from 1; `weights` default to 1 each.
    """
    factors = [1.0] * len(lists) if weights is None else list(weights)
    scores: dict[str, float] = {}
    for positions, factor in zip(lists, factors, strict=True):
        if factor:
            for identifier, rank in positions.items():
                scores[identifier] = scores.get(identifier, 0.0) + factor / (k + rank)
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
        for identifier, score in channel.items():
            total[identifier] = total.get(identifier, 0.0) + weight * score
    return total


def relative_to_best(scores: Mapping[str, float]) -> dict[str, float]:
    """s / max; empty where no score is above 0. Keeps how far the others lie behind, which min-max does not."""
    best = max(scores.values(), default=0.0)
    return {identifier: score / best for identifier, score in scores.items()} if best > 0 else {}


def in_blocks(scores_by_block: Sequence[Mapping[str, float]]) -> list[str]:
    """One order out of ever deeper ones: the ids of the first block by their scores in it, then those that only the
    second holds by their scores there, and so on.

    Each block's candidates include the one's before. So a deeper block never reorders the hits of a page already shown.
    """
    order: list[str] = []
    seen: set[str] = set()
    for scores in scores_by_block:
        fresh = [identifier for identifier in ranked(scores) if identifier not in seen]
        order.extend(fresh)
        seen.update(fresh)
    return order
