"""Which edges of the graph a search may follow: kinds, and predicates of statements."""

from collections.abc import Collection
from typing import get_args

from query_api.index.graph.columns import CHUNK_EDGE_KINDS
from query_api.index.graph.view import GraphView
from schemas.errors import MalformedFilter
from schemas.search import Edge, SearchRequest

KINDS: frozenset[str] = frozenset(get_args(Edge))
MAX_NAMED = 40


def check_edges(request: SearchRequest, view: GraphView) -> None:
    """Raises MalformedFilter for what is neither a kind of edge that the method follows nor a predicate that the graph
    holds."""
    kinds = KINDS if request.graph_method == "expansion" else KINDS.difference(CHUNK_EDGE_KINDS)
    if kinds.issuperset(request.edges):
        return
    predicates = view.predicates()
    unknown = next((name for name in request.edges if name not in kinds and name not in predicates), None)
    if unknown in KINDS:
        raise MalformedFilter(
            f"{unknown!r} is followed by graph_method=expansion alone: ask for that, or leave it out."
        )
    if unknown is not None:
        more = f" and {len(predicates) - MAX_NAMED} more" if len(predicates) > MAX_NAMED else ""
        raise MalformedFilter(
            f"{unknown[:80]!r} is no kind of edge and no predicate: `edges` takes {', '.join(get_args(Edge))}; and of "
            f"statements {', '.join(predicates[:MAX_NAMED]) or 'none yet'}{more}."
        )


def looks_at(kind: str, edges: Collection[str]) -> bool:
    """Whether edges of a kind are looked at, all kinds where `edges` is empty. Statements always: one of `edges` may be
    a predicate, `related_to` both."""
    return not edges or kind in edges or kind == "statement"


def follows(kind: str, predicate: str, edges: Collection[str]) -> bool:
    """Whether one edge is followed; `predicate` is that of a statement."""
    return not edges or kind in edges or (kind == "statement" and predicate in edges)
