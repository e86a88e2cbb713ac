"""The redrives of a service: one at a time, in the background, each with what it did so far."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import structlog
from aiokafka.errors import KafkaError

from kafka_client.security import AccessDenied
from kafka_client.unreadable_batches import UnreadableBatch
from query_api.dead_letters.recent import by_reason
from query_api.dead_letters.records import KEY_BYTES, LetterRecord, escaped, reason_of
from query_api.dead_letters.redrive import Progress, RedriveFailed, Selection, count_failed_again
from query_api.dead_letters.resolution import Outcome, Verdict
from query_api.index.follower import LocateBroker, LogUnavailable, connected, spans_of
from query_api.index.manager import NotYetIndexed, ServiceStopping, SnapshotManager
from query_api.operations.jobs import Explanation, Job, Jobs, new_job_id
from query_api.service_metrics import ServiceMetrics
from schemas.ids import Position
from schemas.receipts import format_token
from schemas.redrive import MAX_LISTED, RedrivenLetter, RedriveOrder, RedriveState
from schemas.topics import TopicNames

FOLLOW_SECONDS = 60.0
SPAN_BYTES = 1024 * 1024
AGAIN = "Run it again: nothing is redriven twice."

log = structlog.get_logger(__name__)


class UnknownLetters(Exception):
    """There are no dead letters at these positions; the message says why and what to do."""


class Engine(Protocol):
    """`redrive.Redriver`, made for one time."""

    @property
    def letter_ends(self) -> Mapping[int, int]: ...
    async def run(self, selection: Selection) -> None: ...


@dataclass(kw_only=True)
class _Redrive(Job, Progress):
    """One of them, and its progress."""

    order: RedriveOrder
    topics: TopicNames
    stage: Literal["reading", "redriving", "following"] = "reading"
    records: int = 0
    seen: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    other_reasons: Counter[str] = field(default_factory=Counter)
    letters: list[RedrivenLetter] = field(default_factory=list)
    redriven: set[Position] = field(default_factory=set)
    reached: dict[int, int] = field(default_factory=dict)
    failed_again: int | None = None

    @property
    def is_exclusive(self) -> bool:
        """One that has sent all it will, and follows, is no hindrance."""
        return self.state == "running" and self.stage != "following"

    def to_look_at(self, records: int) -> None:
        self.records = records

    def looked_at(self, letter: LetterRecord, *, matches: bool) -> None:
        self.seen += 1
        (self.reasons if matches else self.other_reasons)[reason_of(letter)[:100]] += 1

    def judged(self, letter: LetterRecord, verdict: Verdict, appended: Position | None, topic: str | None) -> None:
        self.stage = "redriving"
        self.outcomes[verdict.outcome] += 1
        if appended is not None:
            self.redriven.add(Position(letter.partition, letter.offset))
            if topic == self.topics.documents:
                self.reached[appended.partition] = max(appended.offset, self.reached.get(appended.partition, -1))
        if len(self.letters) < MAX_LISTED:
            self.letters.append(
                RedrivenLetter(
                    position=f"{letter.partition}:{letter.offset}",
                    key=None if letter.key is None else escaped(letter.key, KEY_BYTES),
                    reason=reason_of(letter)[:100],
                    outcome=verdict.outcome,
                    message=verdict.message,
                    redriven_as=None if appended is None else str(appended),
                )
            )

    def shown(self, topic_id: str, *, with_letters: bool) -> RedriveState:
        return RedriveState(
            id=self.id,
            order=self.order,
            state=self.state,
            stage=self.stage if self.state == "running" else "ended",
            created_at=self.created_at,
            ended_at=self.ended_at,
            to_look_at=self.records,
            looked_at=self.seen,
            matched=self.reasons.total(),
            redriven=self.outcomes["redriven"],
            resolved=self.outcomes["resolved"],
            already_redriven=self.outcomes["already_redriven"],
            refused=self.outcomes["refused"],
            failed_again=self.failed_again,
            reasons=dict(self.reasons.most_common()),
            token=format_token(self.reached, topic_id) or None,
            letters=self.letters if with_letters else [],
            message=self.message,
        )


MakeEngine = Callable[[RedriveOrder, Progress], Engine]


class Redrives:
    """The last of them, in memory only: what they did is in the log."""

    def __init__(
        self,
        topics: TopicNames,
        locate_broker: LocateBroker,
        make: MakeEngine,
        snapshots: SnapshotManager,
        topic_id: Callable[[], str],
        metrics: ServiceMetrics,
    ) -> None:
        """`topic_id` is that of the documents topic."""
        self._topics = topics
        self._locate_broker = locate_broker
        self._make = make
        self._snapshots = snapshots
        self._topic_id = topic_id
        self._metrics = metrics
        self._jobs: Jobs[_Redrive] = Jobs("redrive", _explained, again=AGAIN, on_end=self._ended)
        self.require_idle = self._jobs.require_idle
        self.stop = self._jobs.stop

    async def check(self, ids: Sequence[Position]) -> None:
        """That the topic can be read and holds these letters. Raises UnknownLetters; KafkaError, OSError, TimeoutError
        or LogUnavailable."""
        async with connected(self._locate_broker(), SPAN_BYTES) as consumer:
            spans = await spans_of(consumer, self._topics.dead_letters)
        unknown = []
        for position in ids:
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

    def begin(self, order: RedriveOrder, selection: Selection) -> RedriveState:
        """Start it in the background. Raises JobRunning."""
        self.require_idle()

        async def run(redrive: _Redrive) -> None:
            engine = self._make(order, redrive)
            await engine.run(selection)
            if redrive.redriven:
                redrive.stage = "following"
                await self._follow(redrive, engine)
            if not redrive.reasons:
                redrive.message = _nothing(redrive)

        redrive = _Redrive(id=new_job_id("d"), order=order, topics=self._topics)
        return self._jobs.begin(redrive, run).shown(self._topic_id(), with_letters=False)

    def get(self, redrive_id: str) -> RedriveState | None:
        redrive = self._jobs.get(redrive_id)
        return None if redrive is None else redrive.shown(self._topic_id(), with_letters=True)

    def listed(self) -> list[RedriveState]:
        return [each.shown(self._topic_id(), with_letters=False) for each in self._jobs.newest_first()]

    def _ended(self, redrive: _Redrive) -> None:
        outcomes, dry_run = dict(redrive.outcomes), redrive.order.dry_run
        for outcome, letters in outcomes.items():
            self._metrics.redrives.labels(outcome).inc(0 if dry_run else letters)
        log.info("redrive", redrive=redrive.id, state=redrive.state, dry_run=dry_run, outcomes=outcomes)

    async def _follow(self, redrive: _Redrive, engine: Engine) -> None:
        """Leaves `failed_again` null where the worker has not come so far in time, or Kafka went away: what was
        redriven is in the log."""
        try:
            await self._snapshots.wait_for(redrive.reached, seconds=FOLLOW_SECONDS)
            redrive.failed_again = await count_failed_again(
                self._locate_broker, self._topics.dead_letters, engine.letter_ends, frozenset(redrive.redriven)
            )
        except (NotYetIndexed, ServiceStopping, KafkaError, OSError, TimeoutError, LogUnavailable) as error:
            redrive.message = f"What was redriven is in the log; what becomes of it was not waited for ({error})."


def _nothing(redrive: _Redrive) -> str:
    order = redrive.order
    if not redrive.other_reasons:
        return "There are no dead letters" + (" since then." if order.since else ".")
    asked = [
        *([f"with the reason {' or '.join(order.reason)}"] if order.reason else []),
        *([f"of the collection {order.collection!r}"] if order.collection else []),
        *(["since then"] if order.since else []),
    ]
    return (
        f"There is no dead letter {' '.join(asked)}. Among those there are: {by_reason(redrive.other_reasons)}. "
        "'thalweg dead-letters list' shows them."
    )


def _explained(error: Exception) -> Explanation:
    if isinstance(error, RedriveFailed):
        return Explanation(str(error), foreseen=True)
    if isinstance(error, AccessDenied | UnreadableBatch):
        return Explanation(f"{str(error).rstrip('.')}. {AGAIN}", foreseen=True)
    if isinstance(error, KafkaError | OSError | TimeoutError | LogUnavailable):
        reason = str(error) or "it does not answer"
        message = f"Kafka is unavailable: {reason}. Once it is back, run it again: nothing is redriven twice."
        return Explanation(message, foreseen=True)
    return Explanation(f"It failed unexpectedly ({type(error).__name__}: {error}). {AGAIN}", foreseen=False)
