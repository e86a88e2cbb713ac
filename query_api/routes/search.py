"""`/v1/search` and `/v1/answers`: JSON, or a stream of Server-Sent Events where the client accepts one."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeVar

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from pydantic import Field

from query_api.admission import ANSWERS_PATH, SEARCH_PATH, Turn, caller_of
from query_api.answers.follow_ups import complete_by_model, complete_question
from query_api.auth import owner_of
from query_api.errors import ApiProblem, invalid_request, problem_responses
from query_api.middleware import ModelRoute
from query_api.rerankers import HOW_TO_CONFIGURE
from query_api.retrieval.search_context import SearchFailed, check_names
from query_api.routes.parameters import ServiceOf
from query_api.saved.conversations import Finish, StoredConversation
from query_api.service_context import Service
from query_api.sse.events import EventId, new_retrieval_id
from query_api.sse.stream import accepts_events
from schemas.entities import AnswerSubgraph
from schemas.errors import MalformedFilter
from schemas.frames import EVENT_STREAM, Done, Meta
from schemas.hits import Hit, SearchAnswer
from schemas.openai_protocol import Message
from schemas.provenance import USAGE_HEADER
from schemas.search import SearchRequest
from schemas.tracing import TRACEPARENT, well_formed

if TYPE_CHECKING:
    from query_api.index.search_snapshot import Snapshot

router = APIRouter(tags=["search"], route_class=ModelRoute)

R = TypeVar("R")

STREAM_EXAMPLE = """event: meta
id: r_0193c1f0a2b4.0
data: {"retrieval_id": "r_0193c1f0a2b4…", "query": "…", "mode": "hybrid", "snapshot": {…}, "budget_seconds": 5.0}

event: stage
id: r_0193c1f0a2b4.1
data: {"name": "vector", "seconds": 0.012, "candidates": 50}

event: hit
id: r_0193c1f0a2b4.2
data: {"rank": 1, "chunk_id": "…", "document_id": "pep-0008", "title": "…", "text": "…", …}

event: done
id: r_0193c1f0a2b4.3
data: {"retrieval_id": "r_0193c1f0a2b4…", "hits": 1, "timings": {…}, "next_offset": null}

"""

RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "model": SearchAnswer,
        "description": "For `Accept: text/event-stream` frames `meta`, `stage`…, `hit`…, `subgraph`, `done`.",
        "content": {EVENT_STREAM: {"schema": {"type": "string"}, "example": STREAM_EXAMPLE}},
    },
    204: {"description": "`Last-Event-ID` is that of the last frame: nothing follows; do not reconnect."},
    **problem_responses(410, 429),
}

ANSWERED = (
    "The answer and the hits; as frames `meta`, `stage`…, `hit`…, `answer.citation` and `answer.delta`…, `done` for "
    "`Accept: text/event-stream`. `answer.refused` where nothing that was found answers."
)

LastEventId = Annotated[
    str | None, Header(description="The id of the last frame that came: the stream continues after it.")
]

UsageHeader = Annotated[
    Literal["none"] | None,
    Header(
        alias=USAGE_HEADER, description="`none`: analytics leave the search out; provenance records it all the same."
    ),
]


class Origin(NamedTuple):
    """What is recorded of a request, `caller` being what its key may do, and what is called with its end."""

    traceparent: str | None
    counted: bool
    caller: str
    finish: Finish | None = None


def origin_of(request: Request, usage: UsageHeader = None) -> Origin:
    caller = getattr(request.state, "access", "anyone")
    return Origin(well_formed(request.headers.get(TRACEPARENT)), counted=usage is None, caller=caller)


OriginOf = Annotated[Origin, Depends(origin_of)]


@router.get(SEARCH_PATH, summary="Search", response_class=Response, responses=RESPONSES)
async def search_by_query(
    request: Request,
    search: Annotated[SearchRequest, Query()],
    service: ServiceOf,
    origin: OriginOf,
    last_event_id: LastEventId = None,
) -> Response:
    """Hits in rank order, with each channel's score, the path by which the graph found them, and their source."""
    return await _answer(request, search, service, origin, last_event_id)


@router.post(SEARCH_PATH, summary="Search, with the question in the body", response_class=Response, responses=RESPONSES)
async def search_by_body(
    request: Request, search: SearchRequest, service: ServiceOf, origin: OriginOf, last_event_id: LastEventId = None
) -> Response:
    """The same as GET."""
    return await _answer(request, search, service, origin, last_event_id)


class AnswerRequest(SearchRequest):
    """A search whose answer is asked for."""

    answer: Literal[True] = Field(True, description="Always.")
    conversation: str | None = Field(
        None,
        max_length=64,
        description="The id of a conversation of `/v1/conversations`: the question may follow those before it there, "
        "is searched for in its scope, and is kept there with its answer.",
    )


@router.post(
    ANSWERS_PATH,
    summary="Answer",
    response_class=Response,
    responses=RESPONSES | {200: RESPONSES[200] | {"description": ANSWERED}} | problem_responses(403, 404, 409, 507),
)
async def answer(
    request: Request, search: AnswerRequest, service: ServiceOf, origin: OriginOf, last_event_id: LastEventId = None
) -> Response:
    """A search with `answer`: sentences of the first hits that answer the question, word for word, or written by a
    language model from them, each with its sources; or that nothing which was found does, and what would be needed."""
    resumed = EventId.parse(last_event_id or "")
    plain, origin = await in_conversation(request, search, service, origin, resumed and resumed.retrieval_id)
    return await _answer(request, plain, service, origin, last_event_id)


