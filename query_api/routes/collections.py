"""`/v1/collections`: a list; `…/{collection}/relink`; and how settings are read from the log and put into it."""

from collections import Counter
from collections.abc import Callable
from typing import Annotated
from uuid import uuid4

from aiokafka.errors import KafkaError
from fastapi import APIRouter, Path

from kafka_client.topic_offsets import LogUnavailable
from query_api.errors import ApiProblem, log_unavailable, problem_responses, refused_event
from query_api.index.curation_follower import CurationFollower, NewestRecord
from query_api.ingest.producer import BrokerUnavailable, OutgoingRecord
from query_api.middleware import ModelRoute
from query_api.routes.collection_choice import saved_notes
from query_api.routes.parameters import DOCUMENT_ID, CollectionInPath, ServiceOf
from query_api.service_context import Service
from schemas.api import CollectionList, CollectionSummary, describe_collections
from schemas.curation import (
    ChunkingEvent,
    ExtractionEvent,
    LinkingEvent,
    encode_choice,
)
from schemas.errors import MalformedEvent
from schemas.orders import OrderEvent, RelinkAccepted, Relinking, relink_key

router = APIRouter(tags=["collections"], route_class=ModelRoute)


UNREADABLE = (KafkaError, LogUnavailable, TimeoutError, OSError)  # what `read_curation` raises
SettingEvent = ChunkingEvent | LinkingEvent | ExtractionEvent
RELINK_PATH = "/v1/collections/{collection}/relink"


@router.get("/v1/collections", summary="The collections there are")
async def list_collections(service: ServiceOf) -> CollectionList:
    """Those with live documents, and those with a setting ahead of them. While the log is unavailable a note says that
    what was chosen is not known."""
    counts = service.snapshot().text.fields.collections()
    saved = Counter(key.collection for key in saved_notes(service.snapshot()))
    chosen: dict[str, list[SettingEvent]] = {name: [] for name in counts}
    notes = []
    try:
        of = (await read_curation(service)).events
        events: list[SettingEvent] = [*of(ChunkingEvent), *of(LinkingEvent), *of(ExtractionEvent)]
        for event in events:
            if event.choice is not None:
                chosen.setdefault(event.collection, []).append(event)
    except UNREADABLE as error:
        notes.append(f"What was chosen for them is not known: {unreadable(error)}")
    return CollectionList(
        collections=[
            CollectionSummary(
                name=name,
                saved_notes=saved[name],
                **(counts[name]._asdict() if name in counts else {}),
                chunking=next((event.choice for event in of if isinstance(event, ChunkingEvent)), None),
                linking=next((event.choice for event in of if isinstance(event, LinkingEvent)), None),
                extraction=next((event.choice for event in of if isinstance(event, ExtractionEvent)), None),
            )
            for name, of in sorted(chosen.items())
        ],
        notes=notes,
    )


def documents_in(service: Service, collection: str) -> int | None:
    """How many live documents are in it; None while the stores are being opened."""
    if service.snapshots.current is None:
        return None
    counts = service.snapshots.current.text.fields.collections()
    return counts[collection].documents + counts[collection].hand_made if collection in counts else 0


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


async def read_curation(service: Service) -> CurationFollower:
    """The curation topic, read to the end that it has now. Raises one of UNREADABLE."""
    follower = service.snapshots.curation
    await follower.read_to(await service.log_watch.end_now(service.topics.curation))
    return follower


async def newest_setting(service: Service, key: bytes) -> NewestRecord:
    """What the newest record of a key on the curation topic says. Raises ApiProblem while the log is unavailable."""
    try:
        return (await read_curation(service)).newest(key)
    except UNREADABLE as error:
        raise log_unavailable(unreadable(error)) from error


def unreadable(error: Exception) -> str:
    return f"The curation topic cannot be read: {str(error) or type(error).__name__}."


async def publish(service: Service, key: bytes, value: bytes | None) -> str:
    """Where a record now is on the curation topic. Raises ApiProblem while the log is unavailable."""
    try:
        (position,) = await service.writer.publish(service.topics.curation, [OutgoingRecord(key, value)])
    except BrokerUnavailable as error:
        raise log_unavailable(f"{error}. Send it again later: sending it twice does no harm.") from error
    service.snapshots.curation.written = max(service.snapshots.curation.written, position.offset)
    return str(position)


def checked_key(make: Callable[..., bytes], *names: str) -> bytes:
    """A record key of the curation topic. Raises ApiProblem for names that cannot be in one."""
    try:
        return make(*names)
    except MalformedEvent as error:
        raise refused_event(error) from error


@router.post(
    RELINK_PATH,
    status_code=202,
    summary="Link what is stored by the current rules",
    responses=problem_responses(404),
)
async def post_relink(collection: CollectionInPath, service: ServiceOf) -> RelinkAccepted:
    """Nothing is embedded again. Where the rules are those the documents were linked by, nothing changes. 404 for a
    collection without documents."""
    key = checked_key(relink_key, collection, order := uuid4().hex[:16])
    require_documents(service, collection)
    position = await publish(service, key, encode_choice(Relinking()))
    return RelinkAccepted(id=order, position=position)


@router.get(RELINK_PATH + "/{order}", summary="The progress of a relink order", responses=problem_responses(404))
async def get_relink(
    collection: CollectionInPath, order: Annotated[str, Path(json_schema_extra=DOCUMENT_ID)], service: ServiceOf
) -> Relinking:
    found = await newest_setting(service, checked_key(relink_key, collection, order))
    if not isinstance(found.event, OrderEvent) or not isinstance(found.event.order, Relinking):
        raise ApiProblem(404, "Not found", f"There is no order {order[:80]!r} to link this collection.")
    return found.event.order
