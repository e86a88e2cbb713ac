"""Receipts and tokens: what became of a record of `documents.v1`, and how a reader waits for it.

One receipt follows each record, on the same partition number. A token gives read-your-writes: a write returns it, and a
read takes it as `after`. It is written `0:17,3:1042@5f3a9c1e`: positions of the documents topic, then the first digits
of that topic's id in its cluster, since a topic that was deleted and made again has another id. The id may be left out,
for producers know positions only.
"""

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

import msgspec

from schemas.errors import MalformedToken
from schemas.ids import format_positions, parse_positions

NOTHING_DELETED = "There was no such document, so nothing was deleted."

UNKNOWN_FIELDS = "Left out, as no document has such a field: "
"""How the note begins that names an envelope's unknown fields."""

Outcome = Literal["indexed", "unchanged", "superseded", "deleted", "dead_lettered"]


class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`message` states why a record was refused, and is NOTHING_DELETED for a tombstone of an unknown document.
    `superseded_by` is a position, `traceparent` the record's own. `notes` are sentences about what of a record could
    not be read as intended.
    """

    key: str
    outcome: Outcome
    partition: int
    offset: int
    generation: str
    version: int | None = None
    revision: str | None = None
    superseded_by: str | None = None
    reason: str | None = None
    message: str | None = None
    notes: tuple[str, ...] = ()
    passages: int = 0
    chunks: int = 0
    embedded: int = 0
    entities: int = 0
    statements: int = 0
    seconds: dict[str, float] = {}
    produced_at_ms: int = 0
    finished_at_ms: int = 0
    traceparent: str | None = None


def encode_receipt(receipt: Receipt) -> bytes:
    return msgspec.json.encode(receipt)


_decoder = msgspec.json.Decoder(Receipt)


def decode_receipt(value: bytes) -> Receipt:
    """Raises msgspec.DecodeError (ValueError) for bytes that are not a receipt."""
    return _decoder.decode(value)


LOG_DIGITS = 8
_PART = "[0-9]{1,9}:[0-9]{1,18}(@[0-9a-f]{8})?"
TOKEN_PATTERN = f"^{_PART}(,{_PART})*$"
"""The pattern of a token, for the OpenAPI document."""


class Token(NamedTuple):
    """`positions` are {partition: offset}; `log` is None where the token does not name one."""

    positions: dict[int, int]
    log: str | None = None

    def __str__(self) -> str:
        positions = format_positions(self.positions)
        return f"{positions}@{self.log}" if self.log and positions else positions

    def is_reached(self, reached: Mapping[int, int]) -> bool:
        """Whether {partition: offset} has come as far as each of its positions."""
        return all(offset <= reached.get(partition, -1) for partition, offset in self.positions.items())


def log_name(topic_id: str) -> str | None:
    """How tokens name the log whose documents topic has this id (hex digits); None for the empty id."""
    return topic_id[:LOG_DIGITS] or None


def format_token(positions: Mapping[int, int], topic_id: str = "") -> str:
    """The token of {partition: offset} on the documents topic of this id; empty for no positions."""
    return str(Token(dict(positions), log_name(topic_id)))


def parse_token(text: str) -> Token:
    """Read a token, or several with commas between. Raises MalformedToken with the part that could not be read, and
    where parts are of different logs."""
    merged = Token({})
    for part in text.split(","):
        position, at, log = part.strip().partition("@")
        if at and not (len(log) == LOG_DIGITS and set(log) <= set("0123456789abcdef")):
            raise MalformedToken(f"{log[:40]!r} names no log; a token looks like '0:17,3:1042@5f3a9c1e'.")
        if merged.log and log and merged.log != log:
            raise MalformedToken(f"{part[:40]!r} is of another log than the part before it.")
        for partition, offset in parse_positions(position).items():
            merged.positions[partition] = max(merged.positions.get(partition, -1), offset)
        merged = merged._replace(log=merged.log or log or None)
    return merged


def merge_tokens(tokens: Iterable[str]) -> Token:
    """One token that covers all of these; an empty one covers nothing. Raises MalformedToken as `parse_token` does."""
    named = ",".join(token for token in tokens if token)
    return parse_token(named) if named else Token({})
