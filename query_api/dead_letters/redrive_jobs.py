"""The redrives of a service: one at a time, in the background, each with what it did so far."""

from collections.abc import Callable, Collection
from dataclasses import dataclass

import structlog

from kafka_client.async_clients import LocateBroker, connected
from kafka_client.security import AccessDenied
from kafka_client.topic_offsets import spans_of
from kafka_client.unreadable_batches import UnreadableBatch
from query_api.dead_letters.letter_follower import FETCH_BYTES, UNREADABLE
from query_api.dead_letters.letter_table import LetterFilter
from query_api.dead_letters.redrive import Redrive, RedriveFailed, Redriver
from query_api.index.manager import NotYetIndexed, ServiceStopping, SnapshotManager
from query_api.operations.jobs import Explanation, Jobs, new_job_id
from query_api.service_metrics import ServiceMetrics
from schemas.ids import Position
from schemas.redrive import RedriveOrder, RedriveState

FOLLOW_SECONDS = 60.0
AGAIN = "Run it again: nothing is redriven twice."

log = structlog.get_logger(__name__)


class UnknownLetters(Exception):
    """There are no dead letters at these positions; the message says why and what to do."""


@dataclass(eq=False)
class RedriveJobs:
    """The last of them, in memory only: what they did is in the log. `topic` is that of dead letters, `topic_id` that
    of the documents topic."""

    topic: str
    locate_broker: LocateBroker
    make: Callable[[Redrive], Redriver]
    snapshots: SnapshotManager
    topic_id: Callable[[], str]
    metrics: ServiceMetrics

    def __post_init__(self) -> None:
        self._jobs: Jobs[Redrive] = Jobs("redrive", _explained, again=AGAIN, on_end=self._ended)
        self.require_idle = self._jobs.require_idle
        self.stop = self._jobs.stop

    async def check(self, ids: Collection[Position]) -> None:
        """That the topic can be read and holds these letters. Raises UnknownLetters; KafkaError, OSError, TimeoutError
        or LogUnavailable."""
        async with connected(self.locate_broker(), FETCH_BYTES) as consumer:
            spans = await spans_of(consumer, self.topic)
        unknown = []
        for position in sorted(ids):
            span = spans.get(position.partition)
            if span is None:
                unknown.append(f"{position} (the partitions are 0 to {len(spans) - 1})")
            elif position.offset < span.beginning:
                unknown.append(f"{position} (it was kept for its time and is gone: send its document again)")
            elif position.offset >= span.end:
                held = f"holds {span.beginning} to {span.end - 1}" if span.end > span.beginning else "is empty"
                unknown.append(f"{position} (partition {position.partition} {held})")
        if unknown:
            more = f" and {len(unknown) - 5:,} more" if len(unknown) > 5 else ""
            raise UnknownLetters(
                f"There is no dead letter at {', '.join(unknown[:5])}{more}. Nothing was redriven; "
                "'thalweg dead-letters list' shows those there are."
            )

    def begin(self, order: RedriveOrder, wanted: LetterFilter) -> RedriveState:
        """Start it in the background. Raises JobRunning."""
        self.require_idle()
        redrive = Redrive(id=new_job_id("d"), order=order, wanted=wanted)
        return self._jobs.begin(redrive, self._run).shown(self.topic_id(), with_letters=False)

    def get(self, redrive_id: str) -> RedriveState | None:
        redrive = self._jobs.get(redrive_id)
        return None if redrive is None else redrive.shown(self.topic_id(), with_letters=True)

    def listed(self) -> list[RedriveState]:
        return [each.shown(self.topic_id(), with_letters=False) for each in self._jobs.newest_first()]

    async def _run(self, redrive: Redrive) -> None:
        redriver = self.make(redrive)
        await redriver.run()
        if redrive.redriven:
            redrive.stage = "following"
            await self._follow(redrive, redriver)
        if not redrive.reasons:
            redrive.message = redrive.why_none()

    async def _follow(self, redrive: Redrive, redriver: Redriver) -> None:
        """Leaves `failed_again` null where the worker has not come so far in time, or Kafka went away: what was
        redriven is in the log."""
        try:
            await self.snapshots.wait_for(redrive.reached, seconds=FOLLOW_SECONDS)
            redrive.failed_again = await redriver.count_failed_again()
        except (NotYetIndexed, ServiceStopping, *UNREADABLE) as error:
            redrive.message = f"What was redriven is in the log; what becomes of it was not waited for ({error})."

    def _ended(self, redrive: Redrive) -> None:
        outcomes, dry_run = dict(redrive.outcomes), redrive.order.dry_run
        for outcome, letters in outcomes.items():
            self.metrics.redrives.labels(outcome).inc(0 if dry_run else letters)
        log.info("redrive", redrive=redrive.id, state=redrive.state, dry_run=dry_run, outcomes=outcomes)


def _explained(error: Exception) -> Explanation:
    if isinstance(error, RedriveFailed):
        return Explanation(str(error), foreseen=True)
    if isinstance(error, AccessDenied | UnreadableBatch):
        return Explanation(f"{str(error).rstrip('.')}. {AGAIN}", foreseen=True)
    if isinstance(error, UNREADABLE):
        reason = str(error) or "it does not answer"
        message = f"Kafka is unavailable: {reason}. Once it is back, run it again: nothing is redriven twice."
        return Explanation(message, foreseen=True)
    return Explanation(f"It failed unexpectedly ({type(error).__name__}: {error}). {AGAIN}", foreseen=False)