async def in_conversation(
    request: Request,
    asked: AnswerRequest,
    service: Service,
    origin: Origin,
    resumed: str | None = None,
    before: Sequence[Message] = (),
) -> tuple[SearchRequest, Origin]:
    """The search to make, complete in itself after the messages `before` it, and what is called with its end; where a
    conversation is named, those of that, see `StoredConversation.asking`."""

    async def complete(question: str, before: Sequence[Message]) -> str:
        if asked.answer_form != "model" or service.answer_writer is None:
            return complete_question(question, before)
        return await complete_by_model(question, before, service.answer_writer, origin.caller)

    chosen = asked.model_dump(exclude={"conversation", "answer"}, exclude_unset=True)
    search = SearchRequest(**chosen, answer=True)
    if asked.conversation is None:
        return search.model_copy(update={"q": await complete(search.q, before)}), origin
    conversation = await StoredConversation.find(service.saved, await owner_of(request), asked.conversation)
    current = service.snapshots.current
    graph = None if current is None else current.graph
    search, finish = await conversation.asking(search, graph, complete, resumed)
    return search, origin._replace(finish=finish)


async def _answer(
    request: Request, search: SearchRequest, service: Service, origin: Origin, last_event_id: str | None
) -> Response:
    if not accepts_events(request.headers.get("accept")):
        answer = await answer_search(request, search, service, origin)
        return Response(answer.model_dump_json(by_alias=True), media_type="application/json")
    resumed = service.streams.resumable(last_event_id, search)
    if resumed is not None and resumed[0].ended_with(resumed[1]):
        return Response(status_code=204)  # which ends the reconnecting of an EventSource
    if resumed is not None and resumed[0].started:
        return service.streams.response(*resumed)
    async with begun(request, search, service) as (turn, snapshot):
        stream, after_seq = resumed or (
            service.streams.begin(search, snapshot, instead_of=last_event_id, **origin._asdict()),
            -1,
        )
        return service.streams.response(stream, after_seq, turn)


@asynccontextmanager
async def begun(request: Request, search: SearchRequest, service: Service) -> AsyncIterator[tuple[Turn, "Snapshot"]]:
    """Once it is the search's turn: that, which the stream made within is to end, and the snapshot to read. Raises
    ApiProblem, also where the client leaves."""
    turn = _turn(caller_of(request), search, service)
    try:
        yield turn, await unless_disconnected(request, _snapshot_in_turn(search, service, turn))
    except BaseException:
        turn.end()
        raise


async def answer_search(request: Request, search: SearchRequest, service: Service, origin: Origin) -> SearchAnswer:
    """As `answer_for`. Raises ApiProblem, also where the client leaves."""
    return await unless_disconnected(request, answer_for(caller_of(request), search, service, origin))


async def answer_for(caller: str, search: SearchRequest, service: Service, origin: Origin) -> SearchAnswer:
    """The whole answer, once it is the search's turn. Raises ApiProblem."""
    with _turn(caller, search, service) as turn:
        return await _answer_in_turn(search, service, turn, origin)


def _turn(caller: str, search: SearchRequest, service: Service) -> Turn:
    """Enqueued at once, unless the search waits for a write. Raises SearchRefused."""
    turn = service.admission.turn(caller)
    if search.after is None:
        turn.enqueue()
    return turn


async def _snapshot_in_turn(search: SearchRequest, service: Service, turn: Turn) -> "Snapshot":
    """The snapshot to read, once the search is admitted. Raises ApiProblem where the request names fields, edges or a
    model that there are not."""
    if search.reranker and service.reranker is None:
        raise invalid_request(HOW_TO_CONFIGURE)
    if search.answer_form == "model":
        service.writer_for("answer_form")
    if search.after is not None:
        await service.snapshot_for(search)
    await turn.begin()
    snapshot = await service.snapshot_for(search)
    if search.filter or search.edges or search.facets or search.diversity or search.sort:
        try:
            await service.read(lambda: check_names(search, snapshot))
        except MalformedFilter as error:
            raise invalid_request(str(error)) from error
    return snapshot


async def _answer_in_turn(search: SearchRequest, service: Service, turn: Turn, origin: Origin) -> SearchAnswer:
    snapshot = await _snapshot_in_turn(search, service, turn)
    searched = partial(turn.end, answered=True)
    answer = await _collect_answer(search, service, snapshot, origin, searched)
    searched()
    if origin.finish is not None:
        answer.notes = [*answer.notes, *await origin.finish(answer)]
    return answer


async def _collect_answer(
    search: SearchRequest, service: Service, snapshot: "Snapshot", origin: Origin, searched: Callable[[], None]
) -> SearchAnswer:
    hits: list[Hit] = []
    parts: dict[str, Any] = {"hits": hits}
    try:
        trace, counted, caller, _ = origin
        retrieving = service.retriever.retrieve(
            search, new_retrieval_id(), snapshot, traceparent=trace, counted=counted, caller=caller, searched=searched
        )
        async with aclosing(retrieving) as frames:
            async for frame in frames:
                match frame:
                    case Hit():
                        hits.append(frame)
                    case AnswerSubgraph():
                        parts["subgraph"] = frame
                    case Meta() | Done():
                        parts = {**dict(frame), **parts}
    except SearchFailed as error:
        raise ApiProblem(503, "Search not answered", str(error), retry_after_seconds=2) from error
    if not {"snapshot", "timings"} <= parts.keys():
        raise RuntimeError("a search begins with Meta and ends with Done")
    return SearchAnswer(**{name: parts[name] for name in SearchAnswer.model_fields if name in parts})


async def unless_disconnected(request: Request, work: Awaitable[R]) -> R:
    """The result of the work, which is cancelled when the client goes away first."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.create_task(_until_disconnected(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ApiProblem(499, "Client left", "The client closed the connection before the answer was ready.")
        return working.result()
    finally:
        leaving.cancel()
        working.cancel()


async def _until_disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
