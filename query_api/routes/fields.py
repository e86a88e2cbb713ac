"""`/v1/collections/{collection}/fields` and a field's values: what a form of filters offers."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from query_api.errors import ApiProblem, problem_responses
from query_api.index.text.field_values import fields_of, values_of
from query_api.routes.collections import require_documents
from query_api.routes.parameters import CollectionInPath, ServiceOf
from schemas.errors import MalformedFilter
from schemas.fields import FieldList, FieldValueList
from schemas.filters import MAX_FILTER_CHARACTERS

router = APIRouter(tags=["collections"])

FIELDS_PATH = "/v1/collections/{collection}/fields"
MAX_LISTED = 1_000

FieldInPath = Annotated[
    str, Path(min_length=1, max_length=MAX_FILTER_CHARACTERS, description="As in `filter`; slashes need no escape.")
]


@router.get(FIELDS_PATH, summary="The fields of a collection", responses=problem_responses(404))
async def list_fields(
    collection: CollectionInPath, service: ServiceOf, limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 200
) -> FieldList:
    """Metadata and documents' own fields, with what their values are and how many documents have one: what `filter`
    can be asked about. 404 for a collection without documents."""
    require_documents(service, collection)
    documents = service.snapshot().text.fields

    def read() -> FieldList:
        found = fields_of(documents, collection)
        held = documents.collections()[collection].documents
        return FieldList(collection=collection, documents=held, fields=found[:limit], total=len(found))

    return await service.read(read)


@router.get(FIELDS_PATH + "/{field:path}/values", summary="The values of a field", responses=problem_responses(404))
async def list_field_values(
    collection: CollectionInPath,
    field: FieldInPath,
    service: ServiceOf,
    prefix: Annotated[str, Query(max_length=300, description="The value begins so, in any case.")] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 20,
) -> FieldValueList:
    """For completion: each with how many documents have it, and the `filter` that asks for it; of times, the days.
    404 for a field that no document of the collection has, with those that there are."""
    require_documents(service, collection)
    documents = service.snapshot().text.fields

    def read() -> FieldValueList:
        found = values_of(documents, field, collection, prefix, limit)
        return FieldValueList(collection=collection, field=field, values=found.values, total=found.total)

    try:
        return await service.read(read)
    except MalformedFilter as error:
        raise ApiProblem(404, "No such field", str(error), members={"reason": "unknown_field"}) from error
