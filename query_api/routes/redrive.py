"""`/v1/dead-letters/redrive`: send the records of dead letters again, in the background, and see how far that is."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from query_api.dead_letters.letter_follower import UNREADABLE
from query_api.dead_letters.letter_table import LetterFilter
from query_api.dead_letters.redrive import Redriver
from query_api.dead_letters.redrive_jobs import RedriveJobs, UnknownLetters
from query_api.dead_letters.redrive_progress import Redrive
from query_api.errors import AnotherLog, ApiProblem, log_unavailable, problem_responses
from query_api.middleware import ModelRoute
from query_api.operations.jobs import JobRunning
from query_api.routes.parameters import ServiceOf, Since, first_ms, of_app
from query_api.service_context import Service
from schemas.ids import Position, parse_positions
from schemas.redrive import RedriveChoice, RedriveList, RedriveOrder, RedriveState

router = APIRouter(tags=["dead letters"], route_class=ModelRoute)

PATH = "/v1/dead-letters/redrive"


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


@router.post(PATH, status_code=202, summary="Redrive dead letters", responses=problem_responses(404, 409))
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
    dry_run: Annotated[bool | None, Query(description="Only tell what would be done.")] = None,
) -> RedriveState:
    """Which ones, the body says or the address. Their original records go to the topics they came from, unless they
    went there before or a newer record replaced them. `GET` with the id tells how far it is and what became of each;
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
        redrives.require_idle()
        await redrives.check(wanted.ids or ())
        state = redrives.begin(order, wanted)
    except JobRunning as error:
        raise ApiProblem(
            409, "Another redrive runs", f"One redrive runs at a time; GET {PATH} tells how far it is."
        ) from error
    except UnknownLetters as error:
        raise ApiProblem(404, "No such dead letter", str(error)) from error
    except UNREADABLE as error:
        reason_text = str(error) or "Kafka does not answer"
        raise log_unavailable(f"Nothing was redriven: {reason_text}. Send it again once Kafka is back.") from error
    response.headers["Location"] = f"{PATH}/{state.id}"
    return state


@router.get(PATH, summary="Redrives, newest first")
async def list_redrives(redrives: RedrivesOf) -> RedriveList:
    """Without what became of each dead letter."""
    return RedriveList(redrives=redrives.listed())


@router.get(
    PATH + "/{redrive_id}", summary="A redrive, and what became of each dead letter", responses=problem_responses(404)
)
async def get_redrive(redrive_id: str, redrives: RedrivesOf) -> RedriveState:
    state = redrives.get(redrive_id)
    if state is None:
        raise ApiProblem(
            404,
            "No such redrive",
            f"There is no redrive {redrive_id[:80]!r}: the last twenty are kept until the service stops. What they "
            "did is in the log; to redrive the same again does nothing twice.",
        )
    return state


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
    return Position(*next(iter(parse_positions(text).items())))
