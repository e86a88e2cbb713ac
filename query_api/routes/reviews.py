"""`/v1/reviews` and edits of entities: what may be one, what people decided; merges, renamings, splits.

Each write is an event on the curation topic; the outcome of all of them is in `indexer.resolution.groups`.
"""

import json
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request

from query_api.context import Service
from query_api.errors import ApiProblem, problem_responses
from query_api.index.curation import CollectionEdits
from query_api.index.graph.identifiers import key_of
from query_api.index.graph.view import GraphView
from query_api.middleware import ModelRoute
from query_api.reviews import (
    Candidates,
    Catalogue,
    NamedThing,
    NotComputed,
    ReviewKey,
    Reviews,
    decided_reviews,
    open_reviews,
)
from query_api.routes.edits import (
    After,
    Cursor,
    EditsCollection,
    Limit,
    WaitSeconds,
    current_edits,
    decode_cursor,
    encode_cursor,
    write,
)
from query_api.routes.parameters import ServiceOf
from schemas.choices import ReviewState
from schemas.edits_api import (
    EditAccepted,
    EntityChange,
    MergeOrder,
    ReviewDecision,
    ReviewedEntity,
    ReviewPage,
)
from schemas.graph_edits import (
    COMPUTED_ID,
    DECISION,
    ENTITY,
    MERGE,
    DecisionEdit,
    EntityEdit,
    MergeEdit,
    decision_id,
    merge_id,
)
from schemas.ids import entity_id, normalise_name

router = APIRouter(tags=["entities"], route_class=ModelRoute)

ReviewId = Annotated[str, Path(max_length=128, description="As the list has it.")]
State = Annotated[ReviewState | Literal["decided", "all"], Query(description="`decided` is any but `open`.")]


@router.get("/v1/reviews", summary="List entities that may be one", responses=problem_responses(400))
async def list_reviews(
    request: Request,
    service: ServiceOf,
    collection: EditsCollection = "default",
    state: State = "open",
    min_score: Annotated[float, Query(ge=0, le=1, description="Open ones with a lower score are left out.")] = 0.0,
    cursor: Cursor = None,
    limit: Limit = 100,
    after: After = None,
    wait_seconds: WaitSeconds = 10.0,
) -> ReviewPage:
    """Open ones first, the best score first; then what people decided, the newest first."""
    edits = await current_edits(service, collection, after, wait_seconds)
    beyond = None if cursor is None else _key_of_cursor(cursor)
    catalogue = await _catalogue(request, service)
    found = []
    if state in {"open", "all"}:
        candidates = await _candidates(request, catalogue, collection)
        found += [
            each
            for each in open_reviews(candidates, catalogue, collection, edits)
            if (each[1].score or 0.0) >= min_score
        ]
    if state != "open":
        names = await service.read(lambda: _names(service.snapshot().graph, edits))
        found += [
            each for each in decided_reviews(edits, names) if state in {"decided", "all"} or each[1].state == state
        ]
    following = sorted((each for each in found if beyond is None or each[0] > beyond), key=lambda each: each[0])
    shown = following[:limit]
    more = len(following) > limit
    return ReviewPage(
        reviews=[review for _, review in shown],
        next_cursor=_cursor_of(shown[-1][0]) if more and shown else None,
        total=len(found),
    )


@router.post(
    "/v1/reviews/{review_id}", status_code=202, summary="Decide about a review", responses=problem_responses(404)
)
async def post_review(
    review_id: ReviewId, decision: ReviewDecision, request: Request, service: ServiceOf
) -> EditAccepted:
    """`accept` and `reject` replace what was decided about the pair before; `undo` takes back that, a merge, or a
    split."""
    collection = decision.collection
    edits = await current_edits(service, collection)
    if review_id in edits.merges:
        if decision.decision != "undo":
            raise ApiProblem(422, "Invalid request", "A merge can only be taken back, with `undo`.")
        return _accepted(review_id, collection, await write(service, collection, MERGE, review_id, None))
    decided = edits.decisions.get(review_id)
    if decided is not None:
        entities = decided.edit.entities
    else:
        candidates = await _candidates(request, await _catalogue(request, service), collection)
        pair = candidates.find(review_id)
        if pair is None:
            raise ApiProblem(
                404, "Not found", f"There is no review {review_id[:80]!r} in the collection {collection[:128]!r}."
            )
        entities = [pair.first, pair.second]
    if decision.decision == "undo":
        edit = None
    elif len(entities) < 2:
        raise ApiProblem(422, "Invalid request", "A split can only be taken back, with `undo`.")
    else:
        edit = DecisionEdit(decision=decision.decision, entities=entities, by=decision.by)
    return _accepted(review_id, collection, await write(service, collection, DECISION, review_id, edit))


