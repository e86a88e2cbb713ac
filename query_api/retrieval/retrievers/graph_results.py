"""What a search found in the graph: where it began, what it reached, and why."""

from typing import NamedTuple

from query_api.query.entity_linking import QueryLink
from query_api.retrieval.comparison import Compared
from query_api.retrieval.retrievers.graph_edges import Parent, Reason


class Gathered(NamedTuple):
    """What one question has led to before any edge is followed. Passages by their number in the view.

    `prior` is how well they fit by their text, in [0, 1].
    """

    links: list[QueryLink]
    prior: dict[int, float]
    parents: list[Parent]


class Findings(NamedTuple):
    """What the graph reached: passage numbers by passage id, scores, the strongest reason for each; how far the scores
    may count beside other channels; and how all that was found compares with the question."""

    gate: float
    numbers: dict[str, int]
    scores: dict[str, float]
    reasons: dict[str, Reason]
    gathered: Gathered | None
    compared: Compared | None = None


NOTHING = Findings(0.0, {}, {}, {}, None)
