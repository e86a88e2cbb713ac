"""The ASGI application of the query service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from fastapi import Depends, FastAPI
from fastapi_offline import FastAPIOffline
from starlette.middleware.cors import CORSMiddleware

from query_api.circuit_breaker import RESET_SECONDS
from query_api.context import Service
from query_api.encoder import LoadEncoder, load_encoder
from query_api.errors import install_problem_handlers
from query_api.health import gauges
from query_api.index.stores import Stores
from query_api.middleware.auth import AuthMiddleware
from query_api.middleware.body_size import BodySizeMiddleware
from query_api.openapi import describe
from query_api.retrieval.service import SearchEngine
from query_api.routes import (
    analytics,
    collections,
    dead_letters,
    document_writes,
    documents,
    evaluations,
    graph,
    operations,
    retrievals,
    search,
)
from query_api.routes.parameters import refuse_unknown_parameters
from query_api.settings import ServiceSettings

DESCRIPTION = """Documents in on Kafka, hybrid search out over Server-Sent Events.

Every write returns a **token**; a search with `after` set to it shows at least that write, or says that it is not there
yet. Errors are problem+json (RFC 9457). Where a service has an API key, send it as a bearer token.
"""


def create_app(
    settings: ServiceSettings,
    *,
    stores: Stores | None = None,
    engine: SearchEngine | None = None,
    load_encoder: LoadEncoder = load_encoder,
    encoder_retry_seconds: float = RESET_SECONDS,
) -> FastAPI:
    """The app with these settings. Stores and engine that are not given are made by them. An encoder that is away is
    asked again after `encoder_retry_seconds`."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = await Service.create(
            settings,
            stores=stores,
            engine=engine,
            load_encoder=load_encoder,
            encoder_retry_seconds=encoder_retry_seconds,
        )
        service.metrics.add_gauges(partial(gauges, service))
        app.state.service = service
        app.state.evaluations = evaluations.create_evaluations(service)
        try:
            yield
        finally:
            await app.state.evaluations.stop()
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
    app.add_middleware(BodySizeMiddleware, settings=settings.service)
    app.add_middleware(AuthMiddleware, settings=settings.service)
    if settings.service.cors_origins:  # the outermost: browsers ask before they send, and read refusals too
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.service.cors_origins,
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=("*",),
            expose_headers=("Location", "Retry-After"),
        )
    install_problem_handlers(app)
    for routes in (
        search,
        document_writes,
        documents,
        collections,
        graph,
        dead_letters,
        operations,
        evaluations,
        retrievals,
        analytics,
    ):
        app.include_router(routes.router, dependencies=[Depends(refuse_unknown_parameters)])
    app.state.needs_key = settings.service.api_key is not None
    describe(app)
    return app
