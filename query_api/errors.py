"""Errors as problem+json (RFC 9457): every answer that is not a success says what to do."""

import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, cast

import msgspec
import structlog
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from indexer.errors import DamagedStore, TransientStoreError
from schemas.cursors import MalformedCursor
from schemas.errors import MalformedEvent
from schemas.openai_protocol import BAD_REQUESTS, OPENAI_PATHS, ErrorBody
from schemas.refusals import explanation_fields, is_explained

MEDIA_TYPE = "application/problem+json"
DAMAGED_RETRY_SECONDS = 60  # until it is repaired
PROBLEM = "A problem"
MAX_SENTENCES = 10
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

log = structlog.get_logger(__name__)

_STATUS_BY_REASON = {
    "not_json": HTTPStatus.BAD_REQUEST,
    "too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "metadata_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "title_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "uri_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "links_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "content_type_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "unknown_media_type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
}


class ApiProblem(Exception):
    """An answer that is a problem: status, a short title, a sentence for the caller, and members of its own."""

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        *,
        retry_after_seconds: int | None = None,
        headers: Mapping[str, str] | None = None,
        members: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.members = dict(members or {})
        self.headers = dict(headers or {})
        if retry_after_seconds is not None:
            self.headers["Retry-After"] = str(retry_after_seconds)

    def body(self) -> dict[str, Any]:
        return {
            "type": "about:blank",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            **self.members,
        }

    def response(self) -> Response:
        return _ProblemResponse(self)

    def openai_error(self) -> ErrorBody:
        """The same for OpenAI's clients; `param` is what the sentence begins with in backticks."""
        kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
        kind = kinds.get(self.status, "server_error" if self.status >= 500 else "invalid_request_error")
        named = re.match(r"`([\w.]+)`", self.detail)
        code = "invalid_api_key" if self.status == 401 else self.members.get("reason")
        return ErrorBody(error={"message": self.detail, "type": kind, "param": named and named[1], "code": code})


