"""The approaches that can be held side by side: each a name and what it adds to the request of a search.

A new way to search becomes comparable by one entry here, as soon as `/v1/search` takes its parameters.
"""

from collections.abc import Mapping, Sequence

import msgspec

from schemas.exits import WrongSetting


class Approach(msgspec.Struct, frozen=True):
    """`parameters` are those of `/v1/search` that make it this approach."""

    name: str
    about: str
    parameters: Mapping[str, str]


_KNOWN = (
    Approach("hybrid", "all channels fused, as a search is by default", {"mode": "hybrid"}),
    Approach("vector", "nearest chunks by the model alone", {"mode": "vector"}),
    Approach("keyword", "BM25 alone", {"mode": "keyword"}),
    Approach("graph", "the graph alone, started from what vector and keyword find", {"mode": "graph"}),
)
APPROACHES = {approach.name: approach for approach in _KNOWN}


def approaches_named(names: Sequence[str]) -> tuple[Approach, ...]:
    """These, each once; all of them where none is named. The first is what the others are compared with.

    Raises WrongSetting for a name that is not known.
    """
    for name in names:
        if name not in APPROACHES:
            raise WrongSetting(f"There is no approach {name!r}; choose --approach from {', '.join(APPROACHES)}.")
    return tuple(APPROACHES[name] for name in dict.fromkeys(names or APPROACHES))
