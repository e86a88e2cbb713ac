"""Generations, as the processes inform each other of them: orders on `curation.v1`, and the state of a build on disk.

The key of an order is `*/generation/<name>`: it is about no collection. A null value drops the generation.
"""

import re
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

GENERATION = "generation"
GENERATION_NAME = re.compile(r"g\d{4,6}(-[0-9a-f]{6})?")
EVERY_COLLECTION = "*"
MAX_REASON_CHARACTERS = 500

BuildState = Literal["building", "ready", "failed"]


class GenerationOrder(BaseModel):
    """What is to become of a generation: built beside the live one, or live as soon as it is complete.

    Of several that are to be live, the latest order counts. `base` is the generation that was live when this was
    ordered: only a data directory that has it obeys.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    wanted: Literal["built", "live"]
    base: str = Field(min_length=1, max_length=64)
    reason: str = Field("", max_length=MAX_REASON_CHARACTERS)
    force: bool = Field(False, description="Switch though the comparison found documents missing.")


class GenerationEvent(NamedTuple):
    """`order` is None where the generation is to be dropped."""

    name: str
    order: GenerationOrder | None


def generation_key(name: str) -> bytes:
    """The record key of the orders about a generation."""
    return f"{EVERY_COLLECTION}/{GENERATION}/{name}".encode()


class StoreCounts(BaseModel):
    """What a generation holds; entities and statements as of its newest graph snapshot."""

    model_config = ConfigDict(frozen=True)

    documents: int
    passages: int
    chunks: int
    entities: int
    statements: int


class QuestionComparison(BaseModel):
    """What the beginnings of a sample of documents, put as questions to the vectors of both, find among the others."""

    model_config = ConfigDict(frozen=True)

    questions: int
    overlap: float = Field(description="Mean share of the ten nearest documents that both find, from 0 to 1.")
    least: tuple[str, ...] = Field((), description="At most five documents with the least in common, below half of it.")


class GenerationComparison(BaseModel):
    """A generation beside its base, at the positions that it had reached when it was ready."""

    model_config = ConfigDict(frozen=True)

    earlier: StoreCounts
    new: StoreCounts
    missing: tuple[str, ...] = Field((), description="At most twenty documents that the base shows and this one lacks.")
    missing_count: int = 0
    unexpected: tuple[str, ...] = Field((), description="The other way round.")
    unexpected_count: int = 0
    questions: QuestionComparison | None = Field(None, description="Null where they have too few documents in common.")

    @property
    def same_documents(self) -> bool:
        return self.missing_count == 0 and self.unexpected_count == 0


class Build(BaseModel):
    """How far the build of a generation is; the file `build.json` in its folder.

    `state` is `ready` only while it follows the log closely: one that falls behind is `building` again, and `ready_ms`
    states that it was complete before. `reached` has the last offset stored, by partition of the documents topic.
    `records` and `of_records` count offsets of that topic, compacted ones included. `seconds` is the time that was
    worked on it, over restarts. `problem` is why it does not get on, or why it was not switched in.
    """

    model_config = ConfigDict(frozen=True)

    state: BuildState
    reason: str = ""
    base: str = ""
    started_ms: int = 0
    at_ms: int = 0
    seconds: float = 0.0
    records: int = 0
    of_records: int = 0
    reached: dict[int, int] = Field(default_factory=dict)
    chunks: int = 0
    ready_ms: int | None = None
    problem: str | None = None
    comparison: GenerationComparison | None = None

    @property
    def seconds_left(self) -> float | None:
        """By the mean rate so far; None where there is none yet."""
        if not self.records or not self.seconds:
            return None
        return max(0.0, (self.of_records - self.records) * self.seconds / self.records)


class GenerationPipeline(BaseModel):
    """What all rows of a generation were made with: as its manifest has it."""

    embedding_provider: str
    embedding_model: str
    embedding_digest: str
    dimension: int
    chunk_characters: int
    chunk_overlap: int
    passage_characters: int
    passage_overlap: float
    extractor: str


class BuildProgress(BaseModel):
    """How far a build is. `records` counts offsets of the documents topic."""

    records: int
    of_records: int
    chunks: int
    seconds: float = Field(description="Worked on it so far, over restarts.")
    records_per_second: float | None = None
    seconds_left: float | None = Field(None, description="By the mean rate so far.")


class GenerationShown(BaseModel):
    """`live`: it is served. `ordered`: the worker has not begun. `building`, `failed`: see `progress` and `problem`.
    `ready`: complete, and it follows the log. `behind`: it was complete, and catches up with the log, which a switch
    waits for. `kept`: complete when it was last worked on; switching to it first brings it up to date."""

    name: str
    state: Literal["live", "ordered", "building", "ready", "behind", "failed", "kept"]
    reason: str | None = None
    base: str | None = Field(None, description="The generation that was live when it was ordered.")
    switches: bool = Field(False, description="It is switched to as soon as it is ready.")
    problem: str | None = None
    bytes: int | None = Field(None, description="On disk.")
    progress: BuildProgress | None = None
    comparison: GenerationComparison | None = None
    pipeline: GenerationPipeline | None = None


class GenerationList(BaseModel):
    generations: list[GenerationShown]
    notes: list[str] = Field(default_factory=list)


class RebuildRequest(BaseModel):
    """Order the next generation, by the settings that the worker has now."""

    model_config = ConfigDict(extra="forbid", strict=True)

    reason: str = Field("", max_length=MAX_REASON_CHARACTERS, description="Shown with it, such as `new chunk size`.")
    switch: bool = Field(True, description="Switch to it when it is ready; else it is kept up to date beside.")


class SwitchRequest(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    force: bool = Field(False, description="Switch though documents of the live generation are missing in it.")


class GenerationAccepted(BaseModel):
    """The order is in the log; `GET /v1/generations/{name}` reports its progress."""

    name: str
    records_behind: int | None = Field(
        None, description="Of a switch: records of the log that this generation has yet to read. Null if not known."
    )
    seconds_left: float | None = Field(None, description="Until it has read them, by its mean rate so far.")
    position: str = Field(description="`<partition>:<offset>` on the curation topic.", examples=["0:3"])
