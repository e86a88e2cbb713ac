"""`/v1/nodes` and `/v1/edges`: what people add to the graph, made, read, changed, deleted, listed.

A write is a document of a media type of its own on the documents topic: what is answered is its token. It is checked
against the newest snapshot, and what this service wrote itself is waited for. `GET /v1/nodes/{id}` is in `graph`, for
extracted nodes too.
"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, NamedTuple
from uuid import uuid4

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import BeforeValidator

from query_api.entities.conflicts import ConflictFinder
from query_api.entities.entity_facts import FactFinder
from query_api.entities.hand_made import HandMade, MadeId
from query_api.entities.node_search import LISTED_KINDS, ListedKind, NamedNodes, Place
from query_api.errors import ApiProblem, invalid_request, problem_responses, refused_event
from query_api.index.curation_follower import Curation
from query_api.index.graph.explorer import Explorer
from query_api.index.manager import covers
from query_api.index.search_snapshot import Snapshot
from query_api.ingest.intake import record_of
from query_api.middleware import ModelRoute
from query_api.routes.collection_choice import needed, only_collection, searched, where
from query_api.routes.document_writes import publish_everywhere, token_of
from query_api.routes.edits import (
    OWN_WRITE_SECONDS,
    Cursor,
    IfMatch,
    Limit,
    WaitSeconds,
    check_id,
    current_curation,
    etag,
    note_about,
    page_of,
    require_unchanged,
)
from query_api.routes.parameters import AllCollections, OneCollection, ServiceOf
from query_api.service_context import Service
from schemas.api import NamedNodePage
from schemas.curation import encode_choice
from schemas.cursors import read_cursor, write_cursor
from schemas.edits_api import EdgeCreation, EdgePage, EditAccepted, HandMadeEdge, NodeCreation, NodePage
from schemas.errors import MalformedEvent
from schemas.events import DocumentDelete, DocumentEvent, DocumentUpsert, checked
from schemas.graph_documents import MEDIA_TYPES, made_id, made_key
from schemas.graph_edits import EDGE, NODE, AnyEdit, EdgeEdit, EditKind, GraphChoice, NodeEdit, is_id_of
from schemas.receipts import TOKEN_PATTERN
from schemas.search import split_list

router = APIRouter(tags=["graph"], route_class=ModelRoute)

CHANGED, GONE = problem_responses(412), problem_responses(404, 412)

Id = Annotated[str, Path(max_length=128, description="The id that people gave it.")]
After = Annotated[
    str | None,
    Query(
        max_length=10_000,
        description="The token of a write: show at least that.",
        json_schema_extra={"pattern": TOKEN_PATTERN},
    ),
]


async def snapshot_after(service: ServiceOf, after: After = None, wait_seconds: WaitSeconds = 10.0) -> Snapshot:
    """The newest snapshot, which shows at least what was written by this token. Raises ApiProblem."""
    if after is None:
        return service.snapshot()
    return await service.reach(service.positions_of(after), wait_seconds)


SnapshotAfter = Annotated[Snapshot, Depends(snapshot_after)]


@router.get("/v1/nodes", summary="List nodes by name", responses=problem_responses(400, 409, 503))
async def list_nodes(
    service: ServiceOf,
    snapshot: SnapshotAfter,
    collection: AllCollections = None,
    prefix: Annotated[
        str | None, Query(max_length=300, description="A word of the label, or an id, begins so, in any case.")
    ] = None,
    kind: Annotated[
        list[ListedKind] | None,
        BeforeValidator(split_list),
        Query(description="Only nodes of these kinds, with commas between. May be repeated."),
    ] = None,
    node_type: Annotated[
        str | None, Query(alias="type", max_length=64, description="Only this type, of a hand-made node or an entity.")
    ] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> NodePage | NamedNodePage:
    """With `prefix` or `kind`, what has a name: nodes that people made, entities, documents, in the order of kind and
    label; chunks and sections are found from their documents. Without them all of the nodes that people made, in the
    order of their ids."""
    if prefix is not None or kind is not None:
        place = None if cursor is None else read_cursor(cursor, Place, "this list")

        def read() -> NamedNodePage:
            named = named_nodes(service, collection)
            nodes, last = named.page(kind or LISTED_KINDS, prefix or "", node_type, place, limit)
            following = None if last is None else write_cursor(last)
            return NamedNodePage(nodes=nodes, next_cursor=following)

        return await service.read(read)

    def read_made() -> NodePage:
        made = HandMade(snapshot)
        page = page_of(made.node_ids(collection, node_type), cursor, limit)
        return NodePage(nodes=made.nodes(page.ids), next_cursor=page.next_cursor, total=page.total)

    return await service.read(read_made)


def named_nodes(service: Service, collection: str | None) -> NamedNodes:
    snapshot = service.snapshot()
    catalogue = service.catalogues.of(snapshot.graph, snapshot.curation)
    return NamedNodes(snapshot.graph, catalogue, collection)


@router.post("/v1/nodes", status_code=202, summary="Make a node", responses=problem_responses(409))
async def post_node(node: NodeCreation, service: ServiceOf) -> EditAccepted:
    """409 where a node has the id. Give one, so that sending it again makes no second."""
    collection, identifier = await _place_for_new(service, NODE, node.collection, node.id)
    return await _put_node(service, collection, identifier, _without_names(NodeEdit, node))


@router.put("/v1/nodes/{node_id}", status_code=202, summary="Change a node, or make it", responses=CHANGED)
async def put_node(
    node_id: Id, node: NodeEdit, service: ServiceOf, collection: OneCollection = None, if_match: IfMatch = None
) -> EditAccepted:
    """Replaces all of it; what is left out is empty."""
    chosen = await _place_for_change(service, NODE, collection, node_id)
    return await _put_node(service, chosen, node_id, node, if_match)


@router.delete("/v1/nodes/{node_id}", status_code=202, summary="Delete a hand-made node", responses=GONE)
async def delete_node(
    node_id: Id, service: ServiceOf, collection: OneCollection = None, if_match: IfMatch = None
) -> EditAccepted:
    """Its text is deleted with it. Its edges stay, are not drawn, and come back with a node of this id. What was found
    in documents is deleted with them only."""
    return await _write(service, await _place_of(service, NODE, collection, node_id), NODE, node_id, None, if_match)


@router.get("/v1/edges", summary="List the edges that people made", responses=problem_responses(400, 409, 503))
async def list_edges(
    service: ServiceOf,
    snapshot: SnapshotAfter,
    collection: AllCollections = None,
    node: Annotated[str | None, Query(max_length=2_200, description="Only edges that leave or enter this id.")] = None,
    predicate: Annotated[str | None, Query(max_length=64, description="Only this predicate.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> EdgePage:
    """In the order of their ids."""

    def read() -> EdgePage:
        made = HandMade(snapshot)
        page = page_of(made.edge_ids(collection, node, predicate), cursor, limit)
        return EdgePage(edges=made.edges(page.ids), next_cursor=page.next_cursor, total=page.total)

    return await service.read(read)


@router.post("/v1/edges", status_code=202, summary="Make an edge", responses=problem_responses(409))
async def post_edge(edge: EdgeCreation, service: ServiceOf) -> EditAccepted:
    """409 where an edge has the id; 422 where an end is not there."""
    collection, identifier = await _place_for_new(service, EDGE, edge.collection, edge.id)
    return await _put_edge(service, collection, identifier, _without_names(EdgeEdit, edge))


@router.get("/v1/edges/{edge_id}", summary="An edge that people made", responses=problem_responses(400, 404, 409, 503))
async def get_edge(
    edge_id: Id,
    service: ServiceOf,
    snapshot: SnapshotAfter,
    response: Response,
    collection: OneCollection = None,
) -> HandMadeEdge:
    chosen = await _require(service, snapshot, EDGE, collection, edge_id)
    found = await service.read(lambda: HandMade(snapshot).edges([MadeId(edge_id, chosen)]))
    if not found:
        raise _not_found(EDGE, edge_id, [chosen])
    response.headers["ETag"] = etag(found[0].position)
    return found[0]


@router.put("/v1/edges/{edge_id}", status_code=202, summary="Change an edge, or make it", responses=CHANGED)
async def put_edge(
    edge_id: Id, edge: EdgeEdit, service: ServiceOf, collection: OneCollection = None, if_match: IfMatch = None
) -> EditAccepted:
    """Replaces all of it; 422 where an end is not there."""
    chosen = await _place_for_change(service, EDGE, collection, edge_id)
    return await _put_edge(service, chosen, edge_id, edge, if_match)


@router.delete("/v1/edges/{edge_id}", status_code=202, summary="Delete a hand-made edge", responses=GONE)
async def delete_edge(
    edge_id: Id, service: ServiceOf, collection: OneCollection = None, if_match: IfMatch = None
) -> EditAccepted:
    return await _write(service, await _place_of(service, EDGE, collection, edge_id), EDGE, edge_id, None, if_match)


async def _place_for_new(
    service: Service, kind: EditKind, collection: str | None, identifier: str | None
) -> tuple[str, str]:
    """The collection and id of what is made. Raises ApiProblem: 409 where it is there, 422 with the collections to
    choose from, 503 while they are not known."""
    if identifier is None:
        return _for_new(service, collection), f"{kind}-{uuid4().hex[:16]}"
    check_id(identifier, kind, fits=is_id_of(kind, identifier))
    snapshot = await _settled(service, kind, identifier)
    chosen = _for_new(service, collection)
    if await service.read(lambda: HandMade(snapshot).holding([chosen], kind, identifier)):
        raise ApiProblem(
            409,
            "Already there",
            f"The collection {chosen[:128]!r} has a hand-made {kind} {identifier!r}: change it with PUT.",
            members={"reason": "duplicate_id"},
        )
    return chosen, identifier


async def _place_for_change(service: Service, kind: EditKind, collection: str | None, identifier: str) -> str:
    """The collection that holds it, else that of a new one. Raises ApiProblem 422 for several."""
    check_id(identifier, kind, fits=is_id_of(kind, identifier))
    if collection is not None:  # which needs no store
        return collection
    snapshot = await _settled(service, kind, identifier)
    return await _holding(service, snapshot, kind, None, identifier) or _for_new(service, None)


async def _place_of(service: Service, kind: EditKind, collection: str | None, identifier: str) -> str:
    """The collection that holds it. Raises ApiProblem 404 for none, 422 for several."""
    return await _require(service, await _settled(service, kind, identifier), kind, collection, identifier)


async def _require(
    service: Service, snapshot: Snapshot, kind: EditKind, collection: str | None, identifier: str
) -> str:
    found = await _holding(service, snapshot, kind, collection, identifier)
    if found is None:
        raise _not_found(kind, identifier, searched(collection, snapshot))
    return found


async def _holding(
    service: Service, snapshot: Snapshot, kind: EditKind, collection: str | None, identifier: str
) -> str | None:
    if not is_id_of(kind, identifier):
        return None
    looked_in = searched(collection, snapshot)
    found = await service.read(lambda: HandMade(snapshot).holding(looked_in, kind, identifier))
    return only_collection(found, f"A hand-made {kind} {identifier[:80]!r}", snapshot)


def _not_found(kind: EditKind, identifier: str, looked_in: Sequence[str]) -> ApiProblem:
    return ApiProblem(404, "Not found", f"There is no hand-made {kind} {identifier[:80]!r} {where(looked_in)}.")


async def _settled(service: Service, kind: EditKind, *identifiers: str) -> Snapshot:
    """A snapshot that shows what this service wrote under these ids, or all that it wrote. Raises ApiProblem 503 where
    that is not indexed in time."""
    snapshot, own = service.snapshot(), service.own_writes
    wanted = {f"{kind}:{each}" for each in identifiers}  # or all
    unseen = own.unseen(lambda positions: covers(snapshot, positions), wanted)
    if not unseen:
        return snapshot
    seconds = 0.0 if own.waited_with is snapshot else OWN_WRITE_SECONDS
    try:
        return await service.reach(unseen, seconds)
    except ApiProblem:
        own.waited_with = service.snapshot()
        raise


def _for_new(service: Service, collection: str | None) -> str:
    """The collection of a new node or edge. Raises ApiProblem: 422 with those to choose from, 503 while they are not
    known."""
    if collection is not None:  # which needs no store
        return collection
    return needed(None, service.snapshot(), service.snapshots.curation.state, "what is made belongs to one of them")


async def _put_node(
    service: Service, collection: str, identifier: str, node: NodeEdit, if_match: str | None = None
) -> EditAccepted:
    allowed = (await current_curation(service)).allowed.get(collection, GraphChoice())
    if allowed.node_types is not None and node.type not in allowed.node_types:
        raise _not_allowed("type", node.type, allowed.node_types, collection)
    accepted = await _write(service, collection, NODE, identifier, node, if_match)
    return accepted.model_copy(update={"note": note_about(node.label, *node.aliases)})


async def _put_edge(
    service: Service, collection: str, identifier: str, edge: EdgeEdit, if_match: str | None = None
) -> EditAccepted:
    """An end that is missing may have been written just now: it is looked for again where that is shown."""
    curation = await current_curation(service)
    snapshot = service.snapshot()
    try:
        checked = await service.read(lambda: _checked_edge(snapshot, curation, collection, edge))
    except ApiProblem:
        settled = await _settled(service, NODE, edge.source, edge.target)
        if settled is snapshot:
            raise
        checked = await service.read(lambda: _checked_edge(settled, curation, collection, edge))
    if edge.predicate not in curation.allowed.get(collection, GraphChoice()).acyclic:
        return await _write(service, collection, EDGE, identifier, checked, if_match)
    own, chain = service.own_writes, (collection, edge.predicate)
    while True:  # of opposite edges at the same time, the second sees the first
        before = own.checked[chain]
        newest = await _settled(service, EDGE)
        await service.read(partial(_require_no_cycle, service, newest, MadeId(identifier, collection), checked))
        async with own.one_at_a_time(chain):
            if own.checked[chain] == before:
                accepted = await _write(service, collection, EDGE, identifier, checked, if_match)
                own.checked[chain] += 1
                return accepted


def _require_no_cycle(service: Service, snapshot: Snapshot, made: MadeId, edge: EdgeEdit) -> None:
    """Raises ApiProblem 422."""
    catalogue = service.catalogues.of(snapshot.graph, snapshot.curation)
    explorer, facts = Explorer(snapshot.graph, lambda _: {}), FactFinder(snapshot.graph, catalogue)
    refs = (explorer.find(each, made.collection) for each in (edge.source, edge.target))
    source, target = (facts.end_of_relation(None if ref is None else explorer.end_of(ref)) for ref in refs)
    if source is None or target is None:  # a name that is not an entity, of which nothing is stated
        return
    finder = ConflictFinder(snapshot.graph, catalogue, made.collection, [edge.predicate], without=made.id)
    way = finder.way(edge.predicate, target, source)
    if way or source.identity == target.identity:
        names = " → ".join(facts.reviewed(end).name for end in (source, target, *(fact.object for fact in way)))
        raise invalid_request(
            f"The collection {made.collection[:128]!r} allows no cycle of {edge.predicate}, and this edge closes one: "
            f"{names}. Delete or reverse one of its edges.",
            "cycle",
        )


async def _write(
    service: Service, collection: str, kind: EditKind, identifier: str, edit: AnyEdit | None, if_match: str | None
) -> EditAccepted:
    """One record of the documents topic. Raises ApiProblem: 412 as `require_unchanged`."""
    try:
        key = made_key(collection, kind, identifier)
        event: DocumentEvent = DocumentDelete(key=key)
        if edit is not None:
            content = encode_choice(edit)
            upsert = DocumentUpsert(key=key, content=content, content_type=MEDIA_TYPES[kind])
            event = checked(upsert, service.settings.limits)
    except MalformedEvent as error:
        raise refused_event(error) from error
    async with service.own_writes.one_at_a_time(key):
        await require_unchanged(service, key, if_match)
        positions = await publish_everywhere(service, record_of(event, service.settings.kafka))
        service.own_writes.add(key, dict(positions))
    token = token_of(service, positions)
    return EditAccepted(id=identifier, collection=collection, position=str(positions[0]), token=token)


def _checked_edge(snapshot: Snapshot, curation: Curation, collection: str, edge: EdgeEdit) -> EdgeEdit:
    """The edge between the ids of its ends. Raises ApiProblem 422."""
    source, target = (_end(snapshot, curation, collection, each) for each in (edge.source, edge.target))
    if source.id == target.id:
        raise invalid_request("An edge joins two different nodes.", "one_end")
    misfit = curation.allowed.get(collection, GraphChoice()).misfit(edge.predicate, source.type, target.type)
    if misfit is not None:
        what = "predicate" if misfit.type is None else f"type of the {misfit.what} of {edge.predicate}"
        raise _not_allowed(what, misfit.type or edge.predicate, misfit.allowed, collection)
    return edge.model_copy(update={"source": source.id, "target": target.id})


class _Joined(NamedTuple):
    """An end that is there. `type` is None for an entity of a type that nobody gave it: what documents say of it may
    change."""

    id: str
    type: str | None


def _end(snapshot: Snapshot, curation: Curation, collection: str, identifier: str) -> _Joined:
    made, explorer = HandMade(snapshot), Explorer(snapshot.graph, lambda _: {})
    if made.holding([collection], NODE, identifier):
        return _Joined(identifier, made.type_of(collection, identifier))
    found = explorer.find(identifier, collection)
    if found is None or explorer.collection_of(found) != collection:
        raise invalid_request(
            f"There is nothing {identifier[:80]!r} in the graph of the collection {collection[:128]!r} to join: give "
            "the id of a hand-made node, a chunk, an entity or a document, or an entity's name. What was just "
            "written may still be on its way.",
            "missing_end",
        )
    name = explorer.node_id(found)
    of_document = made_id(NODE, name.removeprefix(f"{collection}/")) if found.kind == "document" else None
    node = name if found.kind == "hand_made" else of_document
    if node is not None and made.holding([collection], NODE, node):  # named by its document
        return _Joined(node, made.type_of(collection, node))
    return _Joined(name, curation.of(collection).type_of([name]) if found.kind == "entity" else found.kind)


def _without_names(form: type[Any], creation: NodeCreation | EdgeCreation) -> Any:
    return form(**{name: value for name, value in creation if name in form.model_fields})


def _not_allowed(what: str, given: str, allowed: Sequence[str], collection: str) -> ApiProblem:
    return invalid_request(
        f"The {what} {given!r} is not among those chosen for the graph of the collection {collection[:128]!r}: "
        f"{', '.join(allowed[:20])}{' and more' if len(allowed) > 20 else ''}.",
        "not_allowed",
    )
