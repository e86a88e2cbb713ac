"""The tools of `/mcp`: each is a function that takes its arguments and calls the function of the HTTP route.

Arguments and answers are those of the routes, as far as a model needs them. What is left out of an answer is reached by
its cursor, or by `get`.
"""

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any, Literal, NamedTuple

import msgspec
from fastapi import Request, Response
from mcp.types import Tool as ListedTool
from mcp.types import ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, JsonValue, TypeAdapter, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from query_api.errors import ApiProblem, invalid_request, invalid_values
from query_api.routes.document_writes import publish_json, trace_of
from query_api.routes.documents import document_detail
from query_api.routes.entities import get_entity
from query_api.routes.graph import NODE_IS, get_chunk, get_node
from query_api.routes.operations import status as service_status
from query_api.routes.parameters import OneCollection
from query_api.routes.paths import get_paths
from query_api.routes.research import begun_research, research_note
from query_api.routes.search import answer_search, origin_of
from query_api.service_context import Service
from query_api.sse.events import new_retrieval_id
from schemas.api import ChunkDetail, DocumentAccepted, DocumentSummary, NodeDetail, ServiceStatus
from schemas.cursors import read_cursor, write_cursor
from schemas.entities import EntityDetail, EntityPaths, NodePaths
from schemas.events import DEFAULT_CONTENT_TYPE
from schemas.hits import Hit, SearchAnswer
from schemas.ids import DEFAULT_COLLECTION
from schemas.research import Research, ResearchRequest
from schemas.search import SearchRequest, StrictNumbers

TEXT_CHARACTERS = 8_000  # of any one text, and of a page of a document


class Tool(NamedTuple):
    listed: ListedTool
    arguments: type[BaseModel]
    run: Callable[[Request, Service, Any], Awaitable[BaseModel]]
    writes: bool


TOOLS: dict[str, Tool] = {}


def _tool(arguments: Any, answer: Any, *, writes: bool = False) -> Callable[[Any], Any]:
    """Offer a function under its name; its docstring is what a model reads of it."""

    def offer(run: Any) -> Any:
        answered = TypeAdapter(answer).json_schema(mode="serialization", schema_generator=_WithoutTitles)
        listed = ListedTool(
            name=run.__name__,
            description=" ".join(run.__doc__.split()),
            input_schema=arguments.model_json_schema(schema_generator=_WithoutTitles),
            output_schema={"type": "object"} | answered,
            annotations=ToolAnnotations(read_only_hint=not writes, idempotent_hint=True, open_world_hint=False),
        )
        TOOLS[listed.name] = Tool(listed, arguments, run, writes)
        return run

    return offer


class _WithoutTitles(GenerateJsonSchema):
    """A title says the name of its field once more, to a model that reads all of it."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return schema is None


def _fields(of: Any, *names: str) -> dict[str, Any]:
    """Fields of a model, or parameters of a route, for a model of one's own."""
    if not inspect.isfunction(of):
        return {name: (of.model_fields[name].annotation, of.model_fields[name]) for name in names}
    taken = [inspect.signature(of).parameters[name] for name in names]
    return {each.name: (each.annotation, ... if each.default is each.empty else each.default) for each in taken}


class Arguments(StrictNumbers):
    model_config = ConfigDict(frozen=True, extra="forbid")


