"""Parameters that routes share, with their OpenAPI descriptions; and the refusal of unknown ones.

Patterns are for documentation only: a value that does not fit is refused where it is read, with a sentence that says
more than a pattern.
"""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Path, Query, Request
from pydantic import BaseModel

from query_api.errors import invalid_request, unknown_parameter
from query_api.service_context import Service, service_of
from schemas.clock import SINCE_PATTERN, since_ms

if TYPE_CHECKING:
    from fastapi._compat import ModelField
    from fastapi.dependencies.models import Dependant

ServiceOf = Annotated[Service, Depends(service_of)]


def of_app(name: str) -> Any:
    """A dependency: what the state of the request's app has by this name; async, so it needs no thread."""

    async def found(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(found)


COLLECTION = {"minLength": 1, "maxLength": 128, "pattern": r"^[^/\x00-\x1f\x7f]+$"}
DOCUMENT_ID = {"minLength": 1, "maxLength": 2048, "pattern": r"^[^\x00-\x1f\x7f]+$"}

AllCollections = Annotated[str | None, Query(max_length=128, description="Only this collection; all when left out.")]
OneCollection = Annotated[
    str | None,
    Query(
        max_length=128,
        description="The collection; when left out, the only one that holds it, or 422 with those to choose from.",
        json_schema_extra=COLLECTION,
    ),
]
DocumentCollection = Annotated[
    str, Query(max_length=128, description="The collection the document is in.", json_schema_extra=COLLECTION)
]
CollectionInPath = Annotated[str, Path(json_schema_extra=COLLECTION)]
DocumentId = Annotated[str, Path(description="Slashes need no escape.", json_schema_extra=DOCUMENT_ID)]


async def refuse_unknown_parameters(request: Request) -> None:
    """A dependency of every route: reads refuse unknown parameters, such as a misspelt filter, by ApiProblem 422.
    Probes take any: scrapers add their own.
    """
    if request.method not in ("GET", "HEAD") or not request.url.path.startswith("/v1/"):
        return
    fields = list(_query_fields(request.scope["route"].dependant))
    if any(isinstance(field.field_info.annotation, type(BaseModel)) for field in fields):
        return  # a model, which refuses them itself
    unknown = next((name for name in request.query_params if name not in {field.alias for field in fields}), None)
    if unknown is not None:
        raise invalid_request(unknown_parameter(unknown, f"/docs lists those of {request.url.path}"))


def _query_fields(dependant: "Dependant") -> "Iterator[ModelField]":
    yield from dependant.query_params
    for each in dependant.dependencies:
        yield from _query_fields(each)


Since = Annotated[
    str | None,
    Query(
        max_length=64,
        description="Only from then on: `15m`, `2h`, `7d` ago, or an RFC 3339 time.",
        json_schema_extra={"pattern": SINCE_PATTERN},
    ),
]


def first_ms(since: str | None) -> int | None:
    """Milliseconds since 1970; None for all. Raises ApiProblem 422."""
    if since is None:
        return None
    try:
        return since_ms(since, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise invalid_request(f"`since`: {error}") from error
