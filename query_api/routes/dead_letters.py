"""`/v1/dead-letters`: records that could not be indexed, newest first, with their bytes and reasons; and redrives."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from kafka_client.topic_offsets import TopicPartition
from query_api.dead_letters.letter_follower import UNREADABLE
from query_api.dead_letters.letter_table import LetterFilter
from query_api.dead_letters.records import LetterRecord
from query_api.dead_letters.redrive import Redrive, Redriver
from query_api.dead_letters.redrive_jobs import RedriveJobs, UnknownLetters
from query_api.dead_letters.skip import NothingToSkip, skip_batch
from query_api.errors import AnotherLog, ApiProblem, log_unavailable, problem_responses
from query_api.ingest.producer import BrokerUnavailable
from query_api.middleware import ModelRoute
from query_api.operations.jobs import JobRunning
from query_api.routes.parameters import ServiceOf, Since, first_ms, of_app
from query_api.service_context import Service
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
from schemas.redrive import RedriveChoice, RedriveList, RedriveOrder, RedriveState
from schemas.refusals import explanation

router = APIRouter(tags=["dead letters"], route_class=ModelRoute)


BYTES_TYPE = "application/octet-stream"
REDRIVE_PATH = "/v1/dead-letters/redrive"

RedrivesOf = Annotated[RedriveJobs, of_app("redrives")]


def create_redrives(service: Service) -> RedriveJobs:
    """An app's redrives, over its own stores and log."""

    def make(redrive: Redrive) -> Redriver:
        return Redriver(
            redrive=redrive,
            follower=service.dead_letters,
            snapshot=service.snapshot,
            read=service.read,
            skip=service.skipped,
            max_record_bytes=service.settings.kafka.max_record_bytes,
        )

    topic, topic_id = service.topics.dead_letters, lambda: service.log_identity.topic_id
    return RedriveJobs(topic, service.locate_broker, make, service.snapshots, topic_id, service.metrics)


@router.post(REDRIVE_PATH, status_code=202, summary="Redrive dead letters", responses=problem_responses(404, 409))
async def begin_redrive(
    service: ServiceOf,
    redrives: RedrivesOf,
    response: Response,
    body: RedriveChoice | None = None,
    everything: Annotated[bool | None, Query(alias="all", description="Every one that is kept.")] = None,
    ids: Annotated[list[str] | None, Query(description="Positions; with commas between, or repeated.")] = None,
    reason: Annotated[list[str] | None, Query(description="Only with this reason; may be repeated.")] = None,
    collection: Annotated[str | None, Query(description="Only of this collection.")] = None,
    since: Since = None,
    dry_run: Annotated[bool | None, Query(description="Only show what would be done.")] = None,
) -> RedriveState:
    """Which ones, the body says or the address. Their original records go to the topics they came from, unless they
    went there before or a newer record replaced them. `GET` with the id shows its progress and what became of each;
    one redrive at a time, the last twenty are kept until the service stops."""
    split = None if ids is None else [each.strip() for text in ids for each in text.split(",")]
    order = _order(
        {} if body is None else body.model_dump(exclude_unset=True),
        {
            "all": everything, "ids": split, "reason": reason, "collection": collection, "since": since,
            "dry_run": dry_run,
        },
    )  # fmt: skip
    chosen = None if order.ids is None else {_position(each) for each in order.ids}
    wanted = LetterFilter(order.reason, order.collection, ids=chosen, since_ms=first_ms(order.since))
    service.snapshot()
    if (other_log := service.other_log()) is not None:
        raise AnotherLog(other_log)
    try:
        async with _reading("Nothing was redriven", " Send it again once Kafka is back."):
            redrives.require_idle()
            await redrives.check(wanted.ids or ())
            state = redrives.begin(order, wanted)
    except JobRunning as error:
        raise ApiProblem(
            409, "Another redrive runs", f"One redrive runs at a time; GET {REDRIVE_PATH} shows its progress."
        ) from error
    except UnknownLetters as error:
        raise ApiProblem(404, "No such dead letter", str(error)) from error
    response.headers["Location"] = f"{REDRIVE_PATH}/{state.id}"
    return state


@router.get(REDRIVE_PATH, summary="Redrives, newest first")
async def list_redrives(redrives: RedrivesOf) -> RedriveList:
    """Without what became of each dead letter."""
    return RedriveList(redrives=redrives.listed())


@router.get(
    REDRIVE_PATH + "/{redrive_id}",
    summary="A redrive, and what became of each dead letter",
    responses=problem_responses(404),
)
async def get_redrive(redrive_id: str, redrives: RedrivesOf) -> RedriveState:
    state = redrives.get(redrive_id)
    if state is None:
        raise ApiProblem(
            404,
            "No such redrive",
            f"There is no redrive {redrive_id[:80]!r}: the last twenty are kept until the service stops. What they "
            "did is in the log; redriving the same again sends nothing twice.",
        )
    return state


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
        raise log_unavailable(f"{error}. Send it again later: sending it twice does no harm.") from error


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


def _order(in_body: dict[str, Any], in_address: dict[str, Any]) -> RedriveOrder:
    """Raises RequestValidationError."""
    given = {name: value for name, value in in_address.items() if value is not None}
    if twice := sorted(given.keys() & in_body.keys()):
        raise ApiProblem(422, "Invalid request", f"Give `{twice[0]}` in the body or in the address, not in both.")
    try:
        return RedriveOrder.model_validate(in_body | given)
    except ValidationError as error:
        problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors()]
        raise RequestValidationError(problems) from error


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
async def _reading(failure: str = "The dead letters cannot be read", advice: str = "") -> AsyncIterator[None]:
    try:
        yield
    except UNREADABLE as error:
        raise log_unavailable(f"{failure}: {str(error) or 'Kafka does not answer'}.{advice}") from error
