"""Dead letters: how they name what was wrong in their headers, and how they are shown.

The headers are Kafka Connect's (`DeadLetterQueueReporter` in Apache Kafka), so that its tools read them, and
`thalweg.reason`, one of `schemas.errors.DeadLetterReason`. A record that was redriven carries `thalweg.attempts`, a
JSON list of its earlier dead letters, and so does the dead letter it becomes when it fails again.

An order to skip an unreadable batch is a record of the curation topic with the key
`<topic>/skip/<partition>:<first>-<last>`. Its value, JSON, repeats it for people, with the reason; a null value takes
the order back.
"""

import json
import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

CONNECT_PREFIX = "__connect.errors."
REASON_HEADER = "thalweg.reason"
OMITTED_HEADER = "thalweg.value.omitted"
ATTEMPTS_HEADER = "thalweg.attempts"
MAX_EARLIER_ATTEMPTS = 10
MAX_ATTEMPTS_BYTES = 8 * 1024
LAST_OFFSET = "last.offset"
UNREADABLE_BATCH = "unreadable_batch"

POSITION_PATTERN = r"^[0-9]{1,9}:[0-9]{1,18}$"
_SKIP_KEY = re.compile(rb"([^/]+)/skip/(\d{1,9}):(\d{1,18})-(\d{1,18})")


def is_bookkeeping(header: str) -> bool:
    """Whether a header was added when the record was set apart or redriven; it came with all others."""
    return header.startswith(CONNECT_PREFIX) or header in (REASON_HEADER, OMITTED_HEADER, ATTEMPTS_HEADER)


class DeadLetterSource(BaseModel):
    """The record that became the dead letter; of a whole batch, the first."""

    topic: str
    partition: int
    offset: int
    last_offset: int | None = Field(None, description="The last one of a batch that could not be read.")


class SkipOrder(BaseModel):
    """Which batch to skip, by any offset of it."""

    model_config = ConfigDict(extra="forbid")

    topic: str = Field(min_length=1, max_length=249)
    partition: int = Field(ge=0, lt=10**9)
    offset: int = Field(ge=0, lt=2**63)


class SkippedBatch(BaseModel):
    """The batch that readers skip from now on, with its first and last offset. Its records are lost to them."""

    topic: str
    partition: int
    first: int
    last: int
    fault: str


def skipped_batch_headers(
    topic: str, partition: int, first: int, last: int, fault: str
) -> tuple[tuple[str, bytes], ...]:
    """Those of the dead letter for a batch that was skipped; it has no key, and an empty value."""
    values = {
        "topic": topic,
        "partition": str(partition),
        "offset": str(first),
        LAST_OFFSET: str(last),
        "connector.name": "thalweg",
        "task.id": "0",
        "stage": "read",
        "class.name": "thalweg.read",
        "exception.class.name": "kafka_client.unreadable_batches.UnreadableBatch",
        "exception.message": f"The batch at offsets {first} to {last} could not be read ({fault}) and was skipped.",
    }
    headers = tuple((CONNECT_PREFIX + name, text.encode()) for name, text in values.items())
    return (*headers, (REASON_HEADER, UNREADABLE_BATCH.encode()))


class EarlierAttempt(BaseModel):
    """A time at which the same record failed, before it was redriven."""

    model_config = ConfigDict(frozen=True)

    number: int = Field(ge=1, lt=2**31, description="1 for the first.")
    reason: str = Field(max_length=100)
    stage: str = Field(max_length=40)
    at: str = Field(max_length=40, description="RFC 3339 time at which it was set apart.")
    letter: str = Field(pattern=POSITION_PATTERN, description="Its position on the dead letters topic.")
    source: str = Field(
        pattern=POSITION_PATTERN, description="The position of the record that failed, on its own topic."
    )

    @property
    def source_offset(self) -> int:
        return int(self.source.partition(":")[2])


_attempts = TypeAdapter(list[EarlierAttempt])