def validated(model: Any, values: dict[str, Any]) -> Any:
    """Raises ApiProblem 422, with a sentence for each value that does not fit."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        problems = [each | {"loc": ("arguments", *each["loc"])} for each in error.errors()]
        raise invalid_values(problems, "`tools/list` has those of each tool") from error


Passage: Any = create_model("Passage", **_fields(
    Hit, "rank", "document_id", "collection", "title", "uri", "section", "page", "chunk_id", "text", "score",
    "confidence", "channels", "matches", "path",
))  # fmt: skip
Passages: Any = create_model("Passages", hits=(list[Passage], ...), **_fields(
    SearchAnswer, "retrieval_id", "mode", "next_cursor", "failed_channels", "notes",
))  # fmt: skip
SearchArguments: Any = create_model(
    "SearchArguments", __base__=Arguments,
    **_fields(SearchRequest, "q", "mode", "collection", "filter", "graph_method", "min_confidence", "after", "cursor"),
    k=(int, Field(10, ge=1, le=50, description="Passages, at most.")),
)  # fmt: skip


@_tool(SearchArguments, Passages)
async def search(request: Request, service: Service, arguments: Arguments) -> Any:
    """Passages that answer a question, the best first, each with its document and, where the graph found it, the path
    to it. `get` with kind=chunk shows the text around one."""
    asked = validated(SearchRequest, arguments.model_dump(exclude_unset=True))
    answer = await answer_search(request, asked, service, origin_of(request))
    return Passages.model_validate(answer.model_dump())


Note: Any = create_model("Note", **_fields(Research, "kind", "text", "citations", "open", "check", "stopped"))
ResearchArguments: Any = create_model(
    "ResearchArguments", __base__=Arguments, **_fields(ResearchRequest, "q", "collection", "rounds", "sentences")
)


@_tool(ResearchArguments, Note)
async def research(request: Request, service: Service, arguments: Arguments) -> Any:
    """Several searches for a question of several steps, or a claim to check: sentences that answer it, word for word,
    each with its source, and what remains open. `search` is faster for a plain question."""
    asked = validated(ResearchRequest, arguments.model_dump(exclude_unset=True))
    frames = await begun_research(new_retrieval_id(), request, asked, service, origin_of(request))
    return Note.model_validate((await research_note(request, frames)).model_dump())


class GetArguments(Arguments):
    kind: Literal["document", "chunk", "entity"]
    id: str = Field(min_length=1, max_length=2_200, description="As other tools have it; of an entity also a name.")
    collection: OneCollection = None
    limit: int = Field(10, ge=1, le=25, description="Of an entity: so many statements, documents, neighbours at most.")
    cursor: str | None = Field(None, max_length=512, description="Of a document: the `next_cursor` of the page before.")


class DocumentPage(DocumentSummary):
    text: str
    next_cursor: str | None = Field(description="Of the next page of the text; null on the last one.")


class Found(BaseModel):
    document: DocumentPage | None = None
    chunk: ChunkDetail | None = None
    entity: EntityDetail | None = None


@_tool(GetArguments, Found)
async def get(_request: Request, service: Service, wanted: GetArguments) -> Found:
    """A document with its text by pages, a chunk with the passage around it, or an entity with its definition,
    statements and the sentences that state them."""
    if wanted.kind == "document":
        return Found(document=await _page(service, wanted))
    if wanted.cursor is not None:
        raise invalid_request("`cursor` is for the text of a document: leave it out.")
    if wanted.kind == "chunk":
        return Found(chunk=await get_chunk(wanted.id, service))
    return Found(entity=await get_entity(wanted.id, service, wanted.collection, wanted.limit))


class _Place(msgspec.Struct, array_like=True):
    """Where a page of a text begins, and the record that the document was made from."""

    start: int
    position: str


async def _page(service: Service, wanted: GetArguments) -> DocumentPage:
    place = _Place(0, "") if wanted.cursor is None else read_cursor(wanted.cursor, _Place, "a document's text")
    document = await document_detail(service, wanted.collection, wanted.id)
    if place.position not in ("", document.position):
        raise ApiProblem(409, "Document changed", "The document has changed since that page: begin without `cursor`.")
    end = place.start + TEXT_CHARACTERS
    following = write_cursor(_Place(end, document.position)) if end < len(document.text) else None
    return DocumentPage(**document.model_dump() | {"text": document.text[place.start : end], "next_cursor": following})


NeighboursArguments: Any = create_model(
    "NeighboursArguments", __base__=Arguments,
    node_id=(str, Field(min_length=1, max_length=2_200, description=f"{NODE_IS.capitalize()}.")),
    limit=(int, Field(20, ge=1, le=100)), **_fields(get_node, "collection", "kinds"),
)  # fmt: skip


@_tool(NeighboursArguments, NodeDetail)
async def neighbours(_request: Request, service: Service, arguments: Arguments) -> NodeDetail:
    """A node of the knowledge graph and what its edges lead to, the heaviest first."""
    return await get_node(response=Response(), service=service, **arguments.model_dump())


PathsArguments: Any = create_model("PathsArguments", __base__=Arguments, **_fields(
    get_paths, "source", "target", "collection", "max_steps", "limit", "entity_type", "predicate",
))  # fmt: skip


@_tool(PathsArguments, EntityPaths | NodePaths)
async def paths(_request: Request, service: Service, arguments: Arguments) -> EntityPaths | NodePaths:
    """How two things are connected, the strongest path first, each step with the sentence that states it; without `to`,
    what is around one."""
    return await get_paths(service=service, **arguments.model_dump())


Overview: Any = create_model(
    "Overview", collections=(dict[str, int], Field(description="How many documents each has.")),
    **_fields(ServiceStatus, "version", "readiness", "positions", "lag_seconds"),
)  # fmt: skip


@_tool(Arguments, Overview)
async def status(_request: Request, service: Service, _: Arguments) -> Any:
    """Whether searches are answered, how fresh they are, and the collections there are."""
    now, snapshot = await service_status(service), service.snapshots.current
    counts = {} if snapshot is None else snapshot.text.fields.collections()
    return Overview(collections={name: of.documents for name, of in counts.items()}, **now.model_dump())


class AddArguments(Arguments):
    id: str = Field(description="A document of this id in the collection is replaced.")
    content: str
    content_type: str = Field(DEFAULT_CONTENT_TYPE, examples=["text/plain", "text/html"])
    collection: str = DEFAULT_COLLECTION
    title: str | None = None
    uri: str | None = Field(None, description="Where it comes from.")
    metadata: dict[str, JsonValue] = Field(default_factory=dict, description="Fields that `filter` can ask for.")


@_tool(AddArguments, DocumentAccepted, writes=True)
async def add(request: Request, service: Service, document: AddArguments) -> Any:
    """Publish a document, or replace the one of its id. A search with `after` set to the token shows it."""
    envelope = bytearray(json.dumps(document.model_dump(exclude_unset=True)).encode())
    return await publish_json(service, envelope, trace_of(request))
