"""Dead letters: how they name what was wrong in their headers, and how they are shown.

The headers are Kafka Connect's (`DeadLetterQueueReporter` in Apache Kafka), so that its tools read them, and
`thalweg.reason`.
"""

from pydantic import BaseModel, Field

CONNECT_PREFIX = "__connect.errors."
REASON_HEADER = "thalweg.reason"
OMITTED_HEADER = "thalweg.value.omitted"


class DeadLetterSource(BaseModel):
    """The record that became the dead letter."""

    topic: str
    partition: int
    offset: int


class DeadLetterSummary(BaseModel):
    """A dead letter in a list. Bytes that are no plain text are shown escaped, as in `a\\x00b`."""

    position: str = Field(description="`<partition>:<offset>` on the dead letters topic.", examples=["3:17"])
    key: str | None = Field(description="The record's key, escaped; null where it had none.")
    source: DeadLetterSource | None = Field(description="Null where the headers do not tell.")
    stage: str
    reason: str
    message: str
    at: str = Field(description="RFC 3339 time at which it was set apart.")
    bytes: int | None = Field(description="Size of the original value; null where the record had none.")
    content_bytes: int | None = Field(
        None,
        description="Size of the document in it, without the envelope around it: what was sent over HTTP. Null where "
        "the value cannot be told apart so far.",
    )
    omitted: str | None = Field(None, description="Set where the value was too large to be kept: how large it was.")


class DeadLetterDetail(DeadLetterSummary):
    headers: dict[str, str] = Field(description="The record's own headers, escaped.")
    preview: str = Field(description="The beginning of the original value, escaped.")
    preview_is_all: bool


class DeadLetterPage(BaseModel):
    """Newest first. With `next_cursor` there may be more, also where this page is empty: a page looks only so far."""

    dead_letters: list[DeadLetterSummary]
    next_cursor: str | None = None
    looked_at: int = Field(description="Records of the topic that this page took to find.")
