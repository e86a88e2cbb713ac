"""`/v1/ground-truth`: made questions with what is expected for them, judged by people."""

from collections.abc import Iterable
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from query_api.auth import owner_of
from query_api.errors import invalid_request, problem_responses
from query_api.middleware import LargeModelRoute
from query_api.routes.collection_choice import holding_document, needed
from query_api.routes.edits import WaitSeconds
from query_api.routes.nodes import After
from query_api.routes.parameters import AllCollections, ServiceOf
from query_api.routes.study import Cursor, content_of
from query_api.saved.ground_truth import GroundTruth
from query_api.service_context import Service
from schemas.analytics import MAX_QUESTIONS
from schemas.ground_truth import (
    GROUND_TRUTH_PATH,
    ExpectedAnswer,
    ExpectedPassage,
    GroundTruthAdded,
    GroundTruthPage,
    GroundTruthQuestion,
    GroundTruthRequest,
    Judgement,
    MadeQuestion,
    QuestionJudgement,
)
from schemas.study import StudyQuestion, StudyRequest

router = APIRouter(tags=["evaluations"], route_class=LargeModelRoute)


async def truth_of(service: ServiceOf, owner: Annotated[str, Depends(owner_of)]) -> GroundTruth:
    return GroundTruth(service.saved, owner)


Truth = Annotated[GroundTruth, Depends(truth_of)]


@router.post(
    GROUND_TRUTH_PATH,
    status_code=201,
    summary="Make questions to judge",
    responses=problem_responses(403, 404, 409, 507),
)
async def add_questions(
    asked: GroundTruthRequest, service: ServiceOf, truth: Truth, after: After = None, wait_seconds: WaitSeconds = 10.0
) -> GroundTruthAdded:
    """Of what documents state, each with the sentence that answers it; or takes those that are sent. Kept for this
    caller until they are judged, and after."""
    collection = needed(asked.collection, service.snapshot(), None, "questions are about one")
    if asked.questions is not None:
        _require_documents(service, collection, asked.questions)
        return await truth.add(collection, asked.questions, MAX_QUESTIONS)
    count = asked.count + sum((await truth.page(collection, None, 1, None)).counts.values())
    scope = StudyRequest(collection=collection)
    _, content, _ = await content_of(service, scope, "cards", count, after, wait_seconds)
    return await truth.add(collection, [_made(each) for each in content.questions], asked.count)


@router.get(GROUND_TRUTH_PATH, summary="List made questions", responses=problem_responses(403))
async def list_questions(
    truth: Truth,
    collection: AllCollections = None,
    judgement: Annotated[Judgement | None, Query(description="Only these; `open` ones wait to be judged.")] = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> GroundTruthPage:
    """The caller's own."""
    return await truth.page(collection, judgement, limit, cursor)


@router.put(GROUND_TRUTH_PATH + "/{question}", summary="Judge a question", responses=problem_responses(403, 404, 507))
async def judge_question(
    question: Annotated[str, Path(max_length=64)], given: QuestionJudgement, service: ServiceOf, truth: Truth
) -> GroundTruthQuestion:
    """Confirms it, as it was made or corrected; rejects it; or takes that back. What was said last counts."""
    found = await truth.find(question)
    if given.corrected is not None:
        _require_documents(service, found.collection, [given.corrected])
    return await truth.judge(question, given)


def _made(card: StudyQuestion) -> MadeQuestion:
    source = card.explanation
    passage = ExpectedPassage(**source.model_dump(include={*ExpectedPassage.model_fields}))
    return MadeQuestion(text=card.text, answer=card.answer, documents=[source.document_id], passages=[passage])


def _require_documents(service: Service, collection: str, expected: Iterable[ExpectedAnswer]) -> None:
    """Raises ApiProblem 422 for one that is not there."""
    snapshot = service.snapshot()
    for document in dict.fromkeys(document for each in expected for document in each.documents):
        if not holding_document(snapshot, collection, document):
            raise invalid_request(
                f"`documents`: the collection {collection!r} holds no {document[:200]!r}. Correct it."
            )
