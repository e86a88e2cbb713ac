"""`/v1/nodes` and `/v1/edges`: what people add to the graph, made, read, changed, deleted, listed.

A write is an event on the curation topic. The text of a node is a document beside it, `node:<id>`, so that searches
find it; its version is the offset of the node's record, so that sending it twice changes nothing. `GET /v1/nodes/{id}`
is in `graph`, for extracted nodes too.
"""

from typing import Annotated, Any, Literal
from uuid import uuid4

from fastapi import APIRouter, Path, Query
from pydantic import BeforeValidator

from query_api.context import Service
from query_api.entities.nodes import LISTED_KINDS, ListedKind, NamedNodes, Place
from query_api.errors import ApiProblem, problem_responses
from query_api.index.curation import Curation, Placed
from query_api.index.graph.explorer import Explorer, NodeRef
from query_api.ingest.intake import document_key, record_of
from query_api.middleware import ModelRoute
from query_api.routes.collection_choice import needed
from query_api.routes.document_writes import publish_document
from query_api.routes.edits import (
    After,
    Cursor,
    Limit,
    MadeId,
    WaitSeconds,
    check_id,
    current_curation,
    decode_place,
    edits_of,
    encode_place,
    hand_made_node,
    holding_edit,
    page_of,
    require_edit,
    write,
)
from query_api.routes.parameters import AllCollections, OneCollection, ServiceOf
from schemas.api import NamedNodePage
from schemas.edits_api import EdgeCreation, EdgePage, EditAccepted, HandMadeEdge, NodeCreation, NodePage
from schemas.events import DocumentDelete, DocumentUpsert
from schemas.graph_edits import EDGE, NODE, EdgeEdit, EditKind, GraphChoice, NodeEdit, is_id_of, node_document
from schemas.ids import Position
from schemas.limits import is_visible
from schemas.search import split_list

router = APIRouter(tags=["graph"], route_class=ModelRoute)

Id = Annotated[str, Path(max_length=128, description="The id that people gave it.")]
End = Literal["source", "target"]
OF_ITS_KIND = {"document": "document", "chunk": "chunk"}


