"""The approaches that an evaluation compares: each a name and the parameters that it adds to a search.

A new way to search becomes comparable by one entry here. An approach whose parameters a service refuses is left out of
the report. Unless an approach says otherwise, it is searched without a re-ranker, so that figures of services with and
without one compare.
"""

from collections.abc import Mapping, Sequence

import msgspec

from schemas.errors import WrongSetting


class Approach(msgspec.Struct, frozen=True):
    """`parameters` are those of `/v1/search`; `single` says that it is one channel alone, `baseline` that the full
    engine must not be worse than it. `needs` are the channels and steps, as `failed_channels` names them, without which
    an answer does not count as the approach's.
    """

    name: str
    about: str
    parameters: Mapping[str, str]
    single: bool = False
    baseline: bool = False
    needs: tuple[str, ...] = ()


def _single(mode: str, about: str) -> Approach:
    return Approach(mode, about, {"mode": mode}, single=True, baseline=True, needs=(mode,))


def _hybrid(name: str, about: str, parameters: Mapping[str, str], *needs: str, baseline: bool = False) -> Approach:
    return Approach(name, about, {"mode": "hybrid", **parameters}, baseline=baseline, needs=needs)


_KNOWN = (
    _hybrid("hybrid", "the full engine: all channels, fused adaptively, as a search is by default", {}),
    _single("vector", "nearest chunks by the model alone"),
    _single("keyword", "BM25 alone"),
    _single("structured", "fields and values of the documents alone"),
    _single("graph", "the graph alone, started from what vector and keyword find"),
    _hybrid(
        "reranked",
        "the full engine, its first hits put into another order by the configured re-ranker",
        {"reranker": "true"},
        "rerank",
    ),
    _hybrid(
        "expansion",
        "the full engine, its graph channel by expanding two steps around the seed passages",
        {"graph_method": "expansion"},
        "graph",
    ),
    _hybrid(
        "pagerank",
        "the full engine, its graph channel by personalised PageRank from the seed passages",
        {"graph_method": "pagerank"},
        "graph",
    ),
    Approach(
        "graph_rerank",
        "what the vector channel finds, put into another order by the graph",
        {"mode": "graph_rerank"},
        needs=("graph",),
    ),
    _hybrid(
        "rrf-2",
        "vector and keyword by reciprocal rank fusion",
        {"fusion": "rrf", "channels": "vector,keyword"},
        *("vector", "keyword"),
        baseline=True,
    ),
    _hybrid(
        "rrf-3",
        "vector, keyword and graph by reciprocal rank fusion",
        {"fusion": "rrf", "channels": "vector,keyword,graph"},
        *("vector", "keyword", "graph"),
    ),
    _hybrid(
        "weighted",
        ".7 vector and .3 graph, each channel's scores brought to [0, 1] by its least and greatest",
        {"fusion": "weighted", "channels": "vector,graph", "vector_weight": "0.7", "graph_weight": "0.3"},
        *("vector", "graph"),
    ),
)
WITHOUT_RERANKER: Mapping[str, str] = {"reranker": "false"}
"""The parameters of every search of an evaluation that its approach does not set."""
APPROACHES = {approach.name: approach for approach in _KNOWN}


def approaches_named(names: Sequence[str]) -> tuple[Approach, ...]:
    """These, each once; all of them where none is named. The first is what the others are compared with.

    Raises WrongSetting for a name that is not known.
    """
    for name in names:
        if name not in APPROACHES:
            raise WrongSetting(f"There is no approach {name!r}; choose --approach from {', '.join(APPROACHES)}.")
    return tuple(APPROACHES[name] for name in dict.fromkeys(names or APPROACHES))
