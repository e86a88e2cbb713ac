"""Which edges of the graph a search may follow: kinds, and predicates of statements."""

from collections.abc import Collection
from typing import get_args

from query_api.graph.view import GraphView
from schemas.errors import MalformedFilter
from schemas.search_request import Edge

KINDS: frozenset[str] = frozenset(get_args(Edge))
MAX_NAMED = 40


def check_edges(edges: Collection[str], view: GraphView) -> None:
    """Raises MalformedFilter for what is neither a kind of edge nor a predicate that the graph holds."""
    if KINDS.issuperset(edges):
        return
    predicates = view.predicates()
    unknown = next((name for name in edges if name not in KINDS and name not in predicates), None)
    if unknown is not None:
        more = f" and {len(predicates) - MAX_NAMED} more" if len(predicates) > MAX_NAMED else ""
        raise MalformedFilter(
            f"{unknown[:80]!r} is no kind of edge and no predicate: `edges` takes {', '.join(get_args(Edge))}; and of "
            f"statements {', '.join(predicates[:MAX_NAMED]) or 'none yet'}{more}."
        )


def looks_at(kind: str, edges: Collection[str]) -> bool:
    """Whether edges of a kind are looked at, all kinds where `edges` is empty; statements also for a predicate."""
    return not edges or kind in edges or (kind == "statement" and not KINDS.issuperset(edges))


def follows(kind: str, predicate: str, edges: Collection[str]) -> bool:
    """Whether one edge is followed; `predicate` is that of a statement."""
    return not edges or kind in edges or (kind == "statement" and predicate in edges)
