"""OpenAI's protocol: `/v1/chat/completions`, `/v1/responses`, `/v1/models`. The answer is that of `/v1/answers`."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from query_api.answers.answer import frames_of
from query_api.answers.cited_text import CitedText
from query_api.answers.openai_forms import ChatCompletion, ResponseObject
from query_api.errors import ApiProblem, invalid_request, invalid_values, problem_responses
from query_api.middleware import LargeModelRoute
from query_api.routes.parameters import ServiceOf
from query_api.routes.search import AnswerRequest, OriginOf, answer_search, begun, in_conversation
from query_api.service_context import Service
from schemas import openai_protocol as protocol
from schemas.frames import EVENT_STREAM, Done, SearchFrame, StreamError
from schemas.hits import SearchAnswer
from schemas.search import MAX_QUERY_CHARACTERS, SearchRequest

router = APIRouter(tags=["OpenAI's protocol"], route_class=LargeModelRoute)

Form = ChatCompletion | ResponseObject
READ_TYPES = ("text", "input_text")
RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/json": {"schema": {"type": "object"}}, EVENT_STREAM: {}}},
    **problem_responses(404, 429),
}


@router.get(protocol.MODELS_PATH, summary="The models of OpenAI's protocol")
async def list_models() -> dict[str, Any]:
    """`thalweg` answers with sentences of documents, or has a language model write from them where it is asked to."""
    model = {"id": protocol.MODEL, "object": "model", "created": 0, "owned_by": protocol.MODEL}
    return {"object": "list", "data": [model]}


@router.post(protocol.CHAT_PATH, summary="Answer in a chat", response_class=Response, responses=RESPONSES)
async def chat(request: Request, asked: protocol.ChatRequest, service: ServiceOf, origin: OriginOf) -> Response:
    """The last message of the user is searched for and answered as by `/v1/answers`, with links to the sources."""
    return await _respond(request, asked, asked.messages, service, origin, ChatCompletion())


@router.post(protocol.RESPONSES_PATH, summary="Answer with a response", response_class=Response, responses=RESPONSES)
async def respond(request: Request, asked: protocol.ResponsesRequest, service: ServiceOf, origin: OriginOf) -> Response:
    """As `/v1/chat/completions`, in the protocol's newer form."""
    said = [protocol.Message(role="user", content=asked.input)] if isinstance(asked.input, str) else asked.input
    return await _respond(request, asked, said, service, origin, ResponseObject())


def question_of(
    asked: protocol.ModelRequest, messages: Sequence[protocol.Message]
) -> tuple[AnswerRequest, Sequence[protocol.Message]]:
    """What answers the last message of the user, and the messages before it. Raises ApiProblem."""
    if asked.model != protocol.MODEL:
        detail = f"`model`: there is no {asked.model[:80]!r} here; ask for {protocol.MODEL!r}."
        raise ApiProblem(404, "Unknown model", detail, members={"reason": "model_not_found"})
    at = max((at for at, message in enumerate(messages) if message.role == "user"), default=None)
    if at is None or not (question := messages[at].text):
        raise invalid_request("`messages`: the user says nothing in them; send a message of the role user, with text.")
    parts = messages[at].content
    if isinstance(parts, list) and (unread := [part.type for part in parts if part.type not in READ_TYPES]):
        raise invalid_request(f"`messages.{at}.content`: only text is read here; leave out {unread[0][:80]!r}.")
    if len(question) > MAX_QUERY_CHARACTERS:
        advice = "Put longer texts into a collection, and ask about them."
        raise invalid_request(f"`messages.{at}.content`: over {MAX_QUERY_CHARACTERS:,} characters. {advice}")
    if said := (asked.thalweg or {}).keys() & {"q", "answer"}:
        raise invalid_request(f"`thalweg.{min(said)}`: that follows from the messages; leave it out.")
    try:
        return AnswerRequest(**(asked.thalweg or {}), q=question), messages[:at]
    except ValidationError as error:
        wrong = [each | {"loc": ("body", "thalweg", *each["loc"])} for each in error.errors()]
        raise invalid_values(wrong, "its options are those of /v1/answers") from error


async def _respond(
    request: Request,
    asked: protocol.ModelRequest,
    messages: Sequence[protocol.Message],
    service: Service,
    origin: OriginOf,
    form: Form,
) -> Response:
    question, before = question_of(asked, messages)
    search, origin = await in_conversation(request, question, service, origin, before=before)
    cited = CitedText(str(request.base_url))
    if not asked.stream:
        found = await answer_search(request, search, service, origin)
        for part in (*frames_of(found.answer), found):
            cited.add(part)
        return JSONResponse(form.whole(cited, _about(search, found)))
    async with begun(request, search, service) as (turn, snapshot):
        recorded = service.streams.begin(search, snapshot, instead_of=None, **origin._asdict())
        frames = service.streams.searched(recorded, turn)
        return service.streams.translated(_events(frames, search, cited, form), turn)


async def _events(
    frames: AsyncGenerator[SearchFrame | StreamError], search: SearchRequest, cited: CitedText, form: Form
) -> AsyncGenerator[bytes]:
    for event in form.begin():
        yield event
    async with aclosing(frames):
        async for frame in frames:
            piece = cited.add(frame)
            events = [] if piece is None else [*form.piece(piece)]
            if isinstance(frame, Done):
                events += form.end(cited, _about(search, frame))
            elif isinstance(frame, StreamError):
                events += form.error(frame.detail)
            for event in events:
                yield event


def _about(search: SearchRequest, found: SearchAnswer | Done) -> dict[str, Any]:
    """What the protocol has no field for."""
    shown = {"form", "confidence", "refused", "dropped", "usage"}
    answered = {} if found.answer is None else found.answer.model_dump(include=shown)
    return {"query": search.q, "retrieval_id": found.retrieval_id, "notes": found.notes, **answered}
