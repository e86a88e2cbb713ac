"""How likely a hit is relevant: a logistic regression over features that mean the same in any collection.

P = 1 / (1 + exp(-(intercept + Σ coefficient x feature))). The coefficients, and what they were fitted on, are in
`confidence.toml`; `python -m tests.bench.confidence` fits them. There is one set for each mode: what a cosine of .5
says depends on whether the hit was found by cosines.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from query_api.retrieval.comparison import CandidateScores
from query_api.retrieval.fusion import RankedPassage
from schemas.choices import Mode

FILE = "confidence.toml"
FEATURES = ("cosine", "held", "together", "graph", "first", "log_rank")
WITHOUT_MEANING = "without_vector"
MOST_GRAPH = 0.6  # what a title named by the question scores; more says which hit fits best, not whether one does
FIRST_HITS = 3  # whose terms are counted together: two hops end in two or three passages
_DECIMALS = 4


class Evidence(NamedTuple):
    """The inputs of the features. `idf` weighs each term of the question, most of all one that the collection does not
    hold. `has_vector` is whether the question has one; `decided` holds the passages whose rank documents' fields
    decided, for which nothing was fitted."""

    scores: CandidateScores
    idf: NDArray[np.float64]
    gate: float
    graph: Mapping[str, float]
    has_vector: bool
    decided: frozenset[str] = frozenset()


class Judge(Protocol):
    """Maps features to probabilities."""

    def probabilities(self, way: str, features: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """(n,) in [0, 1] for (n, len(FEATURES)); None for a way of searching that nothing was fitted for."""
        ...


class FittedWay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The regression for one way of searching: a mode, with or without vectors."""

    intercept: float
    coefficients: dict[str, float]

    def predict(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.array([self.coefficients.get(name, 0.0) for name in FEATURES])
        logits = self.intercept + features @ weights
        probabilities: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits, -30, 30)))
        return probabilities


class FittedJudge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `confidence.toml`; `model` is the embedding model whose cosines it was fitted to."""

    fitted: str
    model: str
    collections: dict[str, int]
    calibration: dict[str, dict[str, float]]
    ways: dict[str, FittedWay]

    def probabilities(self, way: str, features: NDArray[np.float64]) -> NDArray[np.float64] | None:
        return self.ways[way].predict(features) if way in self.ways else None

    def for_model(self, model: str) -> "FittedJudge":
        """Without the ways that use cosines, where the embedding model is another one."""
        if model == self.model:
            return self
        meaningless = {name: way for name, way in self.ways.items() if not way.coefficients.get("cosine")}
        return msgspec.structs.replace(self, ways=meaningless)


@cache
def judge_for(model: str) -> FittedJudge:
    """The one that comes with the program, for this embedding model."""
    return fitted_judge().for_model(model)


@cache
def fitted_judge() -> FittedJudge:
    """The one that comes with the program."""
    text = files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), FittedJudge)


def with_confidence(
    ranked: Sequence[RankedPassage], mode: Mode, evidence: Evidence, judge: Judge
) -> list[RankedPassage]:
    """The passages, from the first of the order on, each with its confidence; None where it is unknown.

    It depends on the passage itself and on the first three only, so it is the same on any page that has these.
    """
    rows = [evidence.scores.row_of.get(passage.passage_id) for passage in ranked]
    known = [at for at, row in enumerate(rows) if row is not None]
    if not known or known[0] != 0:
        return list(ranked)
    features = _features([ranked[at] for at in known], [at + 1 for at in known], evidence)
    probabilities = judge.probabilities(way_of(mode, has_vector=evidence.has_vector), features)
    if probabilities is None:
        return list(ranked)
    judged = list(ranked)
    for at, probability in zip(known, probabilities.tolist(), strict=True):
        if ranked[at].passage_id not in evidence.decided:
            judged[at] = ranked[at]._replace(confidence=round(probability, _DECIMALS))
    return judged


def way_of(mode: Mode, *, has_vector: bool) -> str:
    return mode if has_vector or mode == "keyword" else f"{mode}_{WITHOUT_MEANING}"


def _features(ranked: Sequence[RankedPassage], ranks: Sequence[int], evidence: Evidence) -> NDArray[np.float64]:
    """(n, 6): cosine; share of the question's idf that it holds; share that the first three hold together; gate x graph
    score, at most .6; 1 for rank 1, else 0; ln rank."""
    scores = evidence.scores
    rows = np.array([scores.row_of[passage.passage_id] for passage in ranked], dtype=np.intp)
    idf_shares = evidence.idf / (float(evidence.idf.sum()) or 1.0)
    matches = scores.term_matches[rows]
    graph = evidence.gate * np.array([evidence.graph.get(passage.passage_id, 0.0) for passage in ranked])
    return np.column_stack(
        [
            scores.cosine[rows],
            matches @ idf_shares,
            np.full(len(rows), matches[:FIRST_HITS].any(axis=0) @ idf_shares),
            np.minimum(graph, MOST_GRAPH),
            [float(rank == 1) for rank in ranks],
            np.log(ranks),
        ]
    )
