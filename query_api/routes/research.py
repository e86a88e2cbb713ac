"""`/v1/research`: a note with sources, after rounds of searches; `/v1/fact-checks`: what documents say of a claim."""

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

import structlog
from fastapi import APIRouter, Request, Response

from query_api.admission import FACT_CHECKS_PATH, RESEARCH_PATH, caller_of
from query_api.auth import check_access
from query_api.errors import invalid_request, known_problem, problem_responses, unforeseen
from query_api.ingest.intake import document_key
from query_api.middleware import DOCUMENTS_PATH, ModelRoute
from query_api.research.claims import compared
from query_api.research.investigation import ResearchFrame, investigate
from query_api.research.plan import decided_plan
from query_api.routes.collection_choice import saved_notes
from query_api.routes.document_writes import publish_json, trace_of
from query_api.routes.entities import catalogue_at, describer_of
from query_api.routes.parameters import ServiceOf
from query_api.routes.search import Origin, OriginOf, answer_for, unless_disconnected
from query_api.service_context import Service
from query_api.sse.events import EventId, encode_frame, new_retrieval_id
from query_api.sse.stream import accepts_events
from schemas.frames import EVENT_STREAM, NAMES, StreamError
from schemas.research import NOTE_URI, ClaimCheck, ClaimRequest, Research, ResearchRequest, SavedNote
from schemas.search import SearchRequest

router = APIRouter(tags=["research"], route_class=ModelRoute)
log = structlog.get_logger(__name__)

RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": Research,
        "description": "The note; as frames `step`…, `answer.citation` and `answer.delta`…, `done` for "
        "`Accept: text/event-stream`.",
        "content": {EVENT_STREAM: {}},
    },
    **problem_responses(403, 429),
}


@router.post(RESEARCH_PATH, summary="Research", response_class=Response, responses=RESPONSES)
async def research(request: Request, asked: ResearchRequest, service: ServiceOf, origin: OriginOf) -> Response:
    """A question taken apart, searched in rounds until nothing new comes, and written up: sentences of documents, word
    for word, each with its source, and what remained open."""
    research_id = f"i_{new_retrieval_id()[2:]}"
    frames = await begun_research(research_id, request, asked, service, origin)
    if accepts_events(request.headers.get("accept")):
        return service.streams.translated(_events(research_id, frames))
    return Response((await research_note(request, frames)).model_dump_json(), media_type="application/json")


async def begun_research(
    research_id: str, request: Request, asked: ResearchRequest, service: Service, origin: Origin
) -> AsyncGenerator[ResearchFrame]:
    """Its frames, with nothing done yet. Raises ApiProblem."""
    if asked.save:
        check_access(getattr(request.state, "access", "full"), "POST", DOCUMENTS_PATH)
        document_key(asked.save_to, research_id)
        if asked.save_to == asked.collection:
            raise invalid_request("`save_to`: a note would be evidence for the next; save it in another collection.")
    if asked.plan_form == "model":
        service.writer_for("plan_form")
    caller = caller_of(request)

    async def publish(envelope: dict[str, Any]) -> SavedNote:
        accepted = await publish_json(service, bytearray(json.dumps(envelope).encode()), trace_of(request))
        return SavedNote(token=accepted.token, id=envelope["id"], collection=envelope["collection"])

    notes = await service.read(lambda: saved_notes(service.snapshot(), asked.collection))
    return investigate(
        research_id,
        asked,
        lambda: decided_plan(asked.q, service.writer_for("plan_form"), origin.caller),
        lambda wanted: answer_for(caller, wanted, service, origin),
        lambda claim: checked(caller, ClaimRequest(claim=claim, collection=asked.collection), service, origin),
        publish,
        notes_left_out=bool(notes),
    )


async def research_note(request: Request, frames: AsyncGenerator[ResearchFrame]) -> Research:
    """The last of the frames. Raises ApiProblem, also where the client leaves."""

    async def last() -> ResearchFrame:
        async with aclosing(frames):
            return [frame async for frame in frames][-1]

    note = await unless_disconnected(request, last())
    if not isinstance(note, Research):
        raise TypeError("research ends with its note")
    return note


async def _events(research_id: str, frames: AsyncGenerator[ResearchFrame]) -> AsyncGenerator[bytes]:
    seq = 0
    try:
        async with aclosing(frames):
            async for frame in frames:
                yield encode_frame(EventId(research_id, seq), NAMES[type(frame)], frame)
                seq += 1
    except Exception as error:  # noqa: BLE001 -- edge of the stream: after 200 an error is its last frame
        problem = known_problem(error, RESEARCH_PATH) or unforeseen(error, "POST", RESEARCH_PATH)
        yield encode_frame(EventId(research_id, seq), "error", StreamError(title=problem.title, detail=problem.detail))


@router.post(FACT_CHECKS_PATH, summary="Check a claim", responses=problem_responses(429))
async def check_claim(request: Request, asked: ClaimRequest, service: ServiceOf, origin: OriginOf) -> ClaimCheck:
    """Whether documents state a claim or something that excludes it, with the sentences that decide. A claim that
    nothing decides is `not_found`, which is not to say that it is wrong."""
    return await unless_disconnected(request, checked(caller_of(request), asked, service, origin))


async def checked(caller: str, asked: ClaimRequest, service: Service, origin: Origin) -> ClaimCheck:
    """Raises ApiProblem."""
    snapshot, catalogue = await catalogue_at(service, None, None, 0)
    notes = await service.read(lambda: saved_notes(snapshot, asked.collection))
    filters = (f"uri!={NOTE_URI}",) if notes else ()
    search = SearchRequest(q=asked.claim, collection=asked.collection, filter=filters)
    found = await answer_for(caller, search, service, origin)
    describer = describer_of(snapshot, catalogue)
    return await service.read(lambda: compared(asked, found, snapshot, catalogue, describer, notes))
