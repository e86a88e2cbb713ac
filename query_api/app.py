"""The ASGI application of the query service."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any

from fastapi import Depends, FastAPI
from fastapi_offline import FastAPIOffline
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Route

from query_api.admission import AdmissionMiddleware
from query_api.auth import MCP_PATH, SAFE_METHODS, only_reads
from query_api.entities.review_queue import Reviews
from query_api.errors import MEDIA_TYPE, PROBLEM, install_problem_handlers
from query_api.installation import InstallationMiddleware
from query_api.mcp.server import SERVER, McpEndpoint
from query_api.middleware import (
    ENVELOPE_FACTOR,
    MAX_REQUEST_BYTES,
    OPEN_PATHS,
    REQUEST_BYTES_AT_ONCE,
    AuthMiddleware,
    BodySizeMiddleware,
)
from query_api.operations.backup_jobs import Backups
from query_api.routes import (
    analytics,
    backups,
    chat,
    collection_settings,
    collections,
    communities,
    console,
    conversations,
    dead_letters,
    document_writes,
    documents,
    entities,
    evaluations,
    fields,
    generations,
    graph,
    ground_truth,
    nodes,
    operations,
    paths,
    replays,
    research,
    retrievals,
    reviews,
    search,
    session_tokens,
    study,
)
from query_api.routes.parameters import refuse_unknown_parameters
from query_api.service_context import Service
from query_api.service_health import gauges
from query_api.settings import ServiceSettings
from query_api.stream_tickets import TICKET, StreamTickets
from schemas.api import Problem
from schemas.frames import EVENT_STREAM
from schemas.openai_protocol import BAD_REQUESTS, OPENAI_PATHS, ErrorBody
from schemas.runtime import INSTALLATION_HEADER, installation_of

# beside what any page may read
EXPOSED_HEADERS = ("Allow", "ETag", "Location", "Retry-After", INSTALLATION_HEADER, "WWW-Authenticate")

DESCRIPTION = """Documents in on Kafka, hybrid search out over Server-Sent Events.

Every write returns a **token**; a search with `after` set to it shows at least that write, or says that it is not there
yet. Errors are problem+json (RFC 9457). Where a service has an API key, send it as a bearer token.
"""


def create_app(settings: ServiceSettings, **parts: Any) -> FastAPI:
    """The app with these settings, and with the parts that are given to its `Service`."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = Service(settings, **parts)
        service.metrics.add_gauges(partial(gauges, service))
        jobs: dict[str, Any] = {
            "evaluations": evaluations.create_evaluations(service),
            "redrives": dead_letters.create_redrives(service),
            "reviews": Reviews(
                lambda snapshot: service.catalogues.of(snapshot.graph, snapshot.curation), lambda: service.model.encoder
            ),
            "backups": Backups(settings.storage.data_dir),
        }
        for name, part in {"service": service, **jobs}.items():
            setattr(app.state, name, part)
        try:
            yield
        finally:
            for each in jobs.values():
                await each.stop()
            await service.aclose()

    app = FastAPIOffline(
        redoc_url=None,
        static_url="/docs/static",
        swagger_ui_parameters={"validatorUrl": None},  # else the page asks a validator on the internet
        title="Thalweg",
        version="1",
        summary="Hybrid search over a stream of documents.",
        description=DESCRIPTION,
        lifespan=lifespan,
    )
    install_problem_handlers(app)
    largest = max(MAX_REQUEST_BYTES, int(ENVELOPE_FACTOR * settings.limits.max_document_bytes))
    app.add_middleware(BodySizeMiddleware, max_request_bytes=largest, bytes_at_once=REQUEST_BYTES_AT_ONCE)
    app.add_middleware(AdmissionMiddleware)
    app.state.stream_tickets = StreamTickets()
    app.add_middleware(AuthMiddleware, settings=settings.service, tickets=app.state.stream_tickets)
    app.add_middleware(InstallationMiddleware, installation=installation_of(settings.storage.data_dir))
    if settings.service.cors_origins:  # the outermost: browsers ask before they send, and read refusals too
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.service.cors_origins,
            allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE"),
            allow_headers=("*",),
            allow_private_network=True,  # pages of the internet that were named may ask a service in a local network
            expose_headers=EXPOSED_HEADERS,
        )
    for routes in (
        search,
        chat,
        conversations,
        research,
        document_writes,
        documents,
        collections,
        collection_settings,
        fields,
        graph,
        entities,
        nodes,
        communities,
        dead_letters,
        generations,
        backups,
        replays,
        operations,
        paths,
        evaluations,
        ground_truth,
        retrievals,
        reviews,
        analytics,
        session_tokens,
        study,
    ):
        app.include_router(routes.router, dependencies=[Depends(refuse_unknown_parameters)])
    app.include_router(console.router)
    app.router.routes.append(Route(MCP_PATH, McpEndpoint(SERVER), methods=["POST"]))
    app.state.needs_key = settings.service.api_key is not None
    describe(app)
    return app


