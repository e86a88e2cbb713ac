"""Redriving dead letters: which ones, its progress, and what became of each."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from schemas.dead_letters import POSITION_PATTERN

MAX_IDS = MAX_LISTED = 1_000
HOW_TO_CHOOSE = (
    "Say which dead letters: `all`, or their `ids` (positions, as the list shows them), or a `reason`, a `collection` "
    "or `since`."
)
Outcome = Literal["redriven", "resolved", "already_redriven", "refused"]


class RedriveChoice(BaseModel):
    """Which dead letters to redrive, as far as stated."""

    model_config = ConfigDict(extra="forbid")

    all: bool = Field(False, description="Every one that is kept.")
    ids: list[Annotated[str, Field(pattern=POSITION_PATTERN)]] | None = Field(
        None, max_length=MAX_IDS, description="Positions on the dead letters topic.", examples=[["3:17"]]
    )
    reason: list[Annotated[str, Field(min_length=1, max_length=100)]] | None = Field(
        None, max_length=100, description="Only with this reason, or one of these.", examples=[["too_large"]]
    )
    collection: str | None = Field(None, min_length=1, max_length=128, description="Only of this collection.")
    since: str | None = Field(
        None, max_length=64, description="Only from then on: `15m`, `2h`, `7d` ago, or an RFC 3339 time."
    )
    dry_run: bool = Field(False, description="Only report what would be done.")

    @field_validator("reason", mode="before")
    @classmethod
    def _of_one(cls, given: object) -> object:
        return [given] if isinstance(given, str) else given


class RedriveOrder(RedriveChoice):
    """All, some by their ids, or those that fit every filter given."""

    @model_validator(mode="after")
    def _is_clear(self) -> "RedriveOrder":
        filters = [name for name in ("reason", "collection", "since") if getattr(self, name) is not None]
        if self.all and self.ids is not None:
            raise ValueError("Give `all` or `ids`, not both: `ids` redrives only these")
        if self.all and filters:
            raise ValueError(f"Give `all` or `{filters[0]}`, not both: without `all` only those that fit are redriven")
        if self.ids is not None and filters:
            raise ValueError(f"Give `ids` or `{filters[0]}`, not both: each id already names one dead letter")
        if not (self.all or self.ids or filters):  # an empty list of ids too
            raise ValueError(HOW_TO_CHOOSE.rstrip("."))
        return self


class RedrivenLetter(BaseModel):
    """What became of one dead letter; in a dry run, what would."""

    position: str
    key: str | None
    reason: str
    outcome: Outcome
    message: str | None = Field(None, description="Why it was not redriven.")
    redriven_as: str | None = Field(None, description="`<partition>:<offset>` of the new record on its topic.")


class RedriveState(BaseModel):
    """How far a redrive is, and what it did."""

    id: str
    order: RedriveOrder
    state: Literal["running", "done", "failed"]
    stage: Literal["reading", "redriving", "following", "ended"] = Field(
        description="`reading`: looking for the dead letters; `following`: waiting for the worker to read what was "
        "redriven."
    )
    created_at: str
    ended_at: str | None = None
    to_look_at: int = Field(0, description="Records of the dead letters topic that have to be read.")
    looked_at: int = 0
    matched: int = Field(0, description="Dead letters that were asked for.")
    redriven: int = Field(0, description="Sent again; in a dry run, would be.")
    resolved: int = Field(0, description="Skipped: their document was indexed or deleted by a newer record since.")
    already_redriven: int = Field(0, description="Skipped: their record was sent again before.")
    refused: int = Field(0, description="Cannot be sent again; `letters` states why.")
    failed_again: int | None = Field(
        None, description="Of those redriven, how many are dead letters again; null while that is not known."
    )
    reasons: dict[str, int] = Field({}, description="Reasons of the dead letters asked for, with how many.")
    token: str | None = Field(None, description="Search with `after` set to this to see what was redriven.")
    letters: list[RedrivenLetter] = Field([], description=f"The first {MAX_LISTED:,} of them.")
    message: str | None = Field(None, description="Why nothing was found, or why it failed, and what to do.")


class RedriveList(BaseModel):
    """Newest first; kept until the service stops."""

    redrives: list[RedriveState]
