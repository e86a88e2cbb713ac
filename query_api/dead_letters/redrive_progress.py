"""One redrive: which dead letters it is for, how far it is, and what became of each."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from query_api.dead_letters.letter_follower import most_frequent
from query_api.dead_letters.letter_state import Letter, RecordId
from query_api.dead_letters.letter_table import LetterFilter
from query_api.dead_letters.records import KEY_BYTES, escaped
from query_api.operations.jobs import Job
from schemas.ids import Position
from schemas.receipts import format_token
from schemas.redrive import MAX_LISTED, Outcome, RedrivenLetter, RedriveOrder, RedriveState


class Decision(NamedTuple):
    """What becomes of a dead letter, and a sentence on why where it is not redriven."""

    outcome: Outcome
    message: str | None = None


@dataclass(kw_only=True)
class Redrive(Job):
    """One of them, with its progress. `reached` is how far it wrote to the documents topic, by partition."""

    order: RedriveOrder
    wanted: LetterFilter
    stage: Literal["reading", "redriving", "following"] = "reading"
    to_look_at: int = 0
    looked_at: int = 0
    outcomes: Counter[Outcome] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    other_reasons: Counter[str] = field(default_factory=Counter)
    letters: list[RedrivenLetter] = field(default_factory=list)
    redriven: set[RecordId] = field(default_factory=set)
    reached: dict[int, int] = field(default_factory=dict)
    failed_again: int | None = None

    @property
    def is_exclusive(self) -> bool:
        """One that has sent all it will, and follows, is no hindrance."""
        return self.state == "running" and self.stage != "following"

    def matches(self, letter: Letter) -> bool:
        """Whether it is asked for; counted."""
        matches = self.wanted.matches(letter)
        self.looked_at += 1
        (self.reasons if matches else self.other_reasons)[letter.reason] += 1
        return matches

    def decided(self, letter: Letter, key: bytes | None, decision: Decision, appended: Position | None = None) -> None:
        self.stage = "redriving"
        self.outcomes[decision.outcome] += 1
        if appended is not None:
            self.redriven.add(letter.failed)
        if len(self.letters) < MAX_LISTED:
            self.letters.append(
                RedrivenLetter(
                    position=str(letter.position),
                    key=None if key is None else escaped(key, KEY_BYTES),
                    reason=letter.reason,
                    outcome=decision.outcome,
                    message=decision.message,
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
            to_look_at=self.to_look_at,
            looked_at=self.looked_at,
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

    def why_none(self) -> str:
        """A sentence where no letter is asked for, with the reasons of those there are."""
        order = self.order
        if not self.other_reasons:
            return "There are no dead letters" + (" since then." if order.since else ".")
        asked = [
            *([f"with the reason {' or '.join(order.reason)}"] if order.reason else []),
            *([f"of the collection {order.collection!r}"] if order.collection else []),
            *(["since then"] if order.since else []),
        ]
        return (
            f"There is no dead letter {' '.join(asked)}. Among those there are: {most_frequent(self.other_reasons)}. "
            "'thalweg dead-letters list' shows them."
        )
