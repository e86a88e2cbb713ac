"""Paths between any two nodes of the graph, over the edges that people see: the shortest first.

Breadth first over partial paths; of one length the strongest first, by the product of the edges' weights. The search
ends at a bound of nodes that are looked at from. Of a node with very many edges only the heaviest are followed, and
those that lead to what is around the end, which are known from there.
"""

import heapq
from itertools import count, islice
from typing import NamedTuple

from query_api.index.graph.explorer import Explorer, NodeRef
from schemas.api import GraphEdge, GraphNode
from schemas.entities import EntityRef, NodePath, NodePathStep

MAX_EXPANDED = 300
MAX_NEIGHBOURS = 200  # of one node, the heaviest edges first
MAX_AROUND_END = 50  # neighbours of the end that are looked at from
MAX_PATHS_THROUGH = 2  # of one node

_Step = tuple[NodeRef, GraphEdge]


class FoundPaths(NamedTuple):
    paths: list[NodePath]
    truncated: bool


def node_paths(explorer: Explorer, start: NodeRef, end: NodeRef, max_steps: int, limit: int) -> FoundPaths:
    """At most `limit` paths of at most `max_steps` edges. None visits a node twice, or a document again that it has
    left: its chunks are parts of it."""
    if start == end:
        return FoundPaths([], truncated=False)
    number = count()
    waiting: list[tuple[int, float, int, tuple[_Step, ...]]] = [(0, -1.0, next(number), ())]
    passed: dict[NodeRef, int] = {}
    found: list[tuple[float, tuple[_Step, ...]]] = []
    around_end = _around(explorer, end)
    truncated = False
    while waiting and len(found) < limit:
        length, negative, _, steps = heapq.heappop(waiting)
        here = steps[-1][0] if steps else start
        if here == end:
            found.append((-negative, steps))
            continue
        if length == max_steps or passed.get(here, 0) >= MAX_PATHS_THROUGH:
            continue
        if here not in passed and len(passed) >= MAX_EXPANDED:
            truncated = True
            continue
        passed[here] = passed.get(here, 0) + 1
        nodes = [start, *(each for each, _ in steps)]
        closed = _left(explorer, nodes)
        following, more = explorer.heaviest(here, MAX_NEIGHBOURS)
        truncated |= more
        for other, edge in (following | around_end.get(here, {})).items():
            if other not in nodes and explorer.document_of(other) not in closed:
                weight = min(1.0, edge.weight)
                heapq.heappush(waiting, (length + 1, negative * weight, next(number), (*steps, (other, edge))))
    shown = explorer.nodes({start, end, *(other for _, steps in found for other, _ in steps)})
    return FoundPaths([_path(shown, start, steps, strength) for strength, steps in found], truncated)


def _around(explorer: Explorer, end: NodeRef) -> dict[NodeRef, dict[NodeRef, GraphEdge]]:
    """{node: the edges from it to the end and to neighbours of the end}."""
    leading: dict[NodeRef, dict[NodeRef, GraphEdge]] = {}
    neighbours, _ = explorer.heaviest(end, MAX_NEIGHBOURS)
    for near in (end, *islice(neighbours, MAX_AROUND_END)):
        edges = neighbours if near == end else explorer.heaviest(near, MAX_NEIGHBOURS)[0]
        for other, edge in edges.items():
            leading.setdefault(other, {})[near] = edge
    return leading


def _left(explorer: Explorer, nodes: list[NodeRef]) -> set[int]:
    """The documents that a path has been in and is no longer."""
    documents = [explorer.document_of(node) for node in nodes]
    return {each for each in documents if each is not None and each != documents[-1]}


def _path(shown: dict[NodeRef, GraphNode], start: NodeRef, steps: tuple[_Step, ...], strength: float) -> NodePath:
    made, here = [], start
    for other, edge in steps:
        source, target = shown[here], shown[other]
        made.append(
            NodePathStep(
                source=reference(source),
                predicate=edge.label or edge.kind,
                target=reference(target),
                kind=edge.kind,
                inverse=edge.source != source.id,
                strength=round(min(1.0, edge.weight), 4),
            )
        )
        here = other
    return NodePath(strength=round(strength, 4), steps=made)


def reference(node: GraphNode) -> EntityRef:
    return EntityRef(id=node.id, label=node.label, type=node.type or node.kind)
