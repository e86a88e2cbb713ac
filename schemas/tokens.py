"""Tokens: what a write returns and a read takes as `after`: positions of the documents topic, and of which log.

Written `0:17,3:1042@5f3a9c1e`: positions, then the first digits of the topic's id in its cluster. A topic that was
deleted and made again, or that of another cluster, has another id. A token that names no log is accepted too: that is
how producers write it who know positions only.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from schemas.errors import MalformedToken
from schemas.ids import format_positions, parse_positions

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
            raise MalformedToken(f"{part[:40]!r} is of another log than what stands before it.")
        for partition, offset in parse_positions(position).items():
            merged.positions[partition] = max(merged.positions.get(partition, -1), offset)
        merged = merged._replace(log=merged.log or log or None)
    return merged


def merge_tokens(tokens: Iterable[str]) -> Token:
    """One token that covers all of these; an empty one covers nothing. Raises MalformedToken as `parse_token` does."""
    named = ",".join(token for token in tokens if token)
    return parse_token(named) if named else Token({})
