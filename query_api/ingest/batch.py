"""A batch of documents on its way to the log: what becomes a record, what is refused and why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from query_api.errors import ApiProblem
from query_api.ingest import intake
from query_api.ingest.producer import OutgoingRecord
from schemas.api import RefusedMember
from schemas.ids import DocumentKey
from schemas.settings import KafkaSettings

DUPLICATE_ID = "duplicate_id"


class Named(NamedTuple):
    """Which document a member is, and in which version."""

    key: DocumentKey
    version: int | None


class Refusal(NamedTuple):
    """Why a member is not in the log. No exception: its traceback would hold on to the whole batch."""

    status: int
    reason: str
    detail: str
    headers: dict[str, str]

    @classmethod
    def of(cls, problem: ApiProblem) -> "Refusal":
        return cls(problem.status, problem.members.get("reason", problem.title), problem.detail, problem.headers)


@dataclass
class Batch:
    """By index in the order given; each member is in `records` or in `refused`."""

    ids: list[str | None] = field(default_factory=list)
    keys: dict[int, DocumentKey] = field(default_factory=dict)
    records: dict[int, OutgoingRecord] = field(default_factory=dict)
    refused: dict[int, Refusal] = field(default_factory=dict)

    def refusals(self) -> list[RefusedMember]:
        return [
            RefusedMember(
                index=index, id=self.ids[index], status=refusal.status, reason=refusal.reason, detail=refusal.detail
            )
            for index, refusal in sorted(self.refused.items())
        ]

    def problem(self) -> ApiProblem:
        """The answer where nothing was taken. A member that lost to another of the batch is not the reason."""
        decisive = [refusal for refusal in self.refused.values() if refusal.reason != DUPLICATE_ID]
        status = decisive[0].status if len({refusal.status for refusal in decisive}) == 1 else 422
        detail = (
            decisive[0].detail if len(self.refused) == 1 else f"None of the {len(self.refused)} documents was accepted."
        )
        return ApiProblem(
            status,
            "Document refused",
            detail,
            headers=decisive[0].headers,
            members={"refused": [refusal.model_dump() for refusal in self.refusals()]},
        )


def prepared(candidates: Iterable[intake.Candidate], kafka: KafkaSettings, traceparent: str | None) -> Batch:
    """The batch of these documents. Each is made into its record before the next is asked for, so that the content of
    one alone is held beside the records."""
    batch = Batch()
    named: dict[int, Named] = {}
    for index, candidate in enumerate(candidates):
        batch.ids.append(candidate.id)
        try:
            event = intake.accepted(candidate)
            batch.records[index] = intake.record_of(event, kafka, traceparent)
        except ApiProblem as problem:
            batch.refused[index] = Refusal.of(problem)
        else:
            batch.keys[index] = event.key
            named[index] = Named(event.key, event.version)
    for index, winner in lost_to(named).items():
        batch.refused[index] = Refusal.of(repeated_id(named[index].key, winner))
        del batch.records[index]
    return batch


def lost_to(members: Mapping[int, Named]) -> dict[int, int]:
    """Of the members of a batch, by index in the order given: those that lose to another of the same document, with
    the index of the one that wins. The later wins, or the higher version where both carry one, as in the log."""
    winners: dict[DocumentKey, int] = {}
    for index, member in sorted(members.items()):
        before = winners.setdefault(member.key, index)
        held = members[before].version
        if held is None or member.version is None or member.version >= held:
            winners[member.key] = index
    return {index: winners[member.key] for index, member in members.items() if winners[member.key] != index}


def repeated_id(key: DocumentKey, winner: int) -> ApiProblem:
    """The message for a member whose document comes again in its batch."""
    return ApiProblem(
        409,
        "Document refused",
        f"The document {str(key)[:200]!r} comes again as the member {winner}, which is taken in its place. "
        "Send it once.",
        members={"reason": DUPLICATE_ID},
    )
