"""`/v1/chunks/{id}`, `/v1/nodes/{id}` and `/v1/graph`: a chunk, a node and its neighbours, a subgraph for drawing."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BeforeValidator

from query_api.entities.catalogue import EntityCatalogue
from query_api.entities.hand_made import HandMade, MadeId
from query_api.errors import ApiProblem, problem_responses
from query_api.graph_export import GraphExport, csv_archive, graphml, json_lines
from query_api.index.graph.explorer import Explorer, KnownEntity, NodeRef
from query_api.index.graph.identifiers import MISSING
from query_api.index.search_snapshot import Snapshot
from query_api.routes.collection_choice import needed, only, searched, where
from query_api.routes.edits import etag
from query_api.routes.entities import describer_of
from query_api.routes.nodes import snapshot_after
from query_api.routes.parameters import OneCollection, ServiceOf
from query_api.service_context import Service
from schemas.api import ChunkDetail, NodeDetail, Subgraph
from schemas.choices import EdgeKind
from schemas.hits import HitSource
from schemas.ids import DocumentKey
from schemas.search import split_list

router = APIRouter()

LABEL_CHARACTERS = 80
EXPORT_TYPES = {"graphml": "application/graphml+xml", "jsonl": "application/x-ndjson", "csv": "application/zip"}
WRITERS = {"graphml": graphml, "jsonl": json_lines, "csv": csv_archive}
NODE_IS = (
    "a hand-made node's id, a chunk's or entity's id, a document's key `<collection>/<id>` or its id, or an entity's "
    "name"
)

Kinds = Annotated[
    list[EdgeKind] | None,
    BeforeValidator(split_list),
    Query(description="Only edges of these kinds, with commas between; all when left out. May be repeated."),
]


@router.get("/v1/chunks/{chunk_id}", summary="A chunk", tags=["chunks"], responses=problem_responses(404))
async def get_chunk(chunk_id: str, service: ServiceOf) -> ChunkDetail:
    """A chunk of the current revision of its document, with the record it comes from, and what it adds to the graph."""
    snapshot = service.snapshot()
    tables = snapshot.text

    def read() -> ChunkDetail | None:
        chunk = tables.chunks([chunk_id]).get(chunk_id)
        passage = None if chunk is None else tables.passages([chunk.passage_id]).get(chunk.passage_id)
        if chunk is None or passage is None:
            return None
        return ChunkDetail(
            chunk_id=chunk.id,
            passage_id=passage.id,
            document_id=chunk.key.document_id,
            collection=chunk.key.collection,
            title=passage.title,
            ordinal=chunk.ordinal,
            section=list(chunk.section),
            text=chunk.text,
            start=chunk.start,
            end=chunk.end,
            parent_text=passage.text,
            parent_start=passage.start,
            source=_source(snapshot, chunk.key),
            **_graph_of_chunk(service, snapshot, chunk_id),
        )

    found = await service.read(read)
    if found is None:
        raise ApiProblem(
            404, "No such chunk", f"There is no chunk {chunk_id[:80]!r} now: its document was changed or deleted."
        )
    return found


@router.get(
    "/v1/nodes/{node_id:path}",
    summary="A node and its neighbours",
    tags=["graph"],
    responses=problem_responses(400, 404, 409, 503),
    dependencies=[Depends(snapshot_after)],
)
async def get_node(
    node_id: str,
    service: ServiceOf,
    response: Response,
    collection: OneCollection = None,
    kinds: Kinds = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> NodeDetail:
    """The heaviest edges first. A hand-made node is found by its id in its collection, before all others there, and has
    an `ETag`."""

    def read() -> NodeDetail:
        explorer, place = _found(service, node_id, collection)
        detail = explorer.around(place, frozenset(kinds) if kinds else None, limit)
        if place.kind == "hand_made":
            made = MadeId(explorer.node_id(place), explorer.collection_of(place))
            detail.hand_made = next(iter(HandMade(service.snapshot()).nodes([made])), None)
        return detail

    found = await service.read(read)
    if found.hand_made is not None:
        response.headers["ETag"] = etag(found.hand_made.position)
    return found


@router.get(
    "/v1/graph",
    summary="A part of the graph, for drawing",
    tags=["graph"],
    responses=problem_responses(400, 404, 409, 503),
    dependencies=[Depends(snapshot_after)],
)
async def get_subgraph(
    service: ServiceOf,
    node: Annotated[str, Query(min_length=1, max_length=4096, description=f"Where to begin: {NODE_IS}.")],
    depth: Annotated[int, Query(ge=1, le=3, description="Edges from the first node, at most.")] = 1,
    collection: OneCollection = None,
    kinds: Kinds = None,
    limit: Annotated[int, Query(ge=1, le=5_000, description="Nodes, at most.")] = 200,
    outward: Annotated[bool, Query(description="Only edges in their direction: what links here stays out.")] = False,
) -> Subgraph:
    """Nodes breadth first, the heaviest edges of each first; every edge's ends are among the nodes."""

    def read() -> Subgraph:
        explorer, place = _found(service, node, collection)
        return explorer.subgraph(place, frozenset(kinds) if kinds else None, depth, limit, outward=outward)

    return await service.read(read)


