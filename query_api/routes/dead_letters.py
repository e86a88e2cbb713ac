"""`/v1/dead-letters`: records that could not be indexed, newest first, with their bytes and reasons."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from aiokafka import TopicPartition
from fastapi import APIRouter, Path, Query, Response

from query_api.dead_letters.letter_follower import UNREADABLE
from query_api.dead_letters.letter_table import LetterFilter
from query_api.dead_letters.records import LetterRecord
from query_api.dead_letters.skip import NothingToSkip, skip_batch
from query_api.errors import ApiProblem, log_unavailable, problem_responses
from query_api.ingest.producer import BrokerUnavailable
from query_api.middleware import ModelRoute
from query_api.routes.parameters import ServiceOf, Since, first_ms
from schemas.dead_letters import (
    DeadLetterDetail,
    DeadLetterPage,
    LetterStateName,
    ReasonCount,
    SkipOrder,
    SkippedBatch,
)
from schemas.errors import MalformedToken
from schemas.ids import Position, parse_positions
from schemas.refusals import explanation

router = APIRouter(tags=["dead letters"], route_class=ModelRoute)


BYTES_TYPE = "application/octet-stream"


@router.get("/v1/dead-letters", summary="List dead letters")
async def list_dead_letters(
    service: ServiceOf,
    reason: Annotated[str | None, Query(max_length=100, description="Only with this reason.")] = None,
    collection: Annotated[str | None, Query(max_length=128, description="Only of this collection.")] = None,
    document: Annotated[str | None, Query(max_length=2048, description="Only of documents with this id.")] = None,
    state: Annotated[
        LetterStateName | None,
        Query(
            description="Only `open` ones: what they name is missing, or served as it was before; only those "
            "`superseded` by a later dead letter of the same; or only those `resolved` since."
        ),
    ] = None,
    since: Since = None,
    cursor: Annotated[str | None, Query(max_length=8192, description="The `next_cursor` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 50,
) -> DeadLetterPage:
    """Newest first. They are kept for as long as their topic keeps them, 30 days unless that was changed."""
    from_ms = first_ms(since)
    try:
        before = parse_positions(cursor) if cursor else {}
    except MalformedToken as error:
        raise ApiProblem(400, "Malformed cursor", "Give the `next_cursor` of the page before.") from error
    wanted = LetterFilter(None if reason is None else (reason,), collection, document, state)
    await service.dead_letters.catch_up()
    async with _reading():
        page = await service.dead_letter_pages.page(wanted, since_ms=from_ms, before=before, limit=limit)
    by_reason = service.dead_letters.open_reasons(wanted._replace(reasons=None))
    if by_reason is not None:
        page.open = sum(count for name, count in by_reason.items() if reason in (None, name))
        page.open_reasons = [
            ReasonCount(reason=name, title=explanation(name).title, open=count) for name, count in by_reason.items()
        ]
    return page


@router.post(
    "/v1/dead-letters/skip",
    status_code=202,
    summary="Skip a batch that cannot be read",
    responses=problem_responses(404),
)
async def skip(order: SkipOrder, service: ServiceOf) -> SkippedBatch:
    """Its readers continue behind it within seconds, and a rebuild skips it too; a dead letter records where it is. 404
    where the log can be read: nothing else is ever skipped."""
    served = service.snapshots.served
    known = {service.topics.documents, service.topics.curation, service.topics.provenance}
    known |= set() if served is None else {served.topic}
    if order.topic not in known:
        raise ApiProblem(404, "No such topic", f"Readers wait for these topics only: {', '.join(sorted(known))}.")
    place = TopicPartition(order.topic, order.partition)
    try:
        async with _reading():
            return await skip_batch(service.topics, place, order.offset, service.locate_broker, service.writer)
    except NothingToSkip as error:
        raise ApiProblem(404, "Nothing to skip", f"{error} 'thalweg status' names the batches that are.") from error
    except BrokerUnavailable as error:
        raise log_unavailable(f"{error}. Send it again in a while: twice does no harm.") from error


@router.get(
    "/v1/dead-letters/{position}",
    summary="A dead letter, or its bytes",
    response_model=DeadLetterDetail,
    responses={
        200: {"content": {BYTES_TYPE: {"schema": {"type": "string", "format": "binary"}}}},
        **problem_responses(404),
    },
)
async def get_dead_letter(
    position: Annotated[str, Path(json_schema_extra={"pattern": "^[0-9]{1,9}:[0-9]{1,18}$"})],
    service: ServiceOf,
    raw: Annotated[bool, Query(description="The original bytes, as they came, instead.")] = False,
) -> DeadLetterDetail | Response:
    """With the beginning of the original bytes, escaped; all of them, as they came, with `raw=true`."""
    at = _position(position)
    await service.dead_letters.catch_up()
    async with _reading():
        record = await service.dead_letter_pages.letter(at)
    if record is None:
        raise ApiProblem(
            404,
            "No such dead letter",
            f"There is no dead letter at {position[:40]!r}; /v1/dead-letters lists them, for as long as they are kept.",
        )
    return _bytes(record) if raw else await service.dead_letter_pages.detail(record)


def _position(text: str) -> Position:
    try:
        ((partition, offset),) = parse_positions(text).items()
    except ValueError as error:
        raise ApiProblem(
            400, "Malformed position", f"{text[:40]!r} is not '<partition>:<offset>', such as '3:17'."
        ) from error
    return Position(partition, offset)


def _bytes(record: LetterRecord) -> Response:
    if record.value is None:
        raise ApiProblem(404, "No bytes", "The record had no value.")
    if record.omitted is not None:
        why = f"were too large to be kept here ({record.omitted}); {record.where} may still hold them"
        raise ApiProblem(404, "No bytes", f"The original bytes {why}.")
    return Response(
        record.value,
        media_type=BYTES_TYPE,
        headers={"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"},
    )


@asynccontextmanager
async def _reading() -> AsyncIterator[None]:
    try:
        yield
    except UNREADABLE as error:
        reason = str(error) or "Kafka does not answer"
        raise log_unavailable(f"The dead letters cannot be read: {reason}.") from error
