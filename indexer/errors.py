"""What can go wrong while indexing, named by what to do about it."""

from schemas.errors import MalformedEvent


class TransientStoreError(Exception):
    """A store could not take or give data just now (disk full, file locked, I/O error): retry the call in place."""


class StoreInDoubt(Exception):
    """A store failed half-way and must not be used further: end the process; the next start takes it from its newest
    snapshot and the log."""


class StoreInUse(Exception):
    """Another process holds the store open for writing: stop it, or use another data directory."""


class IncompatibleGeneration(Exception):
    """The stores were made with another model or pipeline: rebuild, or go back to the settings they were made with."""


class EncoderFailure(Exception):
    """The encoder gave no vectors. The message is fit for a person, and holds no part of a text and no secret."""


class EncoderUnavailable(EncoderFailure):
    """It cannot answer just now: repeat the call, and not before `retry_after_seconds` where it said so."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class EncoderBusy(EncoderUnavailable):
    """It takes no more just now, whatever the text: no text is to blame for it."""


class EncoderRefused(EncoderFailure):
    """It does not serve this key, or not this model, or with other vectors than are stored: mend the settings."""


class TextNotEncoded(EncoderFailure):
    """It answered, but not with a vector for each text: one of these may be what it cannot take."""


class UnparsableDocument(MalformedEvent):
    """The content is not what its media type says, or nothing readable is in it: a dead letter."""


class MalformedCursor(ValueError):
    """A list cursor that no page gave out: leave it away to start from the first page."""
