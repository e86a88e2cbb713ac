"""Paths between any two nodes of the graph, over the edges that are shown: the shortest first.

Of a node with very many edges only the heaviest are followed, and those that lead to what is around the end, which are
known from there.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice

from query_api.entities.path_search import FoundPaths, Step, search_paths
from query_api.index.graph.explorer import Explorer, NodeRef
from schemas.api import GraphEdge, GraphNode
from schemas.entities import EntityRef, Evidence, NodePath, NodePathStep

MAX_NEIGHBOURS = 200  # of one node, the heaviest edges first
MAX_AROUND_END = 50  # neighbours of the end that are looked at from

_Step = Step[NodeRef, GraphEdge]
EvidenceOf = Callable[[NodeRef, NodeRef, GraphEdge], Evidence | None]
"""What says that there is this edge between these two nodes."""


def node_paths(
    explorer: Explorer,
    start: NodeRef,
    end: NodeRef,
    max_steps: int,
    limit: int,
    evidence_of: EvidenceOf = lambda *_: None,
    predicates: Collection[str] = (),
) -> FoundPaths[NodePath]:
    """At most `limit` paths of at most `max_steps` edges, of these predicates or, with none given, of any. None visits
    a node twice, or a document again that it has left: its chunks are parts of it."""
    if start == end:
        return FoundPaths([], truncated=False)
    around_end = _around(explorer, end)
    has_more = False

    def steps_from(nodes: Sequence[NodeRef]) -> Iterator[_Step]:
        nonlocal has_more
        closed = _left(explorer, nodes)
        following, more = explorer.heaviest(nodes[-1], MAX_NEIGHBOURS)
        has_more |= more
        for other, edge in (following | around_end.get(nodes[-1], {})).items():
            is_followed = not predicates or edge.label in predicates
            if is_followed and explorer.document_of(other) not in closed:
                yield Step(other, min(1.0, edge.weight), edge)

    found = search_paths(start, end, steps_from, max_steps, limit, shortest_first=True)
    shown = explorer.nodes({start, end, *(step.target for _, steps in found.paths for step in steps)})
    paths = [_path(shown, start, steps, strength, evidence_of) for strength, steps in found.paths]
    return FoundPaths(paths, found.truncated or has_more)


def _around(explorer: Explorer, end: NodeRef) -> dict[NodeRef, dict[NodeRef, GraphEdge]]:
    """{node: the edges from it to the end and to neighbours of the end}."""
    leading: dict[NodeRef, dict[NodeRef, GraphEdge]] = {}
    neighbours, _ = explorer.heaviest(end, MAX_NEIGHBOURS)
    for near in (end, *islice(neighbours, MAX_AROUND_END)):
        edges = neighbours if near == end else explorer.heaviest(near, MAX_NEIGHBOURS)[0]
        for other, edge in edges.items():
            leading.setdefault(other, {})[near] = edge
    return leading


def _left(explorer: Explorer, nodes: Sequence[NodeRef]) -> set[int]:
    """The documents that a path has been in and is no longer."""
    documents = [explorer.document_of(node) for node in nodes]
    return {each for each in documents if each is not None and each != documents[-1]}


def _path(
    shown: Mapping[NodeRef, GraphNode], start: NodeRef, steps: Sequence[_Step], strength: float, evidence_of: EvidenceOf
) -> NodePath:
    refs = [start, *(step.target for step in steps)]
    made = [
        NodePathStep(
            source=reference(shown[source]),
            predicate=step.over.label or step.over.kind,
            target=reference(shown[step.target]),
            kind=step.over.kind,
            inverse=step.over.source != shown[source].id,
            strength=round(step.strength, 4),
            evidence=evidence_of(source, step.target, step.over),
        )
        for source, step in zip(refs, steps, strict=False)
    ]
    return NodePath(strength=round(strength, 4), steps=made)


def reference(node: GraphNode) -> EntityRef:
    return EntityRef(id=node.id, label=node.label, type=node.type or node.kind)
