"""What stands before every route: who may ask, from where, how large a request may be, and by which parameters."""

import hmac
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from fastapi import Request
from fastapi._compat import ModelField
from fastapi.dependencies.models import Dependant
from pydantic import BaseModel
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from query_api.problems import ApiProblem, no_such_parameter
from query_api.settings import ServiceBlock

OPEN_PATHS = frozenset({"/livez", "/readyz"})
LARGE_BODY_PATHS = ("/v1/documents", "/v1/evaluations")
SMALL_BODY_BYTES = 256 * 1024
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Gate:
    """ASGI middleware. With an API key, every request but /livez and /readyz must carry it as a bearer token.

    Without one the service listens on loopback only, and web pages must be kept from reaching it through the browser
    of whoever sits there: requests must be addressed to a known host name (against DNS rebinding), and writes must not
    come from another origin.
    """

    def __init__(self, app: ASGIApp, settings: ServiceBlock) -> None:
        self._app = app
        self._key = None if settings.api_key is None else settings.api_key.get_secret_value().encode()
        self._hosts = frozenset(host.lower() for host in settings.allowed_hosts)
        self._max_request_bytes = settings.max_request_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        limit = self._max_request_bytes if scope["path"].startswith(LARGE_BODY_PATHS) else SMALL_BODY_BYTES
        try:
            self._check_caller(scope, headers)
            check_declared_length(headers, limit)
        except ApiProblem as problem:
            await problem.response()(scope, receive, send)
            return
        await self._app(scope, limited(receive, limit), send)

    def _check_caller(self, scope: Scope, headers: Headers) -> None:
        if scope["path"] in OPEN_PATHS:
            return
        if self._key is not None:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._key):
                raise ApiProblem(
                    401,
                    "Key needed",
                    "Send the service's API key: `Authorization: Bearer <key>`.",
                    headers={"WWW-Authenticate": "Bearer"},
                )
            return
        host = host_name(headers.get("host", ""))
        if host not in self._hosts:
            raise ApiProblem(
                421,
                "Unknown host name",
                f"This service does not answer to the name {host[:80]!r}. Use one of {', '.join(sorted(self._hosts))}, "
                "or add the name to THALWEG_SERVICE__ALLOWED_HOSTS.",
            )
        origin = headers.get("origin")
        if origin and scope["method"] not in SAFE_METHODS and urlsplit(origin).hostname not in self._hosts:
            raise ApiProblem(403, "Foreign origin", f"A page of {origin[:80]!r} may not write here.")


async def known_parameters(request: Request) -> None:
    """A dependency of every route: reads take no parameter that they do not know, which a misspelt filter would be.

    Probes are left alone: what scrapes them adds parameters of its own. Raises ApiProblem 422.
    """
    if request.method not in ("GET", "HEAD") or not request.url.path.startswith("/v1/"):
        return
    fields = list(_query_fields(request.scope["route"].dependant))
    if any(isinstance(field.field_info.annotation, type(BaseModel)) for field in fields):
        return  # a model, which refuses them itself
    unknown = next((name for name in request.query_params if name not in {field.alias for field in fields}), None)
    if unknown is not None:
        raise ApiProblem(422, "Request does not fit", no_such_parameter(unknown, request))


def _query_fields(dependant: Dependant) -> Iterator[ModelField]:
    yield from dependant.query_params
    for each in dependant.dependencies:
        yield from _query_fields(each)


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets, in lower case."""
    return (urlsplit(f"//{host}").hostname or "").lower()


def check_declared_length(headers: Mapping[str, str], limit: int) -> None:
    """Raises ApiProblem 413 for a body that says it is too large, before any of it is read."""
    declared = headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > limit:
        raise ApiProblem(413, "Request too large", _too_large(limit))


def limited(receive: Receive, limit: int) -> Receive:
    """`receive` that raises HTTPException 413 once the body has more than `limit` bytes."""
    taken = 0

    async def receive_within_limit() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > limit:
            raise HTTPException(413, _too_large(limit))
        return message

    return receive_within_limit


def _too_large(limit: int) -> str:
    return f"The body is over {limit:,} bytes. Send less at once, or raise THALWEG_SERVICE__MAX_REQUEST_BYTES."
