"""The first place of a hybrid search, where its text alone decides it: final before the graph is followed. Pure.

What leads the second by a tenth is nearly always first after the graph too, and where it is not, as often right as what
then comes first (docs/ranking.md, section 12). So it is fixed, and its hit need not wait for the graph.
"""

from collections.abc import Sequence, Set

from query_api.searching.fusing import Place
from schemas.search_request import Channel, SearchRequest

LEAD = 0.1
TEXT: frozenset[Channel] = frozenset({"vector", "keyword"})


def text_may_decide(request: SearchRequest, asked: Set[Channel], failed: Set[str]) -> bool:
    """Whether the first place may be fixed by text: in hybrid as it was measured, with its own fusion and the graph's
    own weight, where both text channels answered and what they found was compared with the question."""
    as_measured = request.mode == "hybrid" and request.fusion == "adaptive" and request.graph_weight is None
    return as_measured and asked >= TEXT | {"graph"} and not failed & (TEXT | {"compare"})


def leading_place(by_text: Sequence[Place], lead: float) -> Place | None:
    """The first of these places, which are best first by text and fields, where it leads by this share of its score.
    None where there is no second: what would be second may only be further down than was looked."""
    if len(by_text) < 2 or by_text[0].score <= 0:
        return None
    first, second = by_text[0].score, by_text[1].score
    return by_text[0] if (first - second) / first >= lead else None
