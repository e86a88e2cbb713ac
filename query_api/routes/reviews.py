"""`/v1/reviews` and edits of entities: what may be one, which statements do not go together, what people decided;
merges, renamings, splits.

Each write is an event on the curation topic; the outcome of all of them is in `indexer.resolution.groups`.
"""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Request

from indexer.resolution.own_names import qualified_name
from query_api.entities.catalogue import Entity, EntityCatalogue
from query_api.entities.conflicts import COMPARED, ConflictFinder
from query_api.entities.review_queue import (
    Candidates,
    NotComputed,
    ReviewKey,
    Reviews,
    conflict_reviews,
    decided_reviews,
    open_reviews,
    undecided,
)
from query_api.errors import ApiProblem, invalid_request, problem_responses
from query_api.index.curation_follower import CollectionEdits, Curation
from query_api.index.graph.identifiers import key_of
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from query_api.middleware import ModelRoute
from query_api.routes.collection_choice import only_collection, searched, where
from query_api.routes.edits import (
    AfterEdit,
    Cursor,
    Limit,
    WaitSeconds,
    current_curation,
    edits_of,
    note_about,
    write,
)
from query_api.routes.entities import describer_of
from query_api.routes.parameters import AllCollections, ServiceOf
from query_api.service_context import Service
from schemas.choices import ReviewKind, ReviewState
from schemas.cursors import read_cursor, write_cursor
from schemas.edits_api import (
    EditAccepted,
    EntityChange,
    MergeOrder,
    Review,
    ReviewDecision,
    ReviewedEntity,
    ReviewPage,
)
from schemas.graph_edits import (
    DECISION,
    ENTITY,
    MERGE,
    DecisionEdit,
    EntityEdit,
    GraphChoice,
    MergeEdit,
    decision_id,
    merge_id,
)
from schemas.ids import COMPUTED_ID, bare_name, entity_id

router = APIRouter(tags=["entities"], route_class=ModelRoute)

ReviewId = Annotated[str, Path(max_length=128, description="As the list has it.")]
State = Annotated[ReviewState | Literal["decided", "all"], Query(description="`decided` is any but `open`.")]


@router.get(
    "/v1/reviews", summary="List what waits for a decision, and what was decided", responses=problem_responses(400)
)
async def list_reviews(
    request: Request,
    service: ServiceOf,
    collection: AllCollections = None,
    state: State = "open",
    kind: Annotated[ReviewKind | None, Query(description="Only this kind.")] = None,
    min_score: Annotated[float, Query(ge=0, le=1, description="Open ones with a lower score are left out.")] = 0.0,
    cursor: Cursor = None,
    limit: Limit = 100,
    after: AfterEdit = None,
    wait_seconds: WaitSeconds = 10.0,
) -> ReviewPage:
    """Open ones first, the best score first; then what people decided, the newest first. Statements go together, or do
    not, as documents have them now: a review goes with either of its documents."""
    curation = await current_curation(service, after, wait_seconds)
    beyond = None if cursor is None else read_cursor(cursor, ReviewKey, "this list")
    edits = edits_of(curation, collection)
    looked_in = [name for name, each in edits.items() if any(decision.about for decision, _ in each.decisions.values())]
    if state in {"open", "all"}:
        looked_in = searched(collection, service.snapshot(), curation)
    catalogue, candidates = await _candidates(request, service, looked_in)
    view = service.snapshot().graph

    def is_wanted(review: Review) -> bool:
        if kind not in (None, review.kind) or (review.state == "open" and (review.score or 0.0) < min_score):
            return False
        return state in {"all", review.state} or (state == "decided" and review.state != "open")

    def read() -> ReviewPage:
        found: list[tuple[ReviewKey, Review]] = []
        for name, those in candidates.items():
            found += open_reviews(those, catalogue, name, curation.of(name))
            found += conflict_reviews(those, catalogue, name, curation.of(name))
        for name, each in edits.items() if state != "open" else ():
            found += decided_reviews(name, each, _names(view, each))
        found = [each for each in found if is_wanted(each[1])]
        following = sorted((each for each in found if beyond is None or each[0] > beyond), key=lambda each: each[0])
        shown = following[:limit]
        return ReviewPage(
            reviews=[_with_statements(review, candidates) for _, review in shown],
            next_cursor=write_cursor(shown[-1][0]) if len(following) > limit else None,
            total=len(found),
        )

    return await service.read(read)