class _ProblemResponse(Response):
    """In the form that clients of the path read."""

    def __init__(self, problem: ApiProblem) -> None:
        super().__init__(msgspec.json.encode(problem.body()), problem.status, problem.headers, MEDIA_TYPE)
        self._problem = problem

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] in OPENAI_PATHS:
            status = 400 if self.status_code in BAD_REQUESTS else self.status_code
            body = self._problem.openai_error().model_dump_json()
            await Response(body, status, self._problem.headers, "application/json")(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


class AnotherLog(Exception):
    """The stores were filled from another log than the one that would be written to, which may be that of another
    installation: nothing was written. The message is a sentence for the caller."""


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The problems a route can answer with, as its `responses`; `query_api/app.py` says what they hold."""
    return {status: {"description": PROBLEM} for status in statuses}


def invalid_request(detail: str, reason: str = "") -> ApiProblem:
    return ApiProblem(422, "Invalid request", detail, members={"reason": reason} if reason else None)


def conflict(detail: str) -> ApiProblem:
    return ApiProblem(409, "Conflict", detail)


def refused_event(error: MalformedEvent) -> ApiProblem:
    """A document that the worker would refuse, refused before it is published, with the worker's message."""
    status = _STATUS_BY_REASON.get(error.reason, HTTPStatus.UNPROCESSABLE_ENTITY)
    return ApiProblem(status, "Document refused", str(error), members=explained(error.reason))


def explained(reason: str) -> dict[str, str]:
    """The members of a problem that say why a document was refused, for programs and for people."""
    return explanation_fields(reason) if is_explained(reason) else {"reason": reason}


def log_unavailable(detail: str) -> ApiProblem:
    """Kafka does not answer, so nothing was read or written."""
    return ApiProblem(503, "Kafka unavailable", detail, retry_after_seconds=5, members={"reason": "unavailable"})


def unknown_parameter(name: str, listing: str) -> str:
    return f"There is no parameter {name[:80]!r}; {listing}."


def install_problem_handlers(app: FastAPI) -> None:
    """Make every error of the app a problem: our own, validation, unknown routes and methods, and any other."""
    for known in _PROBLEM_OF:
        app.add_exception_handler(known, _on_known_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_middleware(InternalErrorMiddleware)


class InternalErrorMiddleware:
    """ASGI middleware. Any other exception becomes a problem with status 500, where the answer has not begun.

    A handler for `Exception` would answer outside all middleware, so without the headers by which the pages of other
    origins may read it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def watch(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, watch)
        except Exception as error:
            if scope["type"] != "http" or has_begun:
                raise
            await unforeseen(error, scope["method"], scope["path"]).response()(scope, receive, send)


_PROBLEM_OF: dict[type[Exception], Callable[[Any], ApiProblem]] = {
    ApiProblem: lambda error: error,
    AnotherLog: lambda error: ApiProblem(503, "Another log", str(error), members={"reason": "another_log"}),
    MalformedCursor: lambda error: ApiProblem(400, "Malformed cursor", str(error)),
    TransientStoreError: lambda error: ApiProblem(
        503, "Store unavailable", f"{error}. Try again in a while.", retry_after_seconds=2
    ),
    DamagedStore: lambda error: ApiProblem(503, "Store damaged", str(error), retry_after_seconds=DAMAGED_RETRY_SECONDS),
}


def known_problem(error: Exception, path: str) -> ApiProblem | None:
    """The problem that an exception is, logged where a store is at fault; None for one that nobody foresaw."""
    if isinstance(error, TransientStoreError):
        log.warning("store unavailable", path=path, reason=str(error))
    elif isinstance(error, DamagedStore):
        log.error("store damaged", path=path, reason=str(error))
    return next((make(error) for known, make in _PROBLEM_OF.items() if isinstance(error, known)), None)


def unforeseen(error: Exception, method: str, path: str) -> ApiProblem:
    log.error("internal error", method=method, path=path, exc_info=error)
    return ApiProblem(500, "Internal error", "Something broke in the service; its log holds the trace. Try again.")


async def _on_known_error(request: Request, error: Exception) -> Response:
    return cast("ApiProblem", known_problem(error, request.url.path)).response()


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    problems = cast("RequestValidationError", error).errors()
    if any(problem["type"] == "json_invalid" for problem in problems):
        return ApiProblem(
            400, "Not JSON", f"The body is not JSON: {problems[0].get('ctx', {}).get('error', 'it does not parse')}."
        ).response()
    return invalid_values(problems, f"/docs lists those of {request.url.path}").response()


def invalid_values(problems: Sequence[Any], listing: str) -> ApiProblem:
    """A sentence for each of pydantic's errors, whose `loc` begins with where it was sent; `listing` ends another."""
    detail = " ".join(_sentence(problem, listing) for problem in problems[:MAX_SENTENCES])
    if len(problems) > MAX_SENTENCES:
        detail += f" And {len(problems) - MAX_SENTENCES:,} more."
    return invalid_request(detail)


async def _on_http_error(request: Request, error: Exception) -> Response:
    error = cast("HTTPException", error)
    path = request.url.path
    detail = str(error.detail)
    if error.status_code == HTTPStatus.NOT_FOUND:
        detail = f"There is nothing at {path}; /docs lists every route."
    elif error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        allowed = _methods_of(request)
        detail = f"{path} does not take {request.method}; it takes {allowed}."
        return ApiProblem(405, "Method not allowed", detail, headers={"Allow": allowed}).response()
    elif isinstance(error.__cause__, RecursionError):
        return ApiProblem(400, "Not JSON", "The body is nested too deeply to be read: send fewer levels.").response()
    elif isinstance(error.__cause__, UnicodeDecodeError):
        return ApiProblem(400, "Not JSON", "The body cannot be read as UTF-8, which JSON is in: send that.").response()
    title = HTTPStatus(error.status_code).phrase
    return ApiProblem(error.status_code, title, detail, headers=error.headers).response()


def _methods_of(request: Request) -> str:
    """The methods of the routes at this path."""

    def takes(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)

    return ", ".join(method for method in METHODS if takes(method)) or "other methods"


def _sentence(problem: Mapping[str, Any], listing: str) -> str:
    where = ".".join(str(part) for part in problem["loc"][1:]) or "body"
    if problem["type"] == "extra_forbidden":
        return unknown_parameter(where, listing)
    if problem["type"] in {"model_attributes_type", "dict_type"} and where == "body":
        return "The body is to be a JSON object, sent with `Content-Type: application/json`."
    if problem["type"] == "missing":
        return f"`{where}` is missing."
    message = problem["msg"].removeprefix("Value error, ").rstrip(".")
    if problem["type"] == "value_error" and len(problem["loc"]) == 1:  # of the request as a whole
        return f"{message}."
    return f"`{where}`: {message}{_given(problem.get('input'))}."


def _given(value: object) -> str:
    if value is None or (isinstance(value, Mapping | Sequence) and not isinstance(value, str)):
        return ""
    shown = str(value)
    return f" (it is {shown[:60]!r}{'…' if len(shown) > 60 else ''})"
