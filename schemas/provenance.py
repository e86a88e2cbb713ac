"""The record of one retrieval, as it goes to `provenance.v1` and is kept in the `retrievals` table."""

from typing import Any

import msgspec


class RetrievedHit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One hit: where it stood, why, and which position of the log it came from."""

    rank: int
    chunk_id: str
    passage_id: str
    document_id: str
    collection: str
    score: float
    scores: dict[str, float] = {}
    ranks: dict[str, int] = {}
    path: list[dict[str, Any]] = []
    source: dict[str, Any] = {}


class Retrieval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`snapshot` is what the answer's `snapshot` said; `parameters` are those the search ran with. `traceparent` is the
    request's own W3C trace context."""

    retrieval_id: str
    query: str
    collection: str | None
    mode: str
    at_ms: int
    snapshot: dict[str, Any]
    parameters: dict[str, Any]
    hits: list[RetrievedHit]
    stages: dict[str, float] = {}
    failed_channels: dict[str, str] = {}
    seconds: float = 0.0
    outcome: str = "done"
    traceparent: str | None = None


def encode_retrieval(retrieval: Retrieval) -> bytes:
    return msgspec.json.encode(retrieval)


_decoder = msgspec.json.Decoder(Retrieval)


def decode_retrieval(value: bytes) -> Retrieval:
    """Raises msgspec.DecodeError (ValueError) for bytes that are no retrieval."""
    return _decoder.decode(value)
