"""`/v1/collections/{collection}/chunking`, `…/linking`, `…/extraction` and `…/graph`: a collection's settings, events
on the log."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from fastapi import APIRouter
from pydantic import BaseModel

from indexer.chunking.splitter import ChunkingParameters
from indexer.linking import DEFAULT_RULES
from query_api.entities.conflicts import schema_violations
from query_api.errors import invalid_request
from query_api.middleware import ModelRoute
from query_api.routes.collections import checked_key, documents_in, newest_setting, publish
from query_api.routes.entities import describer_of
from query_api.routes.parameters import CollectionInPath, ServiceOf
from query_api.service_context import Service
from schemas.choices import ExtractorName
from schemas.curation import (
    ChunkingChoice,
    CollectionChunking,
    CollectionExtraction,
    CollectionLinking,
    ExtractionChoice,
    LinkingChoice,
    SettingAccepted,
    chunking_key,
    encode_choice,
    extraction_key,
    graph_settings_key,
    linking_key,
)
from schemas.edits_api import CollectionGraph, SchemaViolation
from schemas.graph_edits import GraphChoice

DEFAULT_EXTRACTOR: ExtractorName = "rules"

router = APIRouter(tags=["collections"], route_class=ModelRoute)

ChoiceT = TypeVar("ChoiceT", ChunkingChoice, LinkingChoice, ExtractionChoice, GraphChoice)


@dataclass(frozen=True)
class CollectionSetting(Generic[ChoiceT]):
    """A setting of collections: its route, the key of its records on the curation topic, and what a choice is."""

    path: str
    key: Callable[[str], bytes]
    choice: type[ChoiceT]

    async def chosen(self, service: Service, collection: str) -> tuple[ChoiceT | None, str | None]:
        """The newest choice and its position; None and None where nothing is chosen. Raises ApiProblem while the log is
        unavailable."""
        found = await newest_setting(service, checked_key(self.key, collection))
        choice: BaseModel | None = getattr(found.event, "choice", None)
        if not isinstance(choice, self.choice):
            return None, None
        return choice, str(found.position)

    async def choose(self, service: Service, collection: str, choice: ChoiceT | None) -> SettingAccepted:
        """Put a choice into the log, or with None take it back. Raises ApiProblem while the log is unavailable."""
        value = None if choice is None else encode_choice(choice)
        position = await publish(service, checked_key(self.key, collection), value)
        return SettingAccepted(position=position, documents=documents_in(service, collection))


CHUNKING = CollectionSetting("/v1/collections/{collection}/chunking", chunking_key, ChunkingChoice)
LINKING = CollectionSetting("/v1/collections/{collection}/linking", linking_key, LinkingChoice)
EXTRACTION = CollectionSetting("/v1/collections/{collection}/extraction", extraction_key, ExtractionChoice)
GRAPH = CollectionSetting("/v1/collections/{collection}/graph", graph_settings_key, GraphChoice)


@router.get(CHUNKING.path, summary="How a collection is cut")
async def get_chunking(collection: CollectionInPath, service: ServiceOf) -> CollectionChunking:
    """What applies to documents that are sent now. Those indexed before keep their chunks until they are sent again."""
    choice, position = await CHUNKING.chosen(service, collection)
    defaults = _default_chunking(service)
    try:
        effective = defaults if choice is None else defaults.with_choice(choice)
    except ValueError:  # the worker refuses it as well, and continues with the defaults
        effective, choice = defaults, None
    return CollectionChunking(
        collection=collection,
        **_as_chosen(effective),
        chosen=choice or ChunkingChoice(),
        defaults=ChunkingChoice.model_construct(**_as_chosen(defaults)),
        position=position,
        documents=documents_in(service, collection),
    )


@router.put(CHUNKING.path, status_code=202, summary="Choose how a collection is cut")
async def put_chunking(collection: CollectionInPath, choice: ChunkingChoice, service: ServiceOf) -> SettingAccepted:
    """Replaces an earlier choice; what is left out is the default. It applies to every document that is sent after this
    answer; documents sent before keep their chunks until they are sent again."""
    try:
        _default_chunking(service).with_choice(choice)
    except ValueError as error:
        raise invalid_request(str(error), "bad_setting") from error
    return await CHUNKING.choose(service, collection, choice)


@router.get(LINKING.path, summary="How a collection is linked")
async def get_linking(collection: CollectionInPath, service: ServiceOf) -> CollectionLinking:
    """What applies to documents that are indexed now. Those indexed before keep their edges until `relink`."""
    choice, position = await LINKING.chosen(service, collection)
    rules = DEFAULT_RULES if choice is None else DEFAULT_RULES.with_choice(choice)
    return CollectionLinking(
        collection=collection,
        **asdict(rules),
        chosen=choice or LinkingChoice(),
        defaults=LinkingChoice(**asdict(DEFAULT_RULES)),
        position=position,
        documents=documents_in(service, collection),
    )


@router.put(LINKING.path, status_code=202, summary="Choose how a collection is linked")
async def put_linking(collection: CollectionInPath, choice: LinkingChoice, service: ServiceOf) -> SettingAccepted:
    """Replaces an earlier choice; what is left out is the default. It applies to documents that are indexed after this
    answer; `relink` applies it to the others."""
    return await LINKING.choose(service, collection, choice)


@router.get(EXTRACTION.path, summary="What finds a collection's entities")
async def get_extraction(collection: CollectionInPath, service: ServiceOf) -> CollectionExtraction:
    """What applies to documents that are sent now. Those indexed before keep their entities until they are sent
    again."""
    choice, position = await EXTRACTION.chosen(service, collection)
    chosen = choice or ExtractionChoice()
    return CollectionExtraction(
        collection=collection,
        extractor=chosen.extractor or DEFAULT_EXTRACTOR,
        chosen=chosen,
        defaults=ExtractionChoice(extractor=DEFAULT_EXTRACTOR),
        position=None if chosen.extractor is None else position,
        documents=documents_in(service, collection),
    )


@router.put(EXTRACTION.path, status_code=202, summary="Choose what finds a collection's entities")
async def put_extraction(collection: CollectionInPath, choice: ExtractionChoice, service: ServiceOf) -> SettingAccepted:
    """Replaces an earlier choice. It applies to every document that is sent after this answer. What the worker is not
    set up for becomes a dead letter, with the reason `bad_setting`, and the default stays."""
    return await EXTRACTION.choose(service, collection, choice)


@router.get(GRAPH.path, summary="What people may add to a collection's graph")
async def get_graph_choice(collection: CollectionInPath, service: ServiceOf) -> CollectionGraph:
    """Types of nodes, and predicates with the types of their ends; and what documents state against that. Nodes and
    edges made before stay."""
    chosen, position = await GRAPH.chosen(service, collection)
    choice, snapshot = chosen or GraphChoice(), service.snapshots.current

    def violations() -> list[SchemaViolation]:
        if snapshot is None or choice.predicates is None:
            return []
        catalogue = service.catalogues.of(snapshot.graph, snapshot.curation)
        return schema_violations(snapshot.graph, catalogue, describer_of(snapshot, catalogue), collection, choice)

    found = await service.read(violations)
    return CollectionGraph(collection=collection, chosen=choice, position=position, violations=found)


@router.put(GRAPH.path, status_code=202, summary="Choose what people may add to a collection's graph")
async def put_graph_choice(collection: CollectionInPath, choice: GraphChoice, service: ServiceOf) -> SettingAccepted:
    """Replaces an earlier choice. An edit that does not fit is refused with 422 from then on."""
    return await GRAPH.choose(service, collection, choice)


def _delete(setting: CollectionSetting[ChoiceT], name: str, summary: str) -> None:
    """Add the route that takes the choice back."""

    @router.delete(setting.path, status_code=202, name=name, summary=summary)
    async def reset(collection: CollectionInPath, service: ServiceOf) -> SettingAccepted:
        """No error where nothing was chosen."""
        return await setting.choose(service, collection, None)


_delete(CHUNKING, "delete_chunking", "Cut a collection by the defaults again")
_delete(LINKING, "delete_linking", "Link a collection by the defaults again")
_delete(EXTRACTION, "delete_extraction", "Find a collection's entities by the default again")
_delete(GRAPH, "delete_graph_choice", "Let people add anything to a collection's graph")


def _as_chosen(parameters: ChunkingParameters) -> dict[str, Any]:
    """By the names that a choice has."""
    return {
        "parent_characters": parameters.passage_characters,
        "parent_overlap": parameters.passage_overlap_characters,
        "child_characters": parameters.chunk_characters,
        "child_overlap": parameters.chunk_overlap,
        "method": parameters.method,
        "language": parameters.language,
    }


def _default_chunking(service: Service) -> ChunkingParameters:
    """Those the served generation was made with."""
    if service.snapshots.served is None:
        return ChunkingParameters()
    made = service.snapshots.served.manifest
    return ChunkingParameters(
        passage_characters=made.passage_characters,
        passage_overlap=made.passage_overlap,
        chunk_characters=made.chunk_characters,
        chunk_overlap=made.chunk_overlap,
    )
