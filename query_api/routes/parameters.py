"""By which parameters a request may ask: those that its route knows; and what they look like, for the OpenAPI document.

Patterns stand there for those who write requests. What does not fit them is refused by who reads it, with a sentence
that says more than a pattern.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from fastapi import Path, Query, Request
from pydantic import BaseModel

from query_api.errors import ApiProblem, no_such_parameter

if TYPE_CHECKING:
    from fastapi._compat import ModelField
    from fastapi.dependencies.models import Dependant


COLLECTION = {"minLength": 1, "maxLength": 128, "pattern": r"^[^/\x00-\x1f\x7f]+$"}
DOCUMENT_ID = {"minLength": 1, "maxLength": 2048, "pattern": r"^[^\x00-\x1f\x7f]+$"}

Collection = Annotated[
    str, Query(max_length=128, description="The collection the document is in.", json_schema_extra=COLLECTION)
]
CollectionInPath = Annotated[str, Path(json_schema_extra=COLLECTION)]
DocumentId = Annotated[str, Path(description="Slashes may stand as they are.", json_schema_extra=DOCUMENT_ID)]


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


def _query_fields(dependant: "Dependant") -> "Iterator[ModelField]":
    yield from dependant.query_params
    for each in dependant.dependencies:
        yield from _query_fields(each)
