"""`/v1/study`: cards, quizzes, concept maps and learning paths made of what documents state; kept, and answered."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from query_api.auth import owner_of
from query_api.errors import ApiProblem, problem_responses
from query_api.middleware import ModelRoute
from query_api.routes.collection_choice import holding_document, needed, only_collection, searched, where
from query_api.routes.collections import require_documents
from query_api.routes.edits import WaitSeconds
from query_api.routes.entities import catalogue_at, describer_of, required_entity
from query_api.routes.nodes import After
from query_api.routes.parameters import ServiceOf
from query_api.study.kept_sets import KeptSets
from query_api.study.material import StudyMaterial
from query_api.study.sets import WANTED, make_content
from schemas.ids import DocumentKey
from schemas.study import COUNTS, STUDY_PATH, StudyAnswers, StudyPage, StudyRequest, StudyResult, StudySet

router = APIRouter(tags=["study"], route_class=ModelRoute)

ONE = STUDY_PATH + "/{study_set}"
Id = Annotated[str, Path(max_length=64)]
GONE = problem_responses(403, 404)


async def sets_of(service: ServiceOf, owner: Annotated[str, Depends(owner_of)]) -> KeptSets:
    return KeptSets(service.saved, owner)


Sets = Annotated[KeptSets, Depends(sets_of)]


@router.post(STUDY_PATH, status_code=201, summary="Make a study set", responses=problem_responses(403, 404, 409, 507))
async def post_study(
    asked: StudyRequest, sets: Sets, service: ServiceOf, after: After = None, wait_seconds: WaitSeconds = 10.0
) -> StudySet:
    """Of a document, an entity or a collection, and kept for this caller. Fewer than asked for, with a note, where
    documents state no more that makes a good one; 422 where they state nothing that does."""
    snapshot, catalogue = await catalogue_at(service, after, None, wait_seconds)
    collection, document, entity = asked.collection, None, None
    if asked.document is not None:
        holding = holding_document(snapshot, collection, asked.document)
        collection = only_collection(holding, f"A document {asked.document[:80]!r}")
        if collection is None:
            looked_in = where(searched(asked.collection, snapshot))
            raise ApiProblem(404, "No such document", f"There is no document {asked.document[:200]!r} {looked_in}.")
        document = snapshot.graph.document(DocumentKey(collection, asked.document))
    elif asked.entity is not None:
        entity = required_entity(catalogue, asked.entity, searched(collection, snapshot))
        collection = entity.collection
    else:
        collection = needed(collection, snapshot, None, "a set is made of one")
        require_documents(service, collection)
    material = StudyMaterial(snapshot, catalogue, describer_of(snapshot, catalogue), collection, document, entity)
    count = asked.count or COUNTS[asked.kind]
    content = await service.read(lambda: make_content(material, asked.kind, count))
    if not content.total:
        raise ApiProblem(
            422,
            "Nothing to study",
            f"Nothing of the kind is there: {WANTED[asked.kind]}. Choose a larger document, or a whole collection.",
            members={"reason": "nothing_to_study"},
        )
    return await sets.keep(asked.model_copy(update={"collection": collection}), content, snapshot.graph.position)


@router.get(STUDY_PATH, summary="List study sets", responses=problem_responses(403))
async def list_study(
    sets: Sets,
    cursor: Annotated[str | None, Query(max_length=512, description="The `next_cursor` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> StudyPage:
    """The caller's own, the one that was last made or answered first."""
    return await sets.page(limit, cursor)


@router.get(ONE, summary="A study set with its results", responses=GONE)
async def get_study(study_set: Id, sets: Sets) -> StudySet:
    return await sets.get(study_set)


@router.post(ONE + "/results", status_code=201, summary="Answer questions of a study set", responses=GONE)
async def post_results(study_set: Id, given: StudyAnswers, sets: Sets) -> StudyResult:
    """Which answers are right, with the sentences that say so. The result is kept."""
    return await sets.answer(study_set, given)


@router.delete(ONE, status_code=204, summary="Delete a study set", responses=GONE)
async def delete_study(study_set: Id, sets: Sets) -> None:
    """With its results. Kafka drops their records when it compacts the topic."""
    await sets.delete(study_set)
