"""`/v1/collections/{collection}/linking` and `…/relink`: how chunks are linked, and the order to link again."""

from dataclasses import asdict
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Path

from indexer.linking import DEFAULT_RULES
from query_api.errors import ApiProblem, problem_responses, refused_event
from query_api.middleware.model_route import ModelRoute
from query_api.routes.collections import ServiceOf, documents_in, publish, require_documents, stated
from query_api.routes.parameters import DOCUMENT_ID, CollectionInPath
from schemas.curation import (
    CollectionLinking,
    LinkingChoice,
    LinkingEvent,
    RelinkAccepted,
    RelinkEvent,
    Relinking,
    SettingAccepted,
    encode_choice,
    linking_key,
    relink_key,
)
from schemas.errors import MalformedEvent

router = APIRouter(tags=["collections"], route_class=ModelRoute)

PATH = "/v1/collections/{collection}/linking"
RELINK_PATH = "/v1/collections/{collection}/relink"


@router.get(PATH, summary="How a collection is linked")
async def get_linking(collection: CollectionInPath, service: ServiceOf) -> CollectionLinking:
    """What applies to documents that are indexed now. Those indexed before keep their edges until `relink`."""
    found = await stated(service, _linking_key(collection))
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


@router.put(PATH, status_code=202, summary="Choose how a collection is linked")
async def put_linking(collection: CollectionInPath, choice: LinkingChoice, service: ServiceOf) -> SettingAccepted:
    """In the place of what was chosen before; what is left out is the default. It counts for documents that are indexed
    after this answer; `relink` applies it to the others."""
    position = await publish(service, _linking_key(collection), encode_choice(choice))
    return SettingAccepted(position=position, documents=documents_in(service, collection))


@router.delete(PATH, status_code=202, summary="Link a collection by the defaults again")
async def delete_linking(collection: CollectionInPath, service: ServiceOf) -> SettingAccepted:
    """No error where nothing was chosen."""
    position = await publish(service, _linking_key(collection), None)
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
    key = _relink_key(collection, order := uuid4().hex[:16])
    require_documents(service, collection)
    position = await publish(service, key, encode_choice(Relinking()))
    return RelinkAccepted(id=order, position=position)


@router.get(RELINK_PATH + "/{order}", summary="How far it is", responses=problem_responses(404))
async def get_relink(
    collection: CollectionInPath, order: Annotated[str, Path(json_schema_extra=DOCUMENT_ID)], service: ServiceOf
) -> Relinking:
    found = await stated(service, _relink_key(collection, order))
    if not isinstance(found.event, RelinkEvent) or found.event.state is None:
        raise ApiProblem(404, "Not found", f"There is no order {order[:80]!r} to link this collection.")
    return found.event.state


def _linking_key(collection: str) -> bytes:
    try:
        return linking_key(collection)
    except MalformedEvent as error:
        raise refused_event(error) from error


def _relink_key(collection: str, order: str) -> bytes:
    try:
        return relink_key(collection, order)
    except MalformedEvent as error:
        raise refused_event(error) from error
