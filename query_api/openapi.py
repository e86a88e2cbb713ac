"""The OpenAPI document: what FastAPI knows of the routes, and the problems each can answer with.

A route names its own problems (`responses=problem_responses(404)`); those that arise before any route are added here.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI

from query_api.errors import MEDIA_TYPE, PROBLEM
from query_api.middleware.auth import OPEN_PATHS, SAFE_METHODS
from schemas.api import Problem

DESCRIPTIONS = {
    400: "Malformed: no JSON, no UTF-8, a malformed token, cursor or header.",
    401: "The API key is missing or wrong.",
    403: "A web page of another origin may not write.",
    404: "Not found.",
    408: "A part of the body did not come in time.",
    409: "Conflicts with the present state.",
    410: "The snapshot of the cursor is gone.",
    413: "Too large, or too much in it.",
    414: "The address is too long.",
    415: "Unsupported media type.",
    421: "The service does not answer to this host name.",
    422: "Invalid; the detail says what.",
    429: "Too many requests of one caller.",
    501: "The service runs without the extra that this needs.",
    503: "Not now: a store or the log is unavailable, or too much is under way.",
}
RETRY_AFTER = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "string", "pattern": "^[0-9]+$"}}}


def describe(app: FastAPI) -> None:
    """Add the problems to the app's OpenAPI document."""
    made = app.openapi

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = with_problems(made(), with_key=app.state.needs_key)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # as FastAPI's own documentation has it


def with_problems(document: dict[str, Any], *, with_key: bool) -> dict[str, Any]:
    schemas = document["components"]["schemas"]
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            responses = operation["responses"]
            own = {int(status) for status, response in responses.items() if response.get("description") == PROBLEM}
            for status in sorted(own | set(_before_routes(path, method.upper(), operation, with_key=with_key))):
                responses[str(status)] = _response(status)
            operation["responses"] = dict(sorted(responses.items()))
    if with_key:
        document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"key": []}]
        for path in OPEN_PATHS:
            document["paths"][path]["get"]["security"] = []
    return document


def _before_routes(path: str, method: str, operation: dict[str, Any], *, with_key: bool) -> Iterator[int]:
    yield 400
    if path not in OPEN_PATHS:
        if with_key:
            yield 401
        else:
            yield 421
            if method not in SAFE_METHODS:
                yield 403
    if operation.get("parameters"):
        yield 414
    if "requestBody" in operation:
        yield from (408, 413)
    if path.startswith("/v1/"):
        yield from (422, 503)  # a parameter that does not fit, or that there is not; no room, or no store


def _response(status: int) -> dict[str, Any]:
    response: dict[str, Any] = {
        "description": DESCRIPTIONS.get(status, HTTPStatus(status).phrase),
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    return response | {"headers": RETRY_AFTER} if status in {429, 503} else response