@router.get(
    "/v1/graph/export",
    summary="The graph of a collection, as a file",
    tags=["graph"],
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "GraphML; a JSON object a line: `node` or `edge` (source and target), and its fields, with "
            "`graph` in the first and last line; or a zip of CSV files with scripts for Kùzu and Neo4j.",
            "content": {each: {"schema": {"type": "string"}} for each in EXPORT_TYPES.values()},
        },
        **problem_responses(404),
    },
)
async def export_graph(
    service: ServiceOf,
    collection: OneCollection = None,
    file_format: Annotated[Literal["graphml", "jsonl", "csv"], Query(alias="format")] = "graphml",
) -> StreamingResponse:
    """Documents, chunks, values, entities and hand-made nodes, then what joins them: mentions, links, edges between
    chunks, hand-made edges, and facts with the chunks that state them. Ends with the number of nodes and edges and a
    digest, which is the same wherever the graph is; `thalweg graph import` reads it."""
    snapshot = service.snapshot()
    exported = needed(collection, snapshot, None, "a file holds the graph of one")

    def prepare() -> GraphExport:
        catalogue = service.catalogues.of(snapshot.graph, snapshot.curation)
        texts, chunks = HandMade(snapshot).texts, snapshot.text.chunks
        return GraphExport(snapshot.graph, catalogue, exported, texts, chunks)

    export = await service.read(prepare)
    if export.is_empty and collection is not None:
        raise ApiProblem(404, "No such collection", f"The graph holds nothing of the collection {collection[:128]!r}.")
    return StreamingResponse(WRITERS[file_format](export), media_type=EXPORT_TYPES[file_format])


def _source(snapshot: Snapshot, key: DocumentKey) -> HitSource | None:
    row = snapshot.text.documents([key]).get(key)
    if row is None:
        return None
    return HitSource(topic=snapshot.documents_topic, partition=row.partition, offset=row.offset, version=row.version)


def _graph_of_chunk(service: Service, snapshot: Snapshot, chunk_id: str) -> dict[str, Any]:
    """Nothing for a chunk that the graph does not hold (yet)."""
    chunk = int(snapshot.graph.chunks([chunk_id])[0])
    if chunk == MISSING:
        return {}
    catalogue = service.catalogues.of(snapshot.graph, snapshot.curation, may_be_older=True)
    entities, statements = describer_of(snapshot, catalogue).of_chunk(chunk)
    return {"entities": entities, "statements": statements}


def _found(service: Service, node_id: str, collection: str | None) -> tuple[Explorer, NodeRef]:
    """Raises ApiProblem: 404 for none, 422 for several."""
    snapshot = service.snapshot()
    explorer = explorer_of(snapshot, service.catalogues.of(snapshot.graph, snapshot.curation, may_be_older=True))
    looked_in = searched(collection, snapshot)
    places = [found for each in looked_in if (found := explorer.find(node_id, each)) is not None]
    place = only({each: explorer.collection_of(each) for each in places}, f"A node {node_id[:80]!r}", snapshot)
    if place is None:
        raise ApiProblem(
            404,
            "No such node",
            f"The graph holds nothing named {node_id[:80]!r} {where(looked_in)}. Give {NODE_IS}.",
        )
    return explorer, place


def _beginning(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LABEL_CHARACTERS else f"{text[: LABEL_CHARACTERS - 1].rstrip()}…"


def explorer_of(snapshot: Snapshot, catalogue: EntityCatalogue) -> Explorer:
    """Of the graph; it labels chunks by how they begin, entities as the catalogue does."""
    tables = snapshot.text

    def labels(chunk_ids: Sequence[str]) -> dict[str, str]:
        return {chunk_id: _beginning(chunk.text) for chunk_id, chunk in tables.chunks(chunk_ids).items()}

    def entity_names(key: int) -> KnownEntity | None:
        entity = catalogue.of_key(key)
        return None if entity is None else KnownEntity(entity.label, entity.type, entity.members)

    return Explorer(snapshot.graph, labels, entity_names)
