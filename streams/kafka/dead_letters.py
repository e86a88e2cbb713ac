"""Dead letters: records that no retry can help, unchanged, with what was wrong in their headers.

The headers are those of `schemas.dead_letters`. There is no stack trace and no part of a document in them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from schemas.dead_letters import CONNECT_PREFIX, OMITTED_HEADER, REASON_HEADER
from schemas.errors import MalformedEvent

Headers = Sequence[tuple[str, bytes]]
Stage = Literal["decode", "prepare", "embed", "link", "store"]

MAX_MESSAGE_CHARACTERS = 2_000


@dataclass(frozen=True)
class DeadLetter:
    """The original record's key, value and place; why, for counting (`reason`) and for a person (`message`)."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    stage: Stage
    reason: str
    message: str
    exception: str

    @classmethod
    def of(
        cls,
        topic: str,
        partition: int,
        offset: int,
        *,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        stage: Stage,
        error: Exception,
    ) -> "DeadLetter":
        """Of an error that is not ours only the class is named: its message may quote the document."""
        kind = f"{type(error).__module__}.{type(error).__qualname__}"
        if isinstance(error, MalformedEvent):
            reason, message = error.reason, str(error)
        else:
            reason, message = "failed", f"Indexing failed unexpectedly ({kind}). Send it again after the next release."
        return cls(topic, partition, offset, key, value, headers, stage, reason, message, kind)


def letter_headers(letter: DeadLetter) -> list[tuple[str, bytes]]:
    """The original headers, without those of an earlier dead letter, and those of this error."""
    original = [
        (name, value)
        for name, value in letter.headers
        if not name.startswith(CONNECT_PREFIX) and name not in (REASON_HEADER, OMITTED_HEADER)
    ]
    error = {
        "topic": letter.topic,
        "partition": str(letter.partition),
        "offset": str(letter.offset),
        "connector.name": "thalweg",
        "task.id": "0",
        "stage": letter.stage,
        "class.name": f"thalweg.{letter.stage}",
        "exception.class.name": letter.exception,
        "exception.message": letter.message[:MAX_MESSAGE_CHARACTERS],
    }
    encoded = [(CONNECT_PREFIX + name, text.encode("utf-8", "replace")) for name, text in error.items()]
    return [*original, *encoded, (REASON_HEADER, letter.reason.encode("utf-8", "replace"))]


def omitted_headers(letter: DeadLetter) -> list[tuple[str, bytes]]:
    """For a record that does not fit the dead letters topic with its new headers: it is sent with an empty value.

    The source's topic, partition and offset, in the other headers, say where its bytes still are.
    """
    size = len(letter.value or b"")
    ours = (CONNECT_PREFIX, REASON_HEADER)
    headers = [(name, value) for name, value in letter_headers(letter) if name.startswith(ours)]
    return [*headers, (OMITTED_HEADER, f"{size} bytes".encode())]
