"""How likely a hit is relevant: a logistic regression over what is known of it that means the same in any collection.

P = 1 / (1 + exp(-(intercept + Σ coefficient x feature))). Its numbers stand in `confidence.toml`, which tells what they
were fitted on; `python -m tests.bench.confidence` fits them anew. One set of numbers for each way of asking: what a
cosine of .5 says depends on whether the hit was found by cosines.
"""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from query_api.retrieval.comparison import Compared
from query_api.retrieval.fusion import RankedPassage
from schemas.search import Mode

FILE = "confidence.toml"
FEATURES = ("cosine", "held", "together", "graph", "first", "log_rank")
WITHOUT_MEANING = "without_vector"
MOST_GRAPH = 0.6  # what a title named by the question brings; more tells which hit fits best, not whether one does
TOGETHER = 3  # hits, whose words are looked at together: what two steps lead to stands in two or three passages
_DECIMALS = 4


class Evidence(NamedTuple):
    """What is known of places beside their order. `idf` is what each term of the question tells, most of all one that
    the collection does not hold. `meaning` is whether the question has a vector; `decided` holds the
    passages that stand where they are because of their documents' fields, of which nothing was learnt."""

    compared: Compared
    idf: NDArray[np.float64]
    gate: float
    graph: Mapping[str, float]
    meaning: bool
    decided: frozenset[str] = frozenset()


class Judge(Protocol):
    """Turns features into probabilities."""

    def probabilities(self, way: str, features: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """(n,) in [0, 1] for (n, len(FEATURES)); None for a way of asking of which nothing was learnt."""
        ...


class FittedWay(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The numbers for one way of asking."""

    intercept: float
    coefficients: dict[str, float]

    def of(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        weights = np.array([self.coefficients.get(name, 0.0) for name in FEATURES])
        logits = self.intercept + features @ weights
        probabilities: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits, -30, 30)))
        return probabilities


class FittedJudge(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `confidence.toml` holds; `model` is the embedding model whose cosines it knows."""

    fitted: str
    model: str
    collections: dict[str, int]
    calibration: dict[str, dict[str, float]]
    ways: dict[str, FittedWay]

    def probabilities(self, way: str, features: NDArray[np.float64]) -> NDArray[np.float64] | None:
        return self.ways[way].of(features) if way in self.ways else None

    def for_model(self, model: str) -> "FittedJudge":
        """The same for another embedding model: what was learnt of the cosines of this one says nothing of its own."""
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
    places: Sequence[RankedPassage], mode: Mode, evidence: Evidence, judge: Judge
) -> list[RankedPassage]:
    """The places, from the first of the order on, each with its confidence; None where nothing can be told of it.

    A place's own depends on itself and on the first three only, so it is the same on any page that knows these.
    """
    rows = [evidence.compared.row_of.get(place.passage_id) for place in places]
    known = [at for at, row in enumerate(rows) if row is not None]
    if not known or known[0] != 0:
        return list(places)
    features = _features([places[at] for at in known], [at + 1 for at in known], evidence)
    told = judge.probabilities(way_of(mode, meaning=evidence.meaning), features)
    if told is None:
        return list(places)
    judged = list(places)
    for at, probability in zip(known, told.tolist(), strict=True):
        if places[at].passage_id not in evidence.decided:
            judged[at] = places[at]._replace(confidence=round(probability, _DECIMALS))
    return judged


def way_of(mode: Mode, *, meaning: bool) -> str:
    return mode if meaning or mode == "keyword" else f"{mode}_{WITHOUT_MEANING}"


def _features(places: Sequence[RankedPassage], ranks: Sequence[int], evidence: Evidence) -> NDArray[np.float64]:
    """(n, 6): cosine; share of the question's idf that it holds; share that the first three hold together; gate x graph
    score, at most .6; 1 for the first place, else 0; ln rank."""
    compared = evidence.compared
    rows = np.array([compared.row_of[place.passage_id] for place in places], dtype=np.intp)
    shares = evidence.idf / (float(evidence.idf.sum()) or 1.0)
    held = compared.held[rows]
    graph = evidence.gate * np.array([evidence.graph.get(place.passage_id, 0.0) for place in places])
    return np.column_stack(
        [
            compared.cosine[rows],
            held @ shares,
            np.full(len(rows), held[:TOGETHER].any(axis=0) @ shares),
            np.minimum(graph, MOST_GRAPH),
            [float(rank == 1) for rank in ranks],
            np.log(ranks),
        ]
    )
