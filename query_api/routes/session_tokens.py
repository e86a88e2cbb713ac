"""`/v1/session-tokens` and `/v1/stream-tickets`: what pages read with, that need not hold a key."""

from typing import cast
from urllib.parse import unquote

from fastapi import APIRouter, Request, Response

from query_api.auth import SESSION_TOKENS_PATH, ApiKeys, KeyAccess
from query_api.errors import ApiProblem, problem_responses
from query_api.routes.parameters import ServiceOf
from query_api.stream_tickets import STREAM_TICKETS_PATH, TICKET_SECONDS, StreamTickets
from schemas.session_tokens import SessionToken, StreamTicket, TicketRequest

router = APIRouter(tags=["operations"])


@router.post(SESSION_TOKENS_PATH, summary="A token for a page that reads", responses=problem_responses(409))
async def post_session_token(request: Request, service: ServiceOf, response: Response) -> SessionToken:
    """Either key gets one that reads for ten minutes, sent as a bearer token. It ends when
    that key is changed."""
    keys = ApiKeys.from_settings(service.settings.service)
    if keys is None:
        raise _no_key_needed("token")
    response.headers["Cache-Control"] = "no-store"
    access = cast("KeyAccess", request.state.access)  # no session token comes here
    return SessionToken(access_token=keys.issue_token(access), expires_in=keys.session_seconds)


@router.post(STREAM_TICKETS_PATH, summary="A ticket for one stream", responses=problem_responses(409))
async def post_stream_ticket(
    request: Request, wanted: TicketRequest, service: ServiceOf, response: Response
) -> StreamTicket:
    """For an EventSource, which sends no headers: a key or a session token gets one. As the parameter `ticket` it opens
    one stream at this path, once, within ten seconds."""
    if service.settings.service.api_key is None:
        raise _no_key_needed("ticket")
    response.headers["Cache-Control"] = "no-store"
    tickets: StreamTickets = request.app.state.stream_tickets
    return StreamTicket(ticket=tickets.issue(unquote(wanted.path)), path=wanted.path, expires_in=TICKET_SECONDS)


def _no_key_needed(what: str) -> ApiProblem:
    return ApiProblem(
        409, "No key needed", f"This service has no API key, so nothing needs a {what}: read it without one."
    )
