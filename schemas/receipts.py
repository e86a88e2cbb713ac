"""A receipt: what became of one record of `documents.v1`. One follows each record, on the same partition number."""

from typing import Literal

import msgspec

NOTHING_DELETED = "There was no such document, so nothing was deleted."

Outcome = Literal["indexed", "unchanged", "superseded", "deleted", "dead_lettered"]


class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`graph_offset` is the offset on the graph topic that a reader of the graph must have reached to see this record's
    effect; -1 when the record changed nothing there.
    `message` says why a record was refused, and is NOTHING_DELETED for a tombstone that met no document.
    `superseded_by` is a position, `traceparent` the record's own. `notes` are sentences about what of an indexed
    document could not be read as it was meant.
    """

    key: str
    outcome: Outcome
    partition: int
    offset: int
    generation: str
    graph_offset: int = -1
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
    """Raises msgspec.DecodeError (ValueError) for bytes that are no receipt."""
    return _decoder.decode(value)