@router.post("/v1/entities/merge", status_code=202, summary="Merge entities")
async def post_merge(order: MergeOrder, request: Request, service: ServiceOf) -> EditAccepted:
    """They are one from then on, until the merge is taken back by `undo` of the review that has the answered id. 422
    for one that is not there, or that would be merged with itself."""
    edits = await current_edits(service, order.collection)
    catalogue = await _catalogue(request, service)
    ids = [_require_entity(catalogue, each, order.collection) for each in order.entities]
    identifier = merge_id(ids)
    heads = {found.id for each in ids if (found := catalogue.find(each, order.collection)) is not None}
    if len(set(ids)) < len(ids) or (len(heads) < 2 and identifier not in edits.merges):
        raise ApiProblem(
            422,
            "Invalid request",
            "An entity is not merged with itself: two of those named are one entity already.",
            members={"reason": "one_entity"},
        )
    merge = MergeEdit(entities=ids, name=order.name, by=order.by)
    return _accepted(identifier, order.collection, await write(service, order.collection, MERGE, identifier, merge))


@router.put(
    "/v1/entities/{entity_id:path}",
    status_code=202,
    summary="Rename, retype or split off an entity",
    responses=problem_responses(404),
)
async def put_entity(
    entity: Annotated[str, Path(alias="entity_id", max_length=2_200, description="Its id, or its name.")],
    change: EntityChange,
    request: Request,
    service: ServiceOf,
) -> EditAccepted:
    """Replaces what people wanted of it before; an empty change takes that back. A split name stands by itself until
    that is taken back, or it is merged again."""
    collection = change.collection
    edits = await current_edits(service, collection)
    identifier = entity if COMPUTED_ID.fullmatch(entity) else entity_id(collection, normalise_name(entity))
    if identifier not in edits.entities and decision_id([identifier]) not in edits.decisions:
        catalogue = await _catalogue(request, service)
        if _find(catalogue, identifier, collection) is None:
            raise ApiProblem(
                404,
                "No such entity",
                f"There is no entity {entity[:80]!r} in the collection {collection[:128]!r}: give its id, or its name.",
            )
    position = None
    split = decision_id([identifier])
    if change.split != (split in edits.decisions):
        decision = DecisionEdit(decision="split", entities=[identifier], by=change.by) if change.split else None
        position = await write(service, collection, DECISION, split, decision)
    wanted = EntityEdit(name=change.name, type=change.type, by=change.by) if change.name or change.type else None
    if position is None or wanted is not None or identifier in edits.entities:
        position = await write(service, collection, ENTITY, identifier, wanted)
    return _accepted(identifier, collection, position)


def _reviews(request: Request) -> Reviews:
    reviews: Reviews = request.app.state.reviews
    return reviews


async def _catalogue(request: Request, service: Service) -> Catalogue:
    snapshot, reviews = service.snapshot(), _reviews(request)
    return await service.read(lambda: reviews.catalogue_of(snapshot))


async def _candidates(request: Request, catalogue: Catalogue, collection: str) -> Candidates:
    """Raises ApiProblem 503 while they are being looked for."""
    try:
        return await _reviews(request).candidates(catalogue, collection)
    except NotComputed as error:
        raise ApiProblem(503, "Not yet computed", f"{error} Ask again.", retry_after_seconds=5) from error


def _require_entity(catalogue: Catalogue, identifier: str, collection: str) -> str:
    """The id of an entity that is named by it, or by a name. Raises ApiProblem 422."""
    if _find(catalogue, identifier, collection) is None:
        raise ApiProblem(
            422,
            "Invalid request",
            f"There is no entity {identifier[:80]!r} in the collection {collection[:128]!r}: give its id, or its name.",
            members={"reason": "missing_entity"},
        )
    return identifier if COMPUTED_ID.fullmatch(identifier) else entity_id(collection, normalise_name(identifier))


def _find(catalogue: Catalogue, identifier: str, collection: str) -> NamedThing | None:
    """An entity of this collection."""
    found = catalogue.find(identifier, collection)
    return found if found is not None and found.collection == collection else None


def _names(view: GraphView, edits: CollectionEdits) -> dict[str, ReviewedEntity]:
    """The entities of decisions and merges that a document names, by id."""
    ids = {each for said in (edits.decisions, edits.merges) for edit, _ in said.values() for each in edit.entities}
    names = view.entity_names([key_of(each) for each in ids])
    labels = view.labels({key: name for key, (_, name) in names.items()})
    return {
        each: ReviewedEntity(id=each, name=labels[key_of(each)], type=edits.type_of([each]) or "", mentions=0)
        for each in ids
        if key_of(each) in labels
    }


def _accepted(identifier: str, collection: str, position: str) -> EditAccepted:
    return EditAccepted(id=identifier, collection=collection, position=position)


def _cursor_of(key: ReviewKey) -> str:
    return encode_cursor(json.dumps(key))


def _key_of_cursor(cursor: str) -> ReviewKey:
    try:
        decided, rank, mentions, identifier = json.loads(decode_cursor(cursor))
        return ReviewKey(int(decided), float(rank), int(mentions), str(identifier))
    except (ValueError, TypeError, OverflowError) as error:
        raise ApiProblem(
            400, "Malformed cursor", "Not a cursor of this list: omit it to start from the first page."
        ) from error