def _with_statements(review: Review, candidates: Mapping[str, Candidates]) -> Review:
    """A conflict, or a duplicate that two statements name, with what is stated; the newest last."""
    found = candidates.get(review.collection)
    identifier = decision_id([each.id for each in review.entities], review.about)
    if found is None or (conflict := found.conflicts.get(identifier)) is None:
        return review
    stated = found.details(conflict.facts)
    stated.sort(key=lambda each: min((evidence.stated_at or "" for evidence in each.evidence), default=""))
    return review.model_copy(update={"statements": stated, "about": conflict.about})


@router.post(
    "/v1/reviews/{review_id}", status_code=202, summary="Decide about a review", responses=problem_responses(404)
)
async def post_review(
    review_id: ReviewId, decision: ReviewDecision, request: Request, service: ServiceOf
) -> EditAccepted:
    """`accept` and `reject` replace what was decided about the pair before; `undo` takes back that, a merge, or a
    split."""
    curation = await current_curation(service)
    collection, entities, about = await _reviewed(request, service, curation, decision.collection, review_id)
    if review_id in curation.of(collection).merges:
        if decision.decision != "undo":
            raise invalid_request("A merge can only be taken back, with `undo`.")
        return _accepted(review_id, collection, await write(service, collection, MERGE, review_id, None))
    if decision.decision == "undo":
        edit = None
    elif len(entities) < 2:
        raise invalid_request("A split can only be taken back, with `undo`.")
    else:
        edit = DecisionEdit(decision=decision.decision, entities=entities, about=about, by=decision.by)
    return _accepted(review_id, collection, await write(service, collection, DECISION, review_id, edit))


@router.post("/v1/entities/merge", status_code=202, summary="Merge entities")
async def post_merge(order: MergeOrder, request: Request, service: ServiceOf) -> EditAccepted:
    """They are one from then on, until the merge is taken back by `undo` of the review that has the answered id. 422
    for one that is not there, or that would be merged with itself."""
    curation = await current_curation(service)
    catalogue = await _catalogue(request, service)
    looked_in = searched(order.collection, service.snapshot(), curation)
    collection = _of_all(catalogue, order.entities, looked_in, service.snapshot())
    ids = [_id_of(catalogue, each, collection) for each in order.entities]
    identifier = merge_id(ids)
    heads = {found.id for each in ids if (found := catalogue.find(each, collection)) is not None}
    if len(set(ids)) < len(ids) or (len(heads) < 2 and identifier not in curation.of(collection).merges):
        raise invalid_request(
            "An entity is not merged with itself: two of those named are one entity already.", "one_entity"
        )
    merge = MergeEdit(entities=ids, name=order.name, by=order.by)
    return _accepted(identifier, collection, await write(service, collection, MERGE, identifier, merge))


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
    """Replaces what people wanted of it before; an empty change takes that back. A split name is separate until
    that is taken back, or it is merged again."""
    curation = await current_curation(service)
    catalogue = await _catalogue(request, service)
    looked_in = searched(change.collection, service.snapshot(), curation)
    holding = [each for each in looked_in if _is_known(catalogue, curation.of(each), entity, each)]
    collection = only_collection(holding, f"An entity {entity[:80]!r}", service.snapshot())
    if collection is None:
        raise ApiProblem(404, "No such entity", _no_entity(entity, looked_in))
    edits, identifier = curation.of(collection), _id_of(catalogue, entity, collection)
    position = None
    split = decision_id([identifier])
    if change.split != (split in edits.decisions):
        decision = DecisionEdit(decision="split", entities=[identifier], by=change.by) if change.split else None
        position = await write(service, collection, DECISION, split, decision)
    wanted = EntityEdit(name=change.name, type=change.type, by=change.by) if change.name or change.type else None
    if position is None or wanted is not None or identifier in edits.entities:
        position = await write(service, collection, ENTITY, identifier, wanted)
    note = note_about(change.name) if change.name else None
    return _accepted(identifier, collection, position).model_copy(update={"note": note})


def _reviews(request: Request) -> Reviews:
    reviews: Reviews = request.app.state.reviews
    return reviews


async def _catalogue(request: Request, service: Service) -> EntityCatalogue:
    snapshot, reviews = service.snapshot(), _reviews(request)
    return await service.read(lambda: reviews.catalogue_of(snapshot))


