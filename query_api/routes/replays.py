"""`/v1/replays`: apply a part of the documents topic again, as an order on the log, and see the progress."""

import time
from collections.abc import Mapping
from typing import Annotated
from uuid import uuid4

from fastapi import APIRouter, Path, Response

from kafka_client.topic_offsets import Span
from query_api.errors import ApiProblem, log_unavailable, problem_responses
from query_api.middleware import ModelRoute
from query_api.routes.collections import UNREADABLE, newest_setting, publish, read_curation, unreadable
from query_api.routes.generations import require_no_build
from query_api.routes.parameters import ServiceOf, first_ms
from query_api.service_context import Service, not_ready
from schemas.curation import encode_choice
from schemas.ids import Position, format_positions
from schemas.orders import (
    ORDER_ID,
    REPLAY,
    OrderEvent,
    Replay,
    ReplayAccepted,
    ReplayList,
    ReplayRange,
    ReplayRequest,
    ReplayShown,
    order_key,
)

router = APIRouter(tags=["generations"], route_class=ModelRoute)


@router.post("/v1/replays", status_code=202, summary="Apply records again", responses=problem_responses(400, 409, 503))
async def post_replay(request: ReplayRequest, service: ServiceOf, response: Response) -> ReplayAccepted:
    """The worker brings every document with a record in the range to what the log says of it. Where nothing is wrong,
    nothing changes. Records that are not indexed yet are left to the worker; 400 for a range that holds no others, or
    that is not in the log; 409 while a generation is being built."""
    manifest = service.manifest
    if manifest is None:
        raise not_ready("The stores are being opened.")
    first, last = _positions(service, request.first), _positions(service, request.last)
    replay = Replay(
        generation=manifest.generation,
        first=format_positions(first) or None,
        last=format_positions(last) or None,
        since_ms=first_ms(request.since),
        partition=request.partition,
        dry_run=request.dry_run,
    )
    if request.partition is not None:
        service.require_partition(request.partition)
    reached = {number: stored.offset for number, stored in service.snapshot().text.positions.items()}
    _require_in_log(first, last, service.log_watch.spans(service.topics.documents), reached)
    if replay.since_ms is not None and replay.since_ms > time.time_ns() // 1_000_000:
        raise _outside(f"`since`: {request.since} is not there yet.")
    wanted = ReplayRange(replay)
    if not any(wanted.starts_within(number, offset) for number, offset in reached.items()):
        raise _outside(f"The stores hold nothing of that range: they reach {format_positions(reached) or 'none'}.")
    await require_no_build(service)
    name = uuid4().hex[:12]
    position = await publish(service, order_key(REPLAY, name), encode_choice(replay))
    response.headers["Location"] = f"/v1/replays/{name}"
    return ReplayAccepted(id=name, position=position)


@router.get("/v1/replays", summary="The replays there were", responses=problem_responses(503))
async def list_replays(service: ServiceOf) -> ReplayList:
    """Those that were ordered, are running, or are done."""
    try:
        events = (await read_curation(service)).events(OrderEvent)
    except UNREADABLE as error:
        raise log_unavailable(unreadable(error)) from error
    shown = [
        ReplayShown(id=event.id, **event.order.model_dump()) for event in events if isinstance(event.order, Replay)
    ]
    return ReplayList(replays=shown[::-1])


@router.get("/v1/replays/{id}", summary="The progress of a replay", responses=problem_responses(404))
async def get_replay(
    name: Annotated[str, Path(alias="id", json_schema_extra={"pattern": f"^{ORDER_ID.pattern}$"})], service: ServiceOf
) -> Replay:
    if ORDER_ID.fullmatch(name) is not None:
        found = (await newest_setting(service, order_key(REPLAY, name))).event
        if isinstance(found, OrderEvent) and isinstance(found.order, Replay):
            return found.order
    raise ApiProblem(404, "Not found", f"There is no replay {name[:40]!r}.")


def _positions(service: Service, token: str | None) -> dict[int, int]:
    """Without the name of the log, which is checked. Raises ApiProblem."""
    return {} if token is None else service.positions_of(token)


def _require_in_log(
    first: Mapping[int, int], last: Mapping[int, int], spans: Mapping[int, Span], reached: Mapping[int, int]
) -> None:
    """Raises ApiProblem for positions that the log does not have, as far as that is known, and for a range that ends
    before it begins. What the stores reached is in the log: it may have been looked at before."""
    for position in (Position(*each) for each in (*first.items(), *last.items())):
        number, offset = position
        if number not in spans:
            continue
        beginning, end = spans[number].beginning, max(spans[number].end, reached.get(number, -1) + 1)
        if offset < beginning:
            raise _outside(f"The log no longer holds {position}: partition {number} begins at {number}:{beginning}.")
        if offset >= end:
            held = f"ends at {number}:{end - 1}" if end > beginning else "is empty"
            raise _outside(f"The log does not reach {position}: partition {number} {held}.")
    for number in first.keys() & last.keys():
        if first[number] > last[number]:
            raise _outside(f"The range ends before it begins: {number}:{first[number]} to {number}:{last[number]}.")


def _outside(detail: str) -> ApiProblem:
    return ApiProblem(400, "Nothing to replay", detail)
