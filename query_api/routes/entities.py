"""`/v1/entities`, `/v1/entities/{id}` and `/v1/statements`: entities, and what is stated of them."""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Annotated, Literal

import msgspec
import numpy as np
from fastapi import APIRouter, Query

from indexer.generation_folders import Generation
from query_api.entities.catalogue import Entity, EntityCatalogue
from query_api.entities.description import EntityDescriber, summary
from query_api.entities.earlier_graphs import EarlierGraph, Moment, NotKept
from query_api.entities.entity_centrality import entity_centrality
from query_api.entities.entity_facts import sample_statements
from query_api.entities.node_search import NEAREST_CHUNKS, entities_by_meaning
from query_api.errors import ApiProblem, invalid_request, problem_responses
from query_api.index.graph.identifiers import key_of
from query_api.index.search_snapshot import Snapshot
from query_api.index.text.text_segments import Scope
from query_api.routes.collection_choice import only, searched, where
from query_api.routes.edits import AfterEdit, Cursor, WaitSeconds, current_curation
from query_api.routes.nodes import After, snapshot_after
from query_api.routes.parameters import AllCollections, OneCollection, ServiceOf, Since, first_ms
from query_api.service_context import Service, not_ready
from schemas.clock import SINCE_PATTERN
from schemas.cursors import read_cursor, write_cursor
from schemas.entities import EntityDetail, EntityPage, StatementSample
from schemas.receipts import TOKEN_PATTERN

router = APIRouter(tags=["entities"])

LISTED_SALIENCE = 0.3  # below it is what one heading or the end of one statement speaks for
AsOf = Annotated[
    str | None,
    Query(
        max_length=1024,
        description="Read the newest kept snapshot of the graph that holds nothing later: `15m`, `2h`, `7d` ago, an "
        "RFC 3339 time, a token that a write returned (no later record of its partitions), or the `graph_position` of "
        "an answer. 410 where none as old is kept.",
        json_schema_extra={"pattern": f"{SINCE_PATTERN}|{TOKEN_PATTERN}|^[0-9]{{1,18}}$"},
    ),
]


class _Place(msgspec.Struct, array_like=True):
    """After which entity a page begins."""

    weight: float
    name: str
    key: int


@router.get("/v1/entities", summary="Entities", responses=problem_responses(400, 409, 503))
async def list_entities(
    service: ServiceOf,
    prefix: Annotated[str, Query(max_length=300, description="A word of the name begins with this.")] = "",
    q: Annotated[
        str, Query(max_length=2_000, description="Entities that passages near to this in meaning speak of.")
    ] = "",
    entity_type: Annotated[str | None, Query(alias="type", max_length=64, examples=["person"])] = None,
    collection: AllCollections = None,
    min_salience: Annotated[
        float | None,
        Query(ge=0, le=1, description=f"Only those as salient; {LISTED_SALIENCE} by default, 0 with `prefix` and `q`."),
    ] = None,
    order: Annotated[
        Literal["salience", "centrality"],
        Query(description="`centrality`: those that facts and edges of people join to most that is central itself."),
    ] = "salience",
    sample: Annotated[
        int | None, Query(ge=0, lt=2**32, description="Any of them at random, by this seed, for people to assess.")
    ] = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
    after: After = None,
    after_edit: AfterEdit = None,
    wait_seconds: WaitSeconds = 10.0,
) -> EntityPage:
    """The most salient first; on one page for `q`, the nearest first, for `sample`, and by `centrality`.

    Dates are listed only by `type=time`.
    """
    snapshot, catalogue = await catalogue_at(service, after, after_edit, wait_seconds)

    def read() -> EntityPage:
        least = min_salience if min_salience is not None else 0.0 if prefix or q else LISTED_SALIENCE
        rows = catalogue.rows(collection=collection, prefix=prefix, entity_type=entity_type, min_salience=least)
        total = len(rows)
        if q.strip():
            ranked = _by_meaning(service, snapshot, catalogue, q, collection)
            allowed = set(rows.tolist())
            rows = np.array([row for row in ranked if row in allowed][:limit], dtype=np.int64)
            total = len(rows)
        elif sample is not None:
            rows = catalogue.sample(rows, limit, sample)
        elif order == "centrality":
            rows = rows[np.argsort(-entity_centrality(catalogue)[rows], kind="stable")][:limit]
        elif cursor is not None:
            rows = catalogue.after(rows, *msgspec.structs.astuple(read_cursor(cursor, _Place, "a list of entities")))
        found = [catalogue[row] for row in rows[:limit].tolist()]
        following = (
            write_cursor(_Place(float(catalogue.weights[rows[limit - 1]]), found[-1].name, key_of(found[-1].id)))
            if len(rows) > limit
            else None
        )
        return EntityPage(entities=[summary(each) for each in found], next_cursor=following, total=total)

    return await service.read(read)


