"""`/v1/collections`: a list; `…/{collection}/chunking`, `…/linking`, `…/extraction` and
`…/graph`, events on the log; `…/relink`."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated
from uuid import uuid4

from aiokafka.errors import KafkaError
from fastapi import APIRouter, Path

from indexer.chunking.splitter import ChunkingParameters
from indexer.linking import DEFAULT_RULES
from query_api.context import Service
from query_api.errors import ApiProblem, log_unavailable, problem_responses, refused_event
from query_api.index.collection_settings import NewestRecord, SettingsReader
from query_api.index.follower import LogUnavailable
from query_api.ingest.producer import BrokerUnavailable, OutgoingRecord
from query_api.middleware import ModelRoute
from query_api.routes.parameters import DOCUMENT_ID, CollectionInPath, ServiceOf
from schemas.api import CollectionList, CollectionSummary, describe_collections
from schemas.curation import (
    ChunkingChoice,
    ChunkingEvent,
    CollectionChunking,
    CollectionExtraction,
    CollectionLinking,
    CurationEvent,
    ExtractionChoice,
    ExtractionEvent,
    LinkingChoice,
    LinkingEvent,
    RelinkAccepted,
    RelinkEvent,
    Relinking,
    SettingAccepted,
    chunking_key,
    encode_choice,
    extraction_key,
    graph_settings_key,
    linking_key,
    relink_key,
)
from schemas.edits_api import CollectionGraph
from schemas.errors import MalformedEvent
from schemas.graph_edits import GraphChoice, GraphSettingsEvent

router = APIRouter(tags=["collections"], route_class=ModelRoute)


UNREADABLE = (KafkaError, LogUnavailable, TimeoutError, OSError)  # what SettingsReader raises
CHUNKING_PATH = "/v1/collections/{collection}/chunking"
LINKING_PATH = "/v1/collections/{collection}/linking"
EXTRACTION_PATH = "/v1/collections/{collection}/extraction"
GRAPH_PATH = "/v1/collections/{collection}/graph"
RELINK_PATH = "/v1/collections/{collection}/relink"


@router.get("/v1/collections", summary="The collections there are")
async def list_collections(service: ServiceOf) -> CollectionList:
    """Those with live documents, and those with a setting ahead of them. While the log is unavailable a note says that
    what was chosen is not known."""
    counts = service.snapshot().text.fields.collections()
    chosen: dict[str, list[CurationEvent]] = {name: [] for name in counts}
    notes = []
    try:
        for found in await SettingsReader(service.locate_broker, service.topics.curation, service.skipped).settings():
            if (
                isinstance(found.event, ChunkingEvent | LinkingEvent | ExtractionEvent)
                and found.event.choice is not None
            ):
                chosen.setdefault(found.event.collection, []).append(found.event)
    except UNREADABLE as error:
        notes.append(f"What was chosen for them is not known: {unreadable(error)}")
    return CollectionList(
        collections=[
            CollectionSummary(
                name=name,
                **(counts[name]._asdict() if name in counts else {}),
                chunking=next((event.choice for event in of if isinstance(event, ChunkingEvent)), None),
                linking=next((event.choice for event in of if isinstance(event, LinkingEvent)), None),
                extraction=next((event.choice for event in of if isinstance(event, ExtractionEvent)), None),
            )
            for name, of in sorted(chosen.items())
        ],
        notes=notes,
    )


@router.get(CHUNKING_PATH, summary="How a collection is cut")
async def get_chunking(collection: CollectionInPath, service: ServiceOf) -> CollectionChunking:
    """What applies to documents that are sent now. Those indexed before keep their chunks until they are sent again."""
    found = await newest_setting(service, checked_key(chunking_key, collection))
    return _chunking(collection, _defaults(service), found, documents_in(service, collection))


@router.put(CHUNKING_PATH, status_code=202, summary="Choose how a collection is cut")
async def put_chunking(collection: CollectionInPath, choice: ChunkingChoice, service: ServiceOf) -> SettingAccepted:
    """Replaces an earlier choice; what is left out is the default. It applies to every document that is sent after this
    answer; documents sent before keep their chunks until they are sent again."""
    try:
        _defaults(service).with_choice(choice)
    except ValueError as error:
        raise ApiProblem(422, "Invalid request", str(error), members={"reason": "bad_setting"}) from error
    position = await publish(service, checked_key(chunking_key, collection), encode_choice(choice))
    return SettingAccepted(position=position, documents=documents_in(service, collection))


@router.delete(CHUNKING_PATH, status_code=202, summary="Cut a collection by the defaults again")
async def delete_chunking(collection: CollectionInPath, service: ServiceOf) -> SettingAccepted:
    """No error where nothing was chosen."""
    position = await publish(service, checked_key(chunking_key, collection), None)
    return SettingAccepted(position=position, documents=documents_in(service, collection))


def documents_in(service: Service, collection: str) -> int | None:
    """How many live documents are in it; None while the stores are being opened."""
    if service.snapshots.current is None:
        return None
    counts = service.snapshots.current.text.fields.collections()
    return counts[collection].documents if collection in counts else 0


def require_documents(service: Service, collection: str) -> None:
    """Raises ApiProblem 404 with the collections there are for one without documents, 503 while that is not known."""
    counts = service.snapshot().text.fields.collections()
    if collection in counts:
        return
    there = describe_collections(list(counts)) if counts else "No document is in any collection yet."
    raise ApiProblem(
        404,
        "No such collection",
        f"No document is in the collection {collection[:128]!r}. {there}",
        members={"reason": "unknown_collection"},
    )


async def newest_setting(service: Service, key: bytes) -> NewestRecord:
    """What the newest record of a key on the curation topic says. Raises ApiProblem while the log is unavailable."""
    try:
        return await SettingsReader(service.locate_broker, service.topics.curation, service.skipped).newest(key)
    except UNREADABLE as error:
        raise log_unavailable(unreadable(error)) from error


def unreadable(error: Exception) -> str:
    return f"The curation topic cannot be read: {str(error) or type(error).__name__}."


async def publish(service: Service, key: bytes, value: bytes | None) -> str:
    """Where a record now stands on the curation topic. Raises ApiProblem while the log is unavailable."""
    try:
        (position,) = await service.writer.publish(service.topics.curation, [OutgoingRecord(key, value)])
    except BrokerUnavailable as error:
        raise log_unavailable(f"{error}. Send it again in a while: twice does no harm.") from error
    service.snapshots.curation.written = max(service.snapshots.curation.written, position.offset)
    return str(position)


def checked_key(make: Callable[..., bytes], *names: str) -> bytes:
    """A record key of the curation topic. Raises ApiProblem for names that cannot stand in one."""
    try:
        return make(*names)
    except MalformedEvent as error:
        raise refused_event(error) from error


def _defaults(service: Service) -> ChunkingParameters:
    """Those the served generation was made with."""
    if service.snapshots.served is None:
        return ChunkingParameters()
    made = service.snapshots.served.manifest
    return ChunkingParameters(
        passage_characters=made.passage_characters,
        passage_overlap=made.passage_overlap,
        chunk_characters=made.chunk_characters,
        chunk_overlap=made.chunk_overlap,
    )


def _chunking(
    collection: str, defaults: ChunkingParameters, found: NewestRecord, documents: int | None
) -> CollectionChunking:
    chosen = found.event.choice if isinstance(found.event, ChunkingEvent) else None
    choice = chosen or ChunkingChoice()
    try:
        effective = defaults.with_choice(choice)
    except ValueError:  # the worker refuses it as well, and goes on with the defaults
        effective, choice = defaults, ChunkingChoice()
    return CollectionChunking(
        collection=collection,
        parent_characters=effective.passage_characters,
        parent_overlap=effective.passage_overlap_characters,
        child_characters=effective.chunk_characters,
        child_overlap=effective.chunk_overlap,
        method=effective.method,
        language=effective.language,
        chosen=choice,
        position=None if chosen is None or found.position is None else str(found.position),
        documents=documents,
    )


@router.get(LINKING_PATH, summary="How a collection is linked")
async def get_linking(collection: CollectionInPath, service: ServiceOf) -> CollectionLinking:
    """What applies to documents that are indexed now. Those indexed before keep their edges until `relink`."""
    found = await newest_setting(service, checked_key(linking_key, collection))
    chosen = found.event.choice if isinstance(found.event, LinkingEvent) else None
    rules = DEFAULT_RULES.with_choice(chosen) if chosen else DEFAULT_RULES
    position = None if chosen is None or found.position is None else str(found.position)
    return CollectionLinking(
        collection=collection,
        **asdict(rules),
        chosen=chosen or LinkingChoice(),
        position=position,
        documents=documents_in(service, collection),
    )


@router.put(LINKING_PATH, status_code=202, summary="Choose how a collection is linked")
async def put_linking(collection: CollectionInPath, choice: LinkingChoice, service: ServiceOf) -> SettingAccepted:
    """Replaces an earlier choice; what is left out is the default. It applies to documents that are indexed after this
    answer; `relink` applies it to the others."""
    position = await publish(service, checked_key(linking_key, collection), encode_choice(choice))
    return SettingAccepted(position=position, documents=documents_in(service, collection))


@router.delete(LINKING_PATH, status_code=202, summary="Link a collection by the defaults again")
async def delete_linking(collection: CollectionInPath, service: ServiceOf) -> SettingAccepted:
    """No error where nothing was chosen."""
    position = await publish(service, checked_key(linking_key, collection), None)
    return SettingAccepted(position=position, documents=documents_in(service, collection))


@router.get(EXTRACTION_PATH, summary="What finds a collection's entities")
async def get_extraction(collection: CollectionInPath, service: ServiceOf) -> CollectionExtraction:
    """What applies to documents that are sent now. Those indexed before keep their entities until they are sent
    again."""
    found = await newest_setting(service, checked_key(extraction_key, collection))
    chosen = (found.event.choice if isinstance(found.event, ExtractionEvent) else None) or ExtractionChoice()
    return CollectionExtraction(
        collection=collection,
        extractor=chosen.extractor or "rules",
        chosen=chosen,
        position=None if chosen.extractor is None or found.position is None else str(found.position),
        documents=documents_in(service, collection),
    )


@router.put(EXTRACTION_PATH, status_code=202, summary="Choose what finds a collection's entities")
async def put_extraction(collection: CollectionInPath, choice: ExtractionChoice, service: ServiceOf) -> SettingAccepted:
    """Replaces an earlier choice. It applies to every document that is sent after this answer. What the worker is not
    set up for becomes a dead letter, with the reason `bad_setting`, and the default stays."""
    position = await publish(service, checked_key(extraction_key, collection), encode_choice(choice))
    return SettingAccepted(position=position, documents=documents_in(service, collection))


@router.delete(EXTRACTION_PATH, status_code=202, summary="Find a collection's entities by the default again")
async def delete_extraction(collection: CollectionInPath, service: ServiceOf) -> SettingAccepted:
    """No error where nothing was chosen."""
    position = await publish(service, checked_key(extraction_key, collection), None)
    return SettingAccepted(position=position, documents=documents_in(service, collection))


@router.get(GRAPH_PATH, summary="What people may add to a collection's graph")
async def get_graph_choice(collection: CollectionInPath, service: ServiceOf) -> CollectionGraph:
    """Types of nodes, and predicates with the types of their ends. Nodes and edges made before stay."""
    found = await newest_setting(service, checked_key(graph_settings_key, collection))
    chosen = found.event.choice if isinstance(found.event, GraphSettingsEvent) else None
    position = None if chosen is None or found.position is None else str(found.position)
    return CollectionGraph(collection=collection, chosen=chosen or GraphChoice(), position=position)


@router.put(GRAPH_PATH, status_code=202, summary="Choose what people may add to a collection's graph")
async def put_graph_choice(collection: CollectionInPath, choice: GraphChoice, service: ServiceOf) -> SettingAccepted:
    """Replaces an earlier choice. An edit that does not fit is refused with 422 from then on."""
    position = await publish(service, checked_key(graph_settings_key, collection), encode_choice(choice))
    return SettingAccepted(position=position, documents=documents_in(service, collection))


@router.delete(GRAPH_PATH, status_code=202, summary="Let people add anything to a collection's graph")
async def delete_graph_choice(collection: CollectionInPath, service: ServiceOf) -> SettingAccepted:
    """No error where nothing was chosen."""
    position = await publish(service, checked_key(graph_settings_key, collection), None)
    return SettingAccepted(position=position, documents=documents_in(service, collection))


@router.post(
    RELINK_PATH,
    status_code=202,
    summary="Link what is stored by the rules of now",
    responses=problem_responses(404),
)
async def post_relink(collection: CollectionInPath, service: ServiceOf) -> RelinkAccepted:
    """Nothing is embedded again. Where the rules are those the documents were linked by, nothing changes. 404 for a
    collection without documents."""
    key = checked_key(relink_key, collection, order := uuid4().hex[:16])
    require_documents(service, collection)
    position = await publish(service, key, encode_choice(Relinking()))
    return RelinkAccepted(id=order, position=position)


@router.get(RELINK_PATH + "/{order}", summary="How far it is", responses=problem_responses(404))
async def get_relink(
    collection: CollectionInPath, order: Annotated[str, Path(json_schema_extra=DOCUMENT_ID)], service: ServiceOf
) -> Relinking:
    found = await newest_setting(service, checked_key(relink_key, collection, order))
    if not isinstance(found.event, RelinkEvent) or found.event.state is None:
        raise ApiProblem(404, "Not found", f"There is no order {order[:80]!r} to link this collection.")
    return found.event.state