async def _candidates(
    request: Request, service: Service, collections: Sequence[str]
) -> tuple[EntityCatalogue, Mapping[str, Candidates]]:
    """Those of each collection, with the catalogue. Raises ApiProblem 503 while they are being looked for."""
    snapshot, reviews = service.snapshot(), _reviews(request)
    catalogue = await service.read(lambda: reviews.catalogue_of(snapshot))

    def completed(collection: str, found: Candidates) -> Candidates:
        waiting = undecided(found.pairs, catalogue, collection, snapshot.curation.of(collection))
        acyclic = {"is_a", *snapshot.curation.allowed.get(collection, GraphChoice()).acyclic}
        finder = ConflictFinder(snapshot.graph, catalogue, collection, COMPARED | acyclic)
        conflicts = {each.id: each for each in finder.find(sorted(acyclic), waiting)}
        return found._replace(conflicts=conflicts, details=describer_of(snapshot, catalogue).details)

    try:
        found = await asyncio.gather(
            *(reviews.candidates(catalogue, each, partial(completed, each)) for each in collections)
        )
        return catalogue, dict(zip(collections, found, strict=True))
    except NotComputed as error:
        raise ApiProblem(503, "Not yet computed", f"{error} Ask again.", retry_after_seconds=5) from error


async def _reviewed(
    request: Request, service: Service, curation: Curation, collection: str | None, review_id: str
) -> tuple[str, list[str], str | None]:
    """The collection of a review, its entities, and what is stated of them. Raises ApiProblem: 404 for none, 422 for
    several, 503 while candidates are being looked for."""
    said = {
        name: edits.merges.get(review_id) or edits.decisions.get(review_id)
        for name, edits in edits_of(curation, collection).items()
    }
    known = {
        name: (placed.edit.entities, getattr(placed.edit, "about", None))
        for name, placed in said.items()
        if placed is not None
    }
    looked_in: list[str] = []
    if not known:
        looked_in = searched(collection, service.snapshot(), curation)
        _, candidates = await _candidates(request, service, looked_in)
        known = {name: each for name, those in candidates.items() if (each := those.find(review_id)) is not None}
    found = only_collection(known, f"A review {review_id[:80]!r}", service.snapshot())
    if found is None:
        raise ApiProblem(404, "Not found", f"There is no review {review_id[:80]!r} {where(looked_in)}.")
    return found, *known[found]


def _of_all(catalogue: EntityCatalogue, entities: Sequence[str], looked_in: Sequence[str], snapshot: Snapshot) -> str:
    """The collection that holds all of the entities, named by id or by name. Raises ApiProblem 422."""
    holding = {
        name: [each for each in looked_in if _find(catalogue, _id_of(catalogue, name, each), each) is not None]
        for name in entities
    }
    found = only_collection(set(looked_in).intersection(*holding.values()), "Each of these entities", snapshot)
    if found is None:
        missing = next((name for name, collections in holding.items() if not collections), None)
        apart = f"No collection holds all of these entities; each is {where(looked_in)}."
        raise invalid_request(apart if missing is None else _no_entity(missing, looked_in), "missing_entity")
    return found


def _is_known(catalogue: EntityCatalogue, edits: CollectionEdits, entity: str, collection: str) -> bool:
    """Whether documents name it, or people said something of it."""
    identifier = _id_of(catalogue, entity, collection)
    is_edited = identifier in edits.entities or decision_id([identifier]) in edits.decisions
    return is_edited or _find(catalogue, identifier, collection) is not None


def _id_of(catalogue: EntityCatalogue, entity: str, collection: str) -> str:
    """The id of an entity that is named by it, or by a name in the collection: with its brackets where there is one."""
    if COMPUTED_ID.fullmatch(entity):
        return entity
    distinguished = entity_id(collection, qualified_name(entity) or bare_name(entity))
    is_known = _find(catalogue, distinguished, collection) is not None
    return distinguished if is_known else entity_id(collection, bare_name(entity))


def _no_entity(entity: str, looked_in: Sequence[str]) -> str:
    return f"There is no entity {entity[:80]!r} {where(looked_in)}: give its id, or its name."


def _find(catalogue: EntityCatalogue, identifier: str, collection: str) -> Entity | None:
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