@router.get("/v1/entities/{entity_id:path}", summary="An entity", responses=problem_responses(400, 404, 409, 410, 503))
async def get_entity(
    entity_id: str,
    service: ServiceOf,
    collection: OneCollection = None,
    limit: Annotated[int, Query(ge=1, le=500, description="At most this many of each kind.")] = 25,
    since: Since = None,
    as_of: AsOf = None,
    after: After = None,
    after_edit: AfterEdit = None,
    wait_seconds: WaitSeconds = 10.0,
) -> EntityDetail:
    """Its definition, aliases, statements with their sentences, documents and neighbours; with `since` the statements
    and documents whose records are from then on, and what was withdrawn. The id of any of its names finds it."""
    from_ms, moment = first_ms(since), _moment(service, as_of, after)
    snapshot, catalogue = await catalogue_at(service, after, after_edit, wait_seconds)

    def read() -> EntityDetail:
        if moment is None:
            entity = required_entity(catalogue, entity_id, searched(collection, snapshot), snapshot)
            before = None if from_ms is None else _at_or_none(service, snapshot, Moment(at_ms=from_ms))
            earlier = None if before is None else _earlier_describer(snapshot, before, catalogue)
            return describer_of(snapshot, catalogue).describe(entity, limit, from_ms, earlier)
        graph = _at(service, snapshot, moment)
        then = graph.catalogues.of(graph.view, snapshot.curation)
        looked_in = graph.view.collections() if collection is None else [collection]
        entity = required_entity(then, entity_id, looked_in, snapshot)
        detail = _earlier_describer(snapshot, graph, then).describe(entity, limit, from_ms)
        return detail.model_copy(update={"as_of": graph.made_at})

    return await service.read(read)


