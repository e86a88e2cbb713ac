"""How likely a hit is relevant: a logistic regression over features that mean the same in any collection.

P = 1 / (1 + exp(-(intercept + Σ coefficient x feature))). The coefficients, and what they were fitted on, are in
`confidence.toml`; `python -m tests.bench.confidence` fits them. There is one set for each mode: what a cosine of .5
says depends on whether the hit was found by cosines.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from query_api.index.text.vectors import CosineSpread
from query_api.retrieval.exact_scores import CandidateScores
from query_api.retrieval.fusion import RankedPassage
from schemas.choices import Mode

FILE = "confidence.toml"
FEATURES = ("similarity", "words", "held", "graph", "lead", "fields", "first", "log_rank")
WITHOUT_MEANING = "without_vector"
MOST_GRAPH = 0.6  # what a title named by the question scores; more says which hit fits best, not whether one does
LEAST_DEVIATION = 0.05  # of cosines, where all texts are one
FIRST_HITS = 3  # among which the first one's lead is measured
MOST_ABOVE = 0.05  # that a hit may seem surer than one before it
_DECIMALS = 4


class Evidence(NamedTuple):
    """The inputs of the features. `idf` weighs each term of the question, most of all one that the collection does not
    hold. `spread` is that of the question's cosines beside the model's `background`, None where it has no vector.
    `fields` is how far documents' fields are what the question asks for, {passage: conclusiveness x score}."""

    scores: CandidateScores
    idf: NDArray[np.float64]
    gate: float
    graph: Mapping[str, float]
    spread: CosineSpread | None
    fields: Mapping[str, float] = MappingProxyType({})


class ModeCalibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The regression for one way of searching: a mode, with or without vectors."""

    intercept: float
    coefficients: dict[str, float]

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.array([self.coefficients.get(name, 0.0) for name in FEATURES])
        logits = self.intercept + features @ weights
        probabilities: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits, -30, 30)))
        return probabilities


class FittedCalibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `confidence.toml`; `model` is the embedding model that was used to fit it."""

    fitted: str
    model: str
    collections: dict[str, int]
    errors: dict[str, dict[str, float]]
    ways: dict[str, ModeCalibration]

    def probabilities(self, way: str, features: NDArray[np.float64]) -> NDArray[np.float64] | None:
        return self.ways[way].predict(features) if way in self.ways else None


@cache
def fitted_calibration() -> FittedCalibration:
    """The one that comes with the program."""
    text = files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), FittedCalibration)


def with_confidence(
    ranked: Sequence[RankedPassage], mode: Mode, evidence: Evidence, calibration: FittedCalibration
) -> list[RankedPassage]:
    """The passages, from the first of the order on, each with its confidence; None where it is unknown.

    None is more than .05 above one before it, so the order and the confidences agree. It depends on the passage itself
    and on those before it and the first three only, so it is the same on any page that has these.
    """
    rows = [evidence.scores.row_of.get(passage.passage_id) for passage in ranked]
    known = [at for at, row in enumerate(rows) if row is not None]
    if not known or known[0] != 0:
        return list(ranked)
    features = _features([ranked[at] for at in known], [at + 1 for at in known], evidence)
    probabilities = calibration.probabilities(calibrated_mode(mode, has_vector=evidence.spread is not None), features)
    if probabilities is None:
        return list(ranked)
    bounded = np.minimum(probabilities, np.minimum.accumulate(probabilities) + MOST_ABOVE)
    judged = list(ranked)
    for at, probability in zip(known, bounded.tolist(), strict=True):
        judged[at] = ranked[at]._replace(confidence=round(probability, _DECIMALS))
    return judged


def calibrated_mode(mode: Mode, *, has_vector: bool) -> str:
    return mode if has_vector or mode == "keyword" else f"{mode}_{WITHOUT_MEANING}"


def _features(ranked: Sequence[RankedPassage], ranks: Sequence[int], evidence: Evidence) -> NDArray[np.float64]:
    """(n, 8): how many standard deviations the cosine is above the mean of the collection and of unrelated texts; √
    word score; share of the question's idf that it holds; gate x graph score, at most .6; lead of the first, see
    `_leads`; how far its fields decide; 1 for rank 1, else 0; ln rank."""
    scores, spread = evidence.scores, evidence.spread
    rows = np.array([scores.row_of[passage.passage_id] for passage in ranked], dtype=np.intp)
    idf_shares = evidence.idf / (float(evidence.idf.sum()) or 1.0)
    graph = evidence.gate * np.array([evidence.graph.get(passage.passage_id, 0.0) for passage in ranked])
    zeros = np.zeros(len(rows))
    similarity = zeros
    if spread is not None:
        similarity = (scores.cosine[rows] - spread.mean) / max(spread.deviation, LEAST_DEVIATION)
    return np.column_stack(
        [
            similarity,
            np.sqrt(scores.words[rows]),
            scores.term_matches[rows] @ idf_shares,
            np.minimum(graph, MOST_GRAPH),
            _leads(ranked, scores.text[rows] + graph),
            [evidence.fields.get(passage.passage_id, 0.0) for passage in ranked],
            [float(rank == 1) for rank in ranks],
            np.log(ranks),
        ]
    )


def _leads(ranked: Sequence[RankedPassage], total: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n,) of the first hit, how much more speaks for it by text and graph than for the next document's among the first
    three; of the others, how much less than for the first."""
    others = [at for at in range(1, min(FIRST_HITS, len(ranked))) if ranked[at].key != ranked[0].key]
    leads: NDArray[np.float64] = total - total[0]
    behind = total[others] if others else total[1:FIRST_HITS]
    leads[0] = total[0] - behind.max(initial=0.0)
    return leads