def encode_attempts(attempts: Sequence[EarlierAttempt]) -> bytes:
    """Of more than MAX_EARLIER_ATTEMPTS, the first and the last ones."""
    kept = attempts if len(attempts) <= MAX_EARLIER_ATTEMPTS else [attempts[0], *attempts[1 - MAX_EARLIER_ATTEMPTS :]]
    return _attempts.dump_json(list(kept))


def decode_attempts(header: bytes | None) -> list[EarlierAttempt]:
    """Oldest first; none for a header that this program did not write: producers send what they like."""
    if not header or len(header) > MAX_ATTEMPTS_BYTES:
        return []
    try:
        return _attempts.validate_json(header)
    except ValidationError:
        return []


LetterStateName = Literal["open", "superseded", "resolved"]


class DeadLetterSummary(BaseModel):
    """A dead letter in a list. Bytes that are not plain text are shown escaped, as in `a\\x00b`."""

    position: str = Field(description="`<partition>:<offset>` on the dead letters topic.", examples=["3:17"])
    key: str | None = Field(description="The record's key, escaped; null where it had none.")
    collection: str | None = Field(None, description="That the key begins with; null where it names none.")
    document_id: str | None = Field(None, description="The document's, where the record is of one and names it.")
    source: DeadLetterSource | None = Field(description="Null where the headers do not have it.")
    stage: str
    reason: str
    reason_title: str = Field("", description="The reason in a few words for people.")
    advice: str = Field("", description="What to do about it.")
    message: str
    at: str = Field(description="RFC 3339 time at which it was set apart.")
    bytes: int | None = Field(description="Size of the original value; null where the record had none.")
    content_bytes: int | None = Field(
        None,
        description="Size of the document in it, without the envelope around it: what was sent over HTTP. Null where "
        "the value cannot be decoded so far.",
    )
    omitted: str | None = Field(None, description="Set where the value was too large to be kept: how large it was.")
    state: LetterStateName = Field(
        "open",
        description="`resolved`: a later record of what it names was indexed or deleted. `superseded`: a later dead "
        "letter names the same. Else `open`: what it names is missing, or is served as it was before.",
    )
    state_message: str | None = Field(None, description="What became of it, where it is not open.")
    attempt: int = Field(1, description="How often the record has failed, this time included.")
    earlier_attempts: list[EarlierAttempt] = Field(
        [], description=f"Oldest first; of more than {MAX_EARLIER_ATTEMPTS}, the first and the last ones."
    )


class DeadLetterDetail(DeadLetterSummary):
    headers: dict[str, str] = Field(description="The record's own headers, escaped.")
    preview: str = Field(description="The beginning of the original value, escaped.")
    preview_is_all: bool


class ReasonCount(BaseModel):
    """How many dead letters are open for a reason."""

    reason: str
    title: str = Field(description="The reason in a few words for people.")
    open: int


class DeadLetterPage(BaseModel):
    """Newest first. With `next_cursor` there may be more, also where this page is empty: a page looks only so far."""

    dead_letters: list[DeadLetterSummary]
    next_cursor: str | None = None
    looked_at: int = Field(description="Records of the topic that this page took to find.")
    open: int | None = Field(
        None,
        description="How many letters of this collection, document and reason are open, of the newest 20,000 that are "
        "kept; null while that is not known.",
    )
    open_reasons: list[ReasonCount] = Field(
        [], description="The same by reason, whichever of them was asked for; the most frequent first."
    )


class Extent(NamedTuple):
    """The offsets of a batch, both inclusive."""

    topic: str
    partition: int
    first: int
    last: int


def skip_key(extent: Extent) -> bytes:
    return f"{extent.topic}/skip/{extent.partition}:{extent.first}-{extent.last}".encode()


def encode_skip(extent: Extent, reason: str) -> bytes:
    return json.dumps({**extent._asdict(), "reason": reason}).encode()


def decode_skip(key: bytes | None) -> Extent | None:
    """The batch that a key of the curation topic names; None for a record of another kind."""
    found = _SKIP_KEY.fullmatch(key or b"")
    if found is None:
        return None
    topic, partition, first, last = found.groups()
    return Extent(topic.decode("utf-8", "replace"), int(partition), int(first), int(last))
