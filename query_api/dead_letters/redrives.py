"""The redrives of a service: one at a time, in the background, each with what it did so far."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal, Protocol
from uuid import uuid4

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
from query_api.metrics import ServiceMetrics
from schemas.clock import rfc3339
from schemas.ids import Position
from schemas.receipts import format_token
from schemas.redrive import MAX_LISTED, RedrivenLetter, RedriveOrder, RedriveState
from schemas.topics import TopicNames

MAX_REDRIVES = 20  # remembered
FOLLOW_SECONDS = 60.0
SPAN_BYTES = 1024 * 1024
AGAIN = "Run it again: nothing is redriven twice."

log = structlog.get_logger(__name__)


class RedriveRunning(Exception):
    """One redrive runs; the next may begin when it has ended."""


class UnknownLetters(Exception):
    """There are no dead letters at these positions; the message says why and what to do."""


class Engine(Protocol):
    """`redrive.Redriver`, made for one time."""

    @property
    def letter_ends(self) -> Mapping[int, int]: ...
    async def run(self, selection: Selection) -> None: ...


@dataclass
class _Redrive(Progress):
    """One of them, and its progress."""

    id: str
    order: RedriveOrder
    topics: TopicNames
    created_at: str
    state: Literal["running", "done", "failed"] = "running"
    stage: Literal["reading", "redriving", "following", "ended"] = "reading"
    ended_at: str | None = None
    records: int = 0
    seen: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    other_reasons: Counter[str] = field(default_factory=Counter)
    letters: list[RedrivenLetter] = field(default_factory=list)
    redriven: set[Position] = field(default_factory=set)
    reached: dict[int, int] = field(default_factory=dict)
    failed_again: int | None = None
    message: str | None = None
    task: "asyncio.Task[None] | None" = field(default=None, repr=False)

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

    def end(self, state: Literal["done", "failed"], message: str | None = None) -> None:
        self.state, self.stage = state, "ended"
        self.message = message or self.message
        self.ended_at = _now()

    def shown(self, topic_id: str, *, with_letters: bool) -> RedriveState:
        return RedriveState(
            id=self.id,
            order=self.order,
            state=self.state,
            stage=self.stage,
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
    """The last MAX_REDRIVES of them, in memory only: what they did is in the log."""

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
        self._redrives: OrderedDict[str, _Redrive] = OrderedDict()

    def require_none_running(self) -> None:
        """One that has sent all it will, and follows, is no hindrance. Raises RedriveRunning."""
        if any(each.state == "running" and each.stage != "following" for each in self._redrives.values()):
            raise RedriveRunning

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
        """Start it in the background. Raises RedriveRunning."""
        self.require_none_running()
        redrive = _Redrive(f"d_{uuid4().hex[:16]}", order, self._topics, _now())
        self._redrives[redrive.id] = redrive
        while len(self._redrives) > MAX_REDRIVES:
            self._redrives.popitem(last=False)
        redrive.task = asyncio.create_task(self._run(redrive, selection), name="redrive")
        return redrive.shown(self._topic_id(), with_letters=False)

    def get(self, redrive_id: str) -> RedriveState | None:
        redrive = self._redrives.get(redrive_id)
        return None if redrive is None else redrive.shown(self._topic_id(), with_letters=True)

    def listed(self) -> list[RedriveState]:
        return [each.shown(self._topic_id(), with_letters=False) for each in reversed(self._redrives.values())]

    async def stop(self) -> None:
        """Cancel what runs."""
        tasks = [each.task for each in self._redrives.values() if each.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, redrive: _Redrive, selection: Selection) -> None:
        try:
            engine = self._make(redrive.order, redrive)
            await engine.run(selection)
            if redrive.redriven:
                redrive.stage = "following"
                await self._follow(redrive, engine)
            redrive.end("done", None if redrive.reasons else _nothing(redrive))
        except asyncio.CancelledError:
            redrive.end("failed", f"The service stopped before it was done. {AGAIN}")
            raise
        except Exception as error:
            message, is_foreseen = _explained(error)
            redrive.end("failed", message)
            log.warning("redrive failed", redrive=redrive.id, reason=message, exc_info=None if is_foreseen else error)
        finally:
            if not redrive.order.dry_run:
                for outcome, letters in redrive.outcomes.items():
                    self._metrics.redrives.labels(outcome).inc(letters)
            log.info(
                "redrive",
                redrive=redrive.id,
                state=redrive.state,
                dry_run=redrive.order.dry_run,
                outcomes=dict(redrive.outcomes),
            )

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


def _explained(error: Exception) -> tuple[str, bool]:
    """A sentence on what to do, and whether this was foreseen."""
    if isinstance(error, RedriveFailed):
        return str(error), True
    if isinstance(error, AccessDenied | UnreadableBatch):
        return f"{str(error).rstrip('.')}. {AGAIN}", True
    if isinstance(error, KafkaError | OSError | TimeoutError | LogUnavailable):
        reason = str(error) or "it does not answer"
        return f"Kafka is unavailable: {reason}. Once it is back, run it again: nothing is redriven twice.", True
    return f"It failed unexpectedly ({type(error).__name__}: {error}). {AGAIN}", False


def _now() -> str:
    return rfc3339(int(datetime.now(UTC).timestamp() * 1000))