@router.get("/v1/nodes", summary="List nodes by name", responses=problem_responses(400))
async def list_nodes(
    service: ServiceOf,
    collection: AllCollections = None,
    prefix: Annotated[
        str | None, Query(max_length=300, description="A word of the label, or an id, begins so, in any case.")
    ] = None,
    kind: Annotated[
        list[ListedKind] | None,
        BeforeValidator(split_list),
        Query(description="Only nodes of these kinds, with commas between. May stand several times."),
    ] = None,
    node_type: Annotated[
        str | None, Query(alias="type", max_length=64, description="Only this type, of a hand-made node or an entity.")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
    after: After = None,
    wait_seconds: WaitSeconds = 10.0,
) -> NodePage | NamedNodePage:
    """With `prefix` or `kind`, what has a name: nodes that people made, entities, documents, in the order of kind and
    label; chunks and sections are found from their documents. Without them all of the nodes that people made, in the
    order of their ids."""
    if prefix is not None or kind is not None:
        curation = await current_curation(service, after, wait_seconds)
        place = None if cursor is None else decode_place(cursor, Place)

        def read() -> NamedNodePage:
            named = named_nodes(service, curation, collection)
            nodes, last = named.page(kind or LISTED_KINDS, prefix or "", node_type, place, limit)
            following = None if last is None else encode_place(last)
            return NamedNodePage(nodes=nodes, next_cursor=following)

        return await service.read(read)
    said = edits_of(await current_curation(service, after, wait_seconds), collection)
    wanted = (
        MadeId(identifier, name)
        for name, edits in said.items()
        for identifier, node in edits.nodes.items()
        if node_type is None or node.edit.type == node_type
    )
    page = page_of(wanted, cursor, limit)
    return NodePage(
        nodes=[hand_made_node(each.collection, each.id, said[each.collection].nodes[each.id]) for each in page.ids],
        next_cursor=page.next_cursor,
        total=page.total,
    )


def named_nodes(service: Service, curation: Curation, collection: str | None) -> NamedNodes:
    graph = service.snapshot().graph
    return NamedNodes(graph, service.catalogues.of(graph, curation), curation, collection)


@router.post("/v1/nodes", status_code=202, summary="Make a node", responses=problem_responses(409))
async def post_node(node: NodeCreation, service: ServiceOf) -> EditAccepted:
    """409 where a node has the id. Give one, so that sending it again makes no second."""
    identifier = _new_id(NODE, node.id)
    curation = await current_curation(service)
    collection = _for_new(service, curation, node.collection)
    _refuse_existing(curation.of(collection).nodes, identifier, collection, NODE)
    return await _put_node(service, curation, collection, identifier, _without_names(NodeEdit, node))


@router.put("/v1/nodes/{node_id}", status_code=202, summary="Change a node, or make it under this id")
async def put_node(node_id: Id, node: NodeEdit, service: ServiceOf, collection: OneCollection = None) -> EditAccepted:
    """Replaces all of it; what is left out is empty."""
    check_id(node_id, NODE, fits=is_id_of(NODE, node_id))
    curation = await current_curation(service)
    chosen = holding_edit(curation, collection, NODE, node_id) or _for_new(service, curation, collection)
    return await _put_node(service, curation, chosen, node_id, node)


@router.delete(
    "/v1/nodes/{node_id}", status_code=202, summary="Delete a node that people made", responses=problem_responses(404)
)
async def delete_node(node_id: Id, service: ServiceOf, collection: OneCollection = None) -> EditAccepted:
    """Its text is deleted too. Its edges stay, are not drawn, and come back with a node of this id. What was found in
    documents is deleted with them only."""
    curation = await current_curation(service)
    chosen = require_edit(curation, collection, NODE, node_id)
    before = curation.of(chosen).nodes[node_id]
    token = await _delete_text(service, chosen, node_id) if is_visible(before.edit.text) else None
    position = await write(service, chosen, NODE, node_id, None)
    return EditAccepted(id=node_id, collection=chosen, position=position, token=token)


@router.get("/v1/edges", summary="List the edges that people made", responses=problem_responses(400))
async def list_edges(
    service: ServiceOf,
    collection: AllCollections = None,
    node: Annotated[str | None, Query(max_length=2_200, description="Only edges that leave or enter this id.")] = None,
    predicate: Annotated[str | None, Query(max_length=64, description="Only this predicate.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
    after: After = None,
    wait_seconds: WaitSeconds = 10.0,
) -> EdgePage:
    """In the order of their ids."""
    curation = await current_curation(service, after, wait_seconds)
    page = page_of(
        (
            MadeId(each, name)
            for name, edits in edits_of(curation, collection).items()
            for each in (edits.edges if node is None else edits.edges_at.get(node, ()))
            if predicate is None or edits.edges[each].edit.predicate == predicate
        ),
        cursor,
        limit,
    )
    found = await service.read(lambda: _edges(service, curation, page.ids))
    return EdgePage(edges=found, next_cursor=page.next_cursor, total=page.total)


@router.post("/v1/edges", status_code=202, summary="Make an edge", responses=problem_responses(409))
async def post_edge(edge: EdgeCreation, service: ServiceOf) -> EditAccepted:
    """409 where an edge has the id; 422 where an end is not there."""
    identifier = _new_id(EDGE, edge.id)
    curation = await current_curation(service)
    collection = _for_new(service, curation, edge.collection)
    _refuse_existing(curation.of(collection).edges, identifier, collection, EDGE)
    return await _put_edge(service, curation, collection, identifier, _without_names(EdgeEdit, edge))


@router.get("/v1/edges/{edge_id}", summary="An edge that people made", responses=problem_responses(404))
async def get_edge(
    edge_id: Id,
    service: ServiceOf,
    collection: OneCollection = None,
    after: After = None,
    wait_seconds: WaitSeconds = 10.0,
) -> HandMadeEdge:
    curation = await current_curation(service, after, wait_seconds)
    chosen = require_edit(curation, collection, EDGE, edge_id)
    (edge,) = await service.read(lambda: _edges(service, curation, [MadeId(edge_id, chosen)]))
    return edge


@router.put("/v1/edges/{edge_id}", status_code=202, summary="Change an edge, or make it under this id")
async def put_edge(edge_id: Id, edge: EdgeEdit, service: ServiceOf, collection: OneCollection = None) -> EditAccepted:
    """Replaces all of it; 422 where an end is not there."""
    check_id(edge_id, EDGE, fits=is_id_of(EDGE, edge_id))
    curation = await current_curation(service)
    chosen = holding_edit(curation, collection, EDGE, edge_id) or _for_new(service, curation, collection)
    return await _put_edge(service, curation, chosen, edge_id, edge)


@router.delete(
    "/v1/edges/{edge_id}", status_code=202, summary="Delete an edge that people made", responses=problem_responses(404)
)
async def delete_edge(edge_id: Id, service: ServiceOf, collection: OneCollection = None) -> EditAccepted:
    chosen = require_edit(await current_curation(service), collection, EDGE, edge_id)
    position = await write(service, chosen, EDGE, edge_id, None)
    return EditAccepted(id=edge_id, collection=chosen, position=position)


def _for_new(service: Service, curation: Curation, collection: str | None) -> str:
    """The collection of a new node or edge. Raises ApiProblem: 422 with those to choose from, 503 while they are not
    known."""
    if collection is not None:  # which needs no store
        return collection
    return needed(None, service.snapshot(), curation, "what is made belongs to one of them")


async def _put_node(
    service: Service, curation: Curation, collection: str, identifier: str, node: NodeEdit
) -> EditAccepted:
    allowed = curation.allowed.get(collection, GraphChoice())
    if allowed.node_types is not None and node.type not in allowed.node_types:
        raise _not_allowed("type", node.type, allowed.node_types, collection)
    before = curation.of(collection).nodes.get(identifier)
    token = None
    if before is not None and is_visible(before.edit.text) and not is_visible(node.text):
        token = await _delete_text(service, collection, identifier)
    position = await write(service, collection, NODE, identifier, node)
    if is_visible(node.text):
        document = DocumentUpsert(
            key=node_document(collection, identifier),
            content=node.text.encode("utf-8", "surrogatepass"),
            content_type="text/plain",
            title=node.label,
            metadata={"node": identifier, "node_type": node.type},
            version=int(position.partition(":")[2]),
        )
        token = await publish_document(service, record_of(document, service.settings.kafka))
    return EditAccepted(id=identifier, collection=collection, position=position, token=token)


async def _delete_text(service: Service, collection: str, identifier: str) -> str:
    """Before the node's own record: were that written and this not, nobody would delete the text any more."""
    key = document_key(*node_document(collection, identifier))
    return await publish_document(service, record_of(DocumentDelete(key=key), service.settings.kafka))


async def _put_edge(
    service: Service, curation: Curation, collection: str, identifier: str, edge: EdgeEdit
) -> EditAccepted:
    checked = await service.read(lambda: _checked_edge(service, curation, collection, edge))
    position = await write(service, collection, EDGE, identifier, checked)
    return EditAccepted(id=identifier, collection=collection, position=position)


def _checked_edge(service: Service, curation: Curation, collection: str, edge: EdgeEdit) -> EdgeEdit:
    """The edge between the ids of its ends. Raises ApiProblem 422."""
    explorer = _explorer(service, curation)
    source, target = (_end(explorer, collection, each) for each in (edge.source, edge.target))
    if source == target:
        raise ApiProblem(422, "Invalid request", "An edge joins two different nodes.", members={"reason": "one_end"})
    predicates = curation.allowed.get(collection, GraphChoice()).predicates
    if predicates is not None:
        if edge.predicate not in predicates:
            raise _not_allowed("predicate", edge.predicate, sorted(predicates), collection)
        ends = predicates[edge.predicate]
        for name, ref, types in (("source", source, ends.source), ("target", target, ends.target)):
            found = _type_of(explorer, curation, collection, ref)
            if types is not None and found is not None and found not in types:
                raise _not_allowed(f"type of the {name} of {edge.predicate}", found, types, collection)
    return edge.model_copy(update={"source": explorer.node_id(source), "target": explorer.node_id(target)})


def _end(explorer: Explorer, collection: str, identifier: str) -> NodeRef:
    found = explorer.find(identifier, collection)
    if found is None or explorer.collection_of(found) != collection:
        raise ApiProblem(
            422,
            "Invalid request",
            f"There is nothing {identifier[:80]!r} in the graph of the collection {collection[:128]!r} to join: give "
            "the id of a hand-made node, a chunk, an entity or a document, or an entity's name. What was just "
            "written may still be on its way.",
            members={"reason": "missing_end"},
        )
    return found


def _type_of(explorer: Explorer, curation: Curation, collection: str, ref: NodeRef) -> str | None:
    """None for an entity of a type that nobody gave it: what documents say of it may change."""
    edits = curation.of(collection)
    if ref.kind == "hand_made":
        return edits.nodes[explorer.node_id(ref)].edit.type
    if ref.kind == "entity":
        return edits.type_of([explorer.node_id(ref)])
    return OF_ITS_KIND[ref.kind]


def _edges(service: Service, curation: Curation, ids: list[MadeId]) -> list[HandMadeEdge]:
    explorer = _explorer(service, curation)
    return [
        _hand_made_edge(explorer, each.collection, each.id, curation.of(each.collection).edges[each.id]) for each in ids
    ]


def _hand_made_edge(explorer: Explorer, collection: str, identifier: str, placed: Placed[EdgeEdit]) -> HandMadeEdge:
    edge = placed.edit
    fields: dict[str, Any] = dict(edge)
    ends: tuple[End, ...] = ("source", "target")
    missing = [end for end in ends if explorer.find(fields[end], collection) is None]
    position = str(Position(0, placed.offset))
    return HandMadeEdge(id=identifier, collection=collection, position=position, missing=missing, **fields)


def _explorer(service: Service, curation: Curation) -> Explorer:
    """By what people say now, which may be newer than what the snapshot holds."""
    return Explorer(service.snapshot().graph, lambda _: {}, curation)


def _without_names(form: type[Any], creation: NodeCreation | EdgeCreation) -> Any:
    return form(**{name: value for name, value in creation if name in form.model_fields})


def _new_id(kind: EditKind, identifier: str | None) -> str:
    if identifier is None:
        return f"{kind}-{uuid4().hex[:16]}"
    check_id(identifier, kind, fits=is_id_of(kind, identifier))
    return identifier


def _refuse_existing(found: Any, identifier: str, collection: str, kind: EditKind) -> None:
    if identifier in found:
        raise ApiProblem(
            409,
            "Already there",
            f"The collection {collection[:128]!r} has a hand-made {kind} {identifier!r}: change it with PUT.",
            members={"reason": "duplicate_id"},
        )


def _not_allowed(what: str, given: str, allowed: list[str], collection: str) -> ApiProblem:
    return ApiProblem(
        422,
        "Invalid request",
        f"The {what} {given!r} is not among those chosen for the graph of the collection {collection[:128]!r}: "
        f"{', '.join(allowed[:20])}{' and more' if len(allowed) > 20 else ''}.",
        members={"reason": "not_allowed"},
    )
