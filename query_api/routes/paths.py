"""`/v1/paths`: paths between two nodes, and from one to what is around it."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BeforeValidator

from query_api.entities.catalogue import Entity, EntityCatalogue
from query_api.entities.description import summary
from query_api.entities.entity_paths import PathEnd, PathFinder
from query_api.entities.node_paths import node_paths, reference
from query_api.entities.node_search import NamedNodes
from query_api.errors import ApiProblem, invalid_request, problem_responses
from query_api.index.graph.explorer import NodeRef
from query_api.index.search_snapshot import Snapshot
from query_api.routes.collection_choice import only, searched, where
from query_api.routes.edits import AfterEdit, WaitSeconds
from query_api.routes.entities import catalogue_at, describer_of
from query_api.routes.graph import explorer_of
from query_api.routes.nodes import After
from query_api.routes.parameters import OneCollection, ServiceOf
from schemas.api import GraphNode
from schemas.entities import EntityPaths, EntityRef, NodePaths
from schemas.search import split_list

router = APIRouter(tags=["entities"])

NODE_IS = (
    "An entity's id, or one of its names; else any node: a hand-made node's id or label, a chunk's "
    "id, a document's key, id or title."
)

BOTH_ENDS = "A pair of such nodes"
PATHS, AROUND = 3, 20  # by default


@router.get(
    "/v1/paths", summary="Paths between two nodes, or around one", responses=problem_responses(400, 404, 409, 503)
)
async def get_paths(
    service: ServiceOf,
    source: Annotated[str, Query(alias="from", min_length=1, max_length=2_200, description=NODE_IS)],
    target: Annotated[
        str | None,
        Query(alias="to", min_length=1, max_length=2_200, description=f"{NODE_IS} Left out: what is around `from`."),
    ] = None,
    collection: OneCollection = None,
    max_steps: Annotated[int, Query(ge=1, le=6)] = 4,
    limit: Annotated[
        int | None, Query(ge=1, le=100, description=f"Paths, at most: {PATHS} by default, without `to` {AROUND}.")
    ] = None,
    through: Annotated[
        str | None, Query(min_length=1, max_length=2_200, description="Without `to`: only what this node leads to.")
    ] = None,
    entity_type: Annotated[
        str | None, Query(alias="type", max_length=64, description="Without `to`: only what has this type.")
    ] = None,
    predicate: Annotated[
        list[str] | None,
        BeforeValidator(split_list),
        Query(description="Only by facts of these predicates, with commas between.", examples=["prerequisite_of"]),
    ] = None,
    min_strength: Annotated[
        float, Query(ge=0, le=1, description="Without `to`: the least product of the steps' strengths.")
    ] = 0.4,
    after: After = None,
    after_edit: AfterEdit = None,
    wait_seconds: WaitSeconds = 10.0,
) -> EntityPaths | NodePaths:
    """Between two entities the strongest first: each step is a statement, or a sentence that names both ends, with that
    sentence. Where there is none, or an end is another node, the shortest first, over the edges of `/v1/graph`. None
    visits a node twice, or returns to a document that it has left.

    Without `to` the strongest path to each entity and hand-made node around `from`: what it depends on
    (`predicate=depends_on,requires`), or whom it knows through somebody (`through=Ada&type=person`)."""
    snapshot, catalogue = await catalogue_at(service, after, after_edit, wait_seconds)

    current = snapshot if after_edit is None else service.snapshot()

    def read() -> EntityPaths | NodePaths:
        joining = _Joining(snapshot, current, catalogue, collection, frozenset(predicate or ()), max_steps)
        if target is not None:
            return joining.between(source, target, limit or PATHS)
        return joining.around(source, through, entity_type, min_strength, limit or AROUND)

    return await service.read(read)


class _Joining:
    """Joins nodes of one collection or, with None, of the one that holds them. Its methods raise ApiProblem: 404 for a
    node that is not there, 422 for nodes that are in several collections. `current` may be newer than the catalogue."""

    def __init__(
        self,
        snapshot: Snapshot,
        current: Snapshot,
        catalogue: EntityCatalogue,
        collection: str | None,
        predicates: frozenset[str],
        max_steps: int,
    ) -> None:
        self._current = current
        self._catalogue = catalogue
        self._looked_in = searched(collection, snapshot)
        self._named = NamedNodes(current.graph, catalogue, collection)
        self._explorer = explorer_of(current, catalogue)
        self._finder = PathFinder(snapshot.graph, catalogue, describer_of(snapshot, catalogue), predicates)
        self._predicates = predicates
        self._max_steps = max_steps
        self._position = snapshot.graph.position

    def between(self, source: str, target: str, limit: int) -> EntityPaths | NodePaths:
        entities = self._entities(source, target)
        if entities is None:
            return self._over_edges(source, target, limit)
        start, end = entities
        ends = [self._path_end(NodeRef("entity", each.members[0])) for each in entities]
        found = self._finder.paths(ends[0], ends[1], self._max_steps, limit)
        if not found.paths and not self._predicates:
            over_edges = self._over_edges(start.id, end.id, limit)
            if over_edges.paths:
                return over_edges
        shown = found._asdict() | {"graph_position": self._position}
        return EntityPaths(collection=start.collection, source=summary(start), target=summary(end), **shown)

    def around(
        self, source: str, through: str | None, entity_type: str | None, min_strength: float, limit: int
    ) -> EntityPaths:
        nodes = self._nodes(source) if through is None else self._nodes(source, through)
        by = map(self._path_end, nodes)
        start = next(by)
        found = self._finder.around(
            start, self._max_steps, limit, min_strength=min_strength, entity_type=entity_type, through=next(by, None)
        )
        shown = found._asdict() | {"source": self._references(nodes)[0], "graph_position": self._position}
        return EntityPaths(collection=self._explorer.collection_of(nodes[0]), target=None, **shown)

    def _over_edges(self, source: str, target: str, limit: int) -> NodePaths:
        start, end = nodes = self._nodes(source, target)
        evidence_of = describer_of(self._current, self._catalogue).evidence_of_edge
        found = node_paths(self._explorer, start, end, self._max_steps, limit, evidence_of, self._predicates)
        source_ref, target_ref = self._references(nodes)
        shown = found._asdict() | {"graph_position": self._current.graph.position}
        return NodePaths(collection=self._explorer.collection_of(start), source=source_ref, target=target_ref, **shown)

    def _entities(self, source: str, target: str) -> tuple[Entity, Entity] | None:
        found = ([self._catalogue.find(each, name) for each in (source, target)] for name in self._looked_in)
        pairs = {(start, end): start.collection for start, end in found if start is not None and end is not None}
        return only(pairs, BOTH_ENDS, self._current)

    def _nodes(self, *identifiers: str) -> tuple[NodeRef, ...]:
        """Nodes that one collection holds all of."""
        found = list(map(self._places, identifiers))
        together = (
            tuple(each[name] for each in found) for name in self._looked_in if all(name in each for each in found)
        )
        nodes = only({each: self._explorer.collection_of(each[0]) for each in together}, BOTH_ENDS, self._current)
        if nodes is None:
            raise ApiProblem(404, "No such node", f"No collection holds both ends; each is {where(self._looked_in)}.")
        return nodes

    def _places(self, identifier: str) -> dict[str, NodeRef]:
        """{collection: the node of this id or name there}."""
        found: dict[str, NodeRef] = {}
        called: dict[str, GraphNode] | None = None
        for each in self._looked_in:
            entity = self._catalogue.find(identifier, each)
            place = self._explorer.find(identifier if entity is None else entity.id, each)
            if entity is None and (place is None or place.kind == "entity"):  # a title that nobody mentions is a term
                called = self._named.called(identifier) if called is None else called  # which reads all titles
                place = self._explorer.find(called[each].id, each) if each in called else place
            if place is not None:
                found[each] = place
        if not found:
            raise ApiProblem(
                404,
                "No such node",
                f"The graph holds no entity and no other node {identifier[:80]!r} {where(self._looked_in)}. "
                "GET /v1/nodes?prefix= finds them by name.",
            )
        return found

    def _path_end(self, node: NodeRef) -> PathEnd:
        """Raises ApiProblem 422 for a chunk and a document."""
        if node.kind == "hand_made":
            return "node", node.at
        if node.kind != "entity":
            raise invalid_request("`from` and `through` without `to` are entities or hand-made nodes: give `to`, too.")
        row = self._catalogue.row_of(node.at)
        return ("name", node.at) if row is None else ("entity", row)

    def _references(self, nodes: Sequence[NodeRef]) -> list[EntityRef]:
        shown = self._explorer.nodes(nodes)
        return [reference(shown[each]) for each in nodes]
