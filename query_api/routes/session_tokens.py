"""`/v1/session-tokens`: tokens for pages, whose EventSource cannot send a key."""

from fastapi import APIRouter, Response

from query_api.auth import SESSION_TOKENS_PATH, ApiKeys
from query_api.errors import ApiProblem, problem_responses
from query_api.routes.parameters import ServiceOf
from schemas.session_tokens import SessionToken

router = APIRouter(tags=["operations"])


@router.post(SESSION_TOKENS_PATH, summary="A token for a page's streams", responses=problem_responses(409))
async def post_session_token(service: ServiceOf, response: Response) -> SessionToken:
    """Either key gets one that reads for THALWEG_SERVICE__SESSION_TOKEN_SECONDS. It is sent as `access_token` with
    streams, or as a bearer token."""
    keys = ApiKeys.from_settings(service.settings.service)
    if keys is None:
        raise ApiProblem(
            409, "No key needed", "This service has no API key, so nothing needs a token: read it without one."
        )
    response.headers["Cache-Control"] = "no-store"
    return SessionToken(access_token=keys.issue_token(), expires_in=keys.session_seconds)
