"""`/v1/evaluations`: the service evaluates itself on labelled questions about its documents."""

from collections.abc import AsyncGenerator
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import ValidationError

from query_api.errors import ApiProblem, problem_responses
from query_api.evaluation.approaches import Approach, approaches_named
from query_api.evaluation.datasets import LabelledDocument
from query_api.evaluation.in_process import Evaluations, search_request
from query_api.evaluation.judgements import LeftOut, unknown_documents, without_unknown
from query_api.evaluation.ranking_measures import require_ir_measures
from query_api.evaluation.results import ServiceFacts
from query_api.middleware import LargeModelRoute
from query_api.operations.jobs import JobRunning
from query_api.rerankers import HOW_TO_CONFIGURE
from query_api.routes.parameters import ServiceOf, of_app
from query_api.service_context import Service, not_ready
from query_api.sse.events import new_retrieval_id
from schemas.analytics import EvaluationList, EvaluationRequest, EvaluationState
from schemas.errors import WrongSetting
from schemas.frames import SearchFrame
from schemas.graph_documents import NODE_TYPE
from schemas.search import SearchRequest

router = APIRouter(tags=["evaluations"], route_class=LargeModelRoute)

PAGE_DOCUMENTS = 1_000
MAX_DOCUMENTS = 200_000
SHOWN = 5


EvaluationsOf = Annotated[Evaluations, of_app("evaluations")]


def create_evaluations(service: Service) -> Evaluations:
    """An app's evaluations, by its own search engine."""

    def search(request: SearchRequest, threads: ThreadPoolExecutor) -> AsyncGenerator[SearchFrame, None]:
        encoder = service.model.encoder
        if encoder is None:
            raise not_ready("The model is not loaded yet.")
        return service.engine.search(request, new_retrieval_id(), service.snapshot(), encoder, threads)

    def facts() -> ServiceFacts:
        served, encoder = service.snapshots.served, service.model.encoder
        return ServiceFacts(
            service.version,
            None if served is None else served.generation.name,
            None if encoder is None else encoder.model,
        )

    return Evaluations(
        search, lambda: service.admission.turn("an evaluation"), lambda: service.retriever.under_way > 0, facts
    )


@router.post(
    "/v1/evaluations",
    summary="Evaluate searches on labelled questions",
    status_code=202,
    responses=problem_responses(404, 409, 501),
)
async def begin_evaluation(
    asked: EvaluationRequest, service: ServiceOf, evaluations: EvaluationsOf, response: Response
) -> EvaluationState:
    """Every question is put in every approach, behind the searches of others; `GET` with the id reports its progress,
    and has the report when it is done. One at a time; the last twenty are kept until the service stops."""
    try:
        require_ir_measures()
    except WrongSetting as error:
        raise ApiProblem(501, "Evaluation not installed", str(error)) from error
    approaches = _approaches(asked, reranker=service.reranker is not None)
    documents = await _documents(service, asked)
    asked, left_out = await _judged(service, asked, {document.id for document in documents})
    try:
        state = evaluations.begin(asked, approaches, documents, left_out)
    except JobRunning as error:
        raise ApiProblem(
            409, "Another evaluation runs", "One evaluation runs at a time; GET /v1/evaluations reports its progress."
        ) from error
    response.headers["Location"] = f"/v1/evaluations/{state.id}"
    return state


@router.get("/v1/evaluations", summary="Evaluations, newest first")
async def list_evaluations(evaluations: EvaluationsOf) -> EvaluationList:
    return EvaluationList(evaluations=evaluations.listed())


@router.get(
    "/v1/evaluations/{evaluation_id}",
    summary="An evaluation, with its report once it is done",
    responses=problem_responses(404),
)
async def get_evaluation(evaluation_id: str, evaluations: EvaluationsOf) -> EvaluationState:
    state = evaluations.get(evaluation_id)
    if state is None:
        raise ApiProblem(
            404,
            "No such evaluation",
            f"There is no evaluation {evaluation_id[:80]!r}: the last twenty are kept until the service stops.",
        )
    return state


def _approaches(asked: EvaluationRequest, *, reranker: bool) -> tuple[Approach, ...]:
    try:
        approaches = approaches_named(asked.approaches)
    except WrongSetting as error:
        raise ApiProblem(422, "Unknown approach", str(error).replace("choose --approach from", "there are")) from error
    for approach in approaches:
        try:
            request = search_request(asked, asked.questions[0].text, approach)
        except ValidationError as error:
            raise ApiProblem(
                422, "Approach not offered", f"This service does not offer {approach.name!r}; leave it out."
            ) from error
        if request.reranker and not reranker:
            raise ApiProblem(422, "Approach not offered", f"{approach.name!r} is not offered. {HOW_TO_CONFIGURE}")
    return approaches


async def _documents(service: Service, asked: EvaluationRequest) -> list[LabelledDocument]:
    """The collection's documents, with the nodes that people made.

    Raises ApiProblem 404 for an empty one, 422 for too large a one, 503 while searches are not answered.
    """
    tables = (await service.snapshot_for(SearchRequest(q=asked.questions[0].text))).text
    found: list[LabelledDocument] = []
    for media_type in (None, NODE_TYPE):
        cursor: str | None = None
        while True:
            page = (asked.collection, cursor, PAGE_DOCUMENTS, media_type)
            rows, cursor = await service.read(partial(tables.list_documents, *page))
            found += (
                LabelledDocument(id=row.key.document_id, title=row.title, text=row.title, metadata=row.own_metadata)
                for row in rows
            )
            if cursor is None:
                break
            if len(found) > MAX_DOCUMENTS:
                raise ApiProblem(
                    422, "Collection too large", f"Evaluations take collections of up to {MAX_DOCUMENTS:,} documents."
                )
    if not found:
        raise ApiProblem(
            404, "No such collection", f"The collection {asked.collection!r} holds no document; load it first."
        )
    return found


async def _judged(
    service: Service, asked: EvaluationRequest, present: AbstractSet[str]
) -> tuple[EvaluationRequest, LeftOut | None]:
    """The request without judgements of documents that are not there, if it asks for that, and what that leaves out.

    Raises ApiProblem 422 with all of them where it does not, and where no question would be left.
    """
    absent = {document for question in asked.questions for document in question.relevant} - present
    if not absent:
        return asked, None
    left_out = without_unknown(asked.questions, present)
    if asked.unknown_documents == "leave_out" and left_out.kept:
        return asked.model_copy(update={"questions": left_out.kept}), left_out
    unknown = await service.read(lambda: unknown_documents(asked.questions, present))
    meant = [f" (did you mean {each.suggestions[0][:80]}?)" if each.suggestions else "" for each in unknown[:SHOWN]]
    shown = ", ".join(each.id[:80] + hint for each, hint in zip(unknown, meant, strict=False))
    more = f" and {len(absent) - SHOWN:,} more" if len(absent) > SHOWN else ""
    if left_out.kept:
        advice = "Correct or load them, or ask for `unknown_documents=leave_out` to measure without them."
    else:
        advice = "That leaves no question with a relevant document: is it the collection that the questions are about?"
    raise ApiProblem(
        422,
        "Unknown documents",
        f"{len(absent):,} judged {'document is' if len(absent) == 1 else 'documents are'} not in the collection "
        f"{asked.collection!r}: {shown}{more}. {advice}",
        members={"reason": "unknown_documents", "unknown_documents": [each.model_dump() for each in unknown]},
    )
