"""What goes to `provenance.v1`: retrievals, and feedback on their hits; each kept in a table of its own.

Records of both kinds are keyed by the retrieval's id. Feedback has a `type`; a record without is a retrieval.
"""

from typing import Annotated, Any

import msgspec

USAGE_HEADER = "Thalweg-Usage"  # of a search; with `none` analytics leave it out

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=2_048)]


class RetrievedHit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One hit: its rank, why, how likely it was relevant, and which position of the log it came from."""

    rank: int
    chunk_id: str
    passage_id: str
    document_id: str
    collection: str
    score: float
    scores: dict[str, float] = {}
    ranks: dict[str, int] = {}
    confidence: float | None = None
    path: list[dict[str, Any]] = []
    source: dict[str, Any] = {}


class Retrieval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`snapshot` is the answer's `snapshot`; `parameters` are those the search ran with. `answer` is what was answered,
    where that was asked for: where each cited sentence is, without its text. `traceparent` is the request's own W3C
    trace context. Analytics leave out what is not `counted`: evaluations and tests."""

    retrieval_id: str
    query: str
    collection: str | None
    mode: str
    at_ms: int
    snapshot: dict[str, Any]
    parameters: dict[str, Any]
    hits: list[RetrievedHit]
    answer: dict[str, Any] | None = None
    stages: dict[str, float] = {}
    failed_channels: dict[str, str] = {}
    seconds: float = 0.0
    outcome: str = "done"
    cached: bool = False
    traceparent: str | None = None
    counted: bool = True


def encode_retrieval(retrieval: Retrieval) -> bytes:
    return msgspec.json.encode(retrieval)


class Feedback(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="type",
    tag="feedback",
):
    """Feedback on a hit: `rating` from -1 (not helpful) to 1. `caller` names the source in the application's words; its
    later feedback on the same hit replaces this."""

    retrieval_id: Text
    chunk_id: Text
    collection: Text
    document_id: Text
    rank: Annotated[int, msgspec.Meta(ge=1)]
    rating: Annotated[float, msgspec.Meta(ge=-1, le=1)]
    at_ms: Annotated[int, msgspec.Meta(ge=0)]
    comment: Annotated[str, msgspec.Meta(max_length=2_000)] | None = None
    caller: Annotated[str, msgspec.Meta(max_length=128)] = ""


class _Kind(msgspec.Struct):
    type: str = "retrieval"


_decoder = msgspec.json.Decoder(Retrieval)
_kind_decoder = msgspec.json.Decoder(_Kind)
_feedback_decoder = msgspec.json.Decoder(Feedback)


def decode_retrieval(value: bytes) -> Retrieval:
    """Raises msgspec.DecodeError (ValueError) for bytes that are not a retrieval."""
    return _decoder.decode(value)


def encode_feedback(feedback: Feedback) -> bytes:
    return msgspec.json.encode(feedback)


def decode_provenance(value: bytes) -> Retrieval | Feedback:
    """A record of the topic. Raises msgspec.DecodeError (ValueError) for bytes that are neither."""
    kind = _kind_decoder.decode(value).type
    if kind == "feedback":
        return _feedback_decoder.decode(value)
    if kind == "retrieval":
        return _decoder.decode(value)
    raise msgspec.ValidationError(f"There is no record of type {kind[:40]!r} on this topic")
