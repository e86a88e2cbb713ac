"""`/v1/cards`, `/v1/quizzes`, `/v1/concept-maps`, `/v1/learning-paths`: made of what documents state, and kept."""

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
from query_api.service_context import Service
from query_api.study.kept_sets import KeptSets
from query_api.study.material import StudyMaterial
from query_api.study.sets import WANTED, make_content
from schemas.choices import STUDY_PATHS, StudyKind
from schemas.ids import DocumentKey
from schemas.study import COUNTS, StudyAnswers, StudyContent, StudyPage, StudyRequest, StudyResult, StudySet

router = APIRouter(tags=["study"], route_class=ModelRoute)

Id = Annotated[str, Path(max_length=64)]
Cursor = Annotated[str | None, Query(max_length=512, description="The `next_cursor` of the page before.")]
GONE = problem_responses(403, 404)


def _serve(kind: StudyKind, singular: str, plural: str) -> None:
    """Add the routes of sets of one kind."""
    path, one = STUDY_PATHS[kind], STUDY_PATHS[kind] + "/{study_set}"

    async def sets_of(service: ServiceOf, owner: Annotated[str, Depends(owner_of)]) -> KeptSets:
        return KeptSets(service.saved, owner, kind)

    kept = Depends(sets_of)
    refused = problem_responses(403, 404, 409, 507)

    @router.post(path, name=f"make_{kind}", status_code=201, summary=f"Make {singular}", responses=refused)
    async def make(
        asked: StudyRequest,
        service: ServiceOf,
        sets: KeptSets = kept,
        after: After = None,
        wait_seconds: WaitSeconds = 10.0,
    ) -> StudySet:
        """Of a document, an entity or a collection, and kept for this caller. Fewer than asked for, with a note, where
        documents state no more that makes a good one; 422 where they state nothing that does."""
        count = asked.count or COUNTS[kind]
        collection, content, position = await content_of(service, asked, kind, count, after, wait_seconds)
        return await sets.keep(asked.model_copy(update={"collection": collection}), content, position)

    @router.get(path, name=f"list_{kind}", summary=f"List {plural}", responses=problem_responses(403))
    async def listed(
        sets: KeptSets = kept, cursor: Cursor = None, limit: Annotated[int, Query(ge=1, le=200)] = 50
    ) -> StudyPage:
        """The caller's own, those last made or answered first."""
        return await sets.page(limit, cursor)

    @router.get(one, name=f"get_{kind}", summary=f"{singular.capitalize()}, with its results", responses=GONE)
    async def get(study_set: Id, sets: KeptSets = kept) -> StudySet:
        return await sets.get(study_set)

    @router.delete(one, name=f"delete_{kind}", status_code=204, summary=f"Delete {singular}", responses=GONE)
    async def delete(study_set: Id, sets: KeptSets = kept) -> None:
        """With its results. Kafka drops their records when it compacts the topic."""
        await sets.delete(study_set)

    if kind not in {"cards", "quiz"}:
        return

    @router.post(one + "/results", name=f"answer_{kind}", status_code=201, summary=f"Answer {singular}", responses=GONE)
    async def answer(study_set: Id, given: StudyAnswers, sets: KeptSets = kept) -> StudyResult:
        """Which answers are right, with the sentences that say so. The result is kept."""
        return await sets.answer(study_set, given)


_serve("cards", "a set of cards", "sets of cards")
_serve("quiz", "a quiz", "quizzes")
_serve("map", "a concept map", "concept maps")
_serve("path", "a learning path", "learning paths")


async def content_of(
    service: Service, asked: StudyRequest, kind: StudyKind, count: int, after: str | None, wait_seconds: float
) -> tuple[str, StudyContent, int]:
    """The collection, what is made of it, and the position of the graph. Raises ApiProblem."""
    snapshot, catalogue = await catalogue_at(service, after, None, wait_seconds)
    collection, document, entity = asked.collection, None, None
    if asked.document is not None:
        holding = holding_document(snapshot, collection, asked.document)
        collection = only_collection(holding, f"A document {asked.document[:80]!r}", snapshot)
        if collection is None:
            looked_in = where(searched(asked.collection, snapshot))
            raise ApiProblem(404, "No such document", f"There is no document {asked.document[:200]!r} {looked_in}.")
        document = snapshot.graph.document(DocumentKey(collection, asked.document))
    elif asked.entity is not None:
        entity = required_entity(catalogue, asked.entity, searched(collection, snapshot), snapshot)
        collection = entity.collection
    else:
        collection = needed(collection, snapshot, None, "a set is made of one")
        require_documents(service, collection)
    material = StudyMaterial(snapshot, catalogue, describer_of(snapshot, catalogue), collection, document, entity)
    content = await service.read(lambda: make_content(material, kind, count))
    if not content.total:
        raise ApiProblem(
            422,
            "Nothing to study",
            f"Nothing of the kind is there: {WANTED[kind]}. Choose a larger document, or a whole collection.",
            members={"reason": "nothing_to_study"},
        )
    return collection, content, snapshot.graph.position