DESCRIPTIONS = {
    400: "Malformed: no JSON, no UTF-8, a malformed token, cursor or header.",
    401: "The API key is missing or wrong.",
    403: "A web page of another origin, or a key that only reads, may not write.",
    404: "Not found.",
    408: "A part of the body did not come in time.",
    409: "Conflicts with the present state.",
    410: "The snapshot that the cursor or `as_of` asks for is gone.",
    413: "Too large, or too much in it.",
    414: "The address is too long.",
    415: "Unsupported media type.",
    421: "The service does not answer to this host name, or is not of the installation that the request names.",
    422: "Invalid; the detail says what.",
    429: "Too many requests of one caller.",
    501: "The service runs without the extra that this needs.",
    503: "Not now: a store or the log is unavailable, or too much is under way.",
    507: "Too little room.",
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
    schemas |= {model.__name__: model.model_json_schema() for model in (Problem, ErrorBody)}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            responses = operation["responses"]
            own = {int(status) for status, response in responses.items() if response.get("description") == PROBLEM}
            for status in sorted(own | set(_before_routes(path, method.upper(), operation, with_key=with_key))):
                responses.pop(str(status), None)
                if path not in OPENAI_PATHS or status not in BAD_REQUESTS:
                    responses[str(status)] = _response(status, path)
            operation["responses"] = dict(sorted(responses.items()))
    if with_key:
        document["components"]["securitySchemes"] = {
            "key": {"type": "http", "scheme": "bearer", "description": "A key, or a session token to read."},
            "ticket": {"type": "apiKey", "in": "query", "name": TICKET, "description": "Opens one stream, once."},
        }
        document["security"] = [{"key": []}]
        for methods in document["paths"].values():
            if EVENT_STREAM in methods.get("get", {}).get("responses", {}).get("200", {}).get("content", {}):
                methods["get"]["security"] = [{"key": []}, {"ticket": []}]
        for path in OPEN_PATHS:
            document["paths"][path]["get"]["security"] = []
    return document


def _before_routes(path: str, method: str, operation: dict[str, Any], *, with_key: bool) -> Iterator[int]:
    yield from (400, 421)
    if path not in OPEN_PATHS:
        if with_key:
            yield 401
        if not (only_reads(method, path) if with_key else method in SAFE_METHODS):
            yield 403
    if operation.get("parameters"):
        yield 414
    if "requestBody" in operation:
        yield from (408, 413)
    if path.startswith("/v1/"):
        yield from (422, 503)  # a parameter that does not fit, or that there is not; no room, or no store


def _response(status: int, path: str) -> dict[str, Any]:
    media_type, model = ("application/json", ErrorBody) if path in OPENAI_PATHS else (MEDIA_TYPE, Problem)
    response: dict[str, Any] = {
        "description": DESCRIPTIONS.get(status, HTTPStatus(status).phrase),
        "content": {media_type: {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}},
    }
    return response | {"headers": RETRY_AFTER} if status in {429, 503} else response