@router.get("/v1/statements", summary="Statements at random", responses=problem_responses(400, 409, 410, 503))
async def get_statements(
    service: ServiceOf,
    collection: AllCollections = None,
    predicate: Annotated[
        str | None, Query(max_length=200, description="Only with this one.", examples=["is_a"])
    ] = None,
    sample: Annotated[int, Query(ge=0, lt=2**32, description="The seed: the same gives the same.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
    as_of: AsOf = None,
    after: After = None,
    after_edit: AfterEdit = None,
    wait_seconds: WaitSeconds = 10.0,
) -> StatementSample:
    """What documents state, drawn at random for people to assess, each with the sentence that states it."""
    moment = _moment(service, as_of, after)
    snapshot, catalogue = await catalogue_at(service, after, after_edit, wait_seconds)

    def read() -> StatementSample:
        if moment is not None:
            graph = _at(service, snapshot, moment)
            describer = _earlier_describer(snapshot, graph, graph.catalogues.of(graph.view, snapshot.curation))
            stated = describer.of_statements(sample_statements(graph.view, collection, predicate, limit, sample))
            return StatementSample(statements=stated, graph_position=graph.view.position, as_of=graph.made_at)
        drawn = sample_statements(snapshot.graph, collection, predicate, limit, sample)
        statements = describer_of(snapshot, catalogue).of_statements(drawn)
        return StatementSample(statements=statements, graph_position=snapshot.graph.position)

    return await service.read(read)


async def catalogue_at(
    service: Service, after: str | None, after_edit: str | None, wait_seconds: float
) -> tuple[Snapshot, EntityCatalogue]:
    """Raises ApiProblem: 400 for a malformed position, 503 where it is not reached in time."""
    snapshot = await snapshot_after(service, after, wait_seconds)
    curation = snapshot.curation
    if after_edit is not None:
        curation = await current_curation(service, after_edit, wait_seconds)
    may_be_older = after is None and after_edit is None
    catalogue = await service.read(lambda: service.catalogues.of(snapshot.graph, curation, may_be_older=may_be_older))
    return snapshot, catalogue


def describer_of(snapshot: Snapshot, catalogue: EntityCatalogue) -> EntityDescriber:
    return EntityDescriber(snapshot.graph, catalogue, snapshot.text.chunks, snapshot.text.documents)


def _moment(service: Service, as_of: str | None, after: str | None) -> Moment | None:
    """Raises ApiProblem 422, and of a token as `Service.positions_of` does."""
    if as_of is None:
        return None
    if after is not None:
        raise invalid_request("Give `as_of` or `after`, not both: one asks for old, one for new.")
    if re.fullmatch(TOKEN_PATTERN, as_of.strip()):
        return Moment(positions=service.positions_of(as_of))
    try:
        return Moment.of(as_of, time.time_ns() // 1_000_000)
    except ValueError as error:
        raise invalid_request(f"`as_of`: {error}") from error


def _at(service: Service, snapshot: Snapshot, moment: Moment) -> EarlierGraph:
    """May block. Raises ApiProblem 410 where none as old is kept."""
    try:
        return service.earlier_graphs.at(Generation(service.settings.storage.data_dir, snapshot.generation), moment)
    except NotKept as error:
        raise ApiProblem(410, "Snapshot gone", str(error), members={"oldest": error.oldest}) from error


def _at_or_none(service: Service, snapshot: Snapshot, moment: Moment) -> EarlierGraph | None:
    with suppress(ApiProblem):
        return _at(service, snapshot, moment)
    return None


def _earlier_describer(snapshot: Snapshot, graph: EarlierGraph, catalogue: EntityCatalogue) -> EntityDescriber:
    """Sentences are those of chunks that are still there, whose texts are what they were."""
    records = graph.records(snapshot.text.documents)
    return EntityDescriber(graph.view, catalogue, snapshot.text.chunks, records)


def required_entity(
    catalogue: EntityCatalogue, identifier: str, looked_in: Sequence[str], snapshot: Snapshot
) -> Entity:
    """Raises ApiProblem: 404 for none, 422 for several."""
    entities = [found for each in looked_in if (found := catalogue.find(identifier, each)) is not None]
    entity = only({each: each.collection for each in entities}, f"An entity {identifier[:80]!r}", snapshot)
    if entity is None:
        raise ApiProblem(
            404,
            "No such entity",
            f"No live document mentions an entity {identifier[:80]!r} {where(looked_in)}. "
            "GET /v1/entities?prefix= finds them by name.",
        )
    return entity


def _by_meaning(
    service: Service, snapshot: Snapshot, catalogue: EntityCatalogue, question: str, collection: str | None
) -> list[int]:
    encoder, problem = service.model.of(snapshot.generation), service.model.problem(service.manifest)
    if encoder is None or problem:
        raise not_ready(problem or "The model is being loaded.")
    vector = encoder.encode_queries([question])[0]
    nearest = snapshot.text.vector_search(vector, NEAREST_CHUNKS, Scope(collection=collection))
    return entities_by_meaning(snapshot.graph, catalogue, nearest)
