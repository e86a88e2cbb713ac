"""What can go wrong while indexing, named by what to do about it."""

from typing import Self

from schemas.errors import Exit, Failure, MalformedEvent


class TransientStoreError(Exception):
    """A store could not take or give data just now (disk full, file locked, I/O error): retry the call in place."""


class StoreInDoubt(Exception):
    """A store failed half-way and must not be used further: end the process; the next start takes it from its newest
    snapshot and the log."""


class StoreInUse(Exception):
    """Another process holds the store open for writing: stop it, or use another data directory."""


class IncompatibleGeneration(Exception):
    """The stores were made with another model or pipeline: rebuild, or go back to the settings they were made with."""


class DamagedStore(Failure):
    """What is on disk is not what was written: the message says which file or row, and what mends it. Nothing read from
    there may be shown, and no other try helps."""

    exit_code = Exit.DAMAGED

    @classmethod
    def of_table(cls, table: str, error: Exception) -> Self:
        return cls(
            f"The table {table!r} cannot be decoded: {str(error)[:200]}. "
            "'thalweg verify' tells what is damaged, and what mends it."
        )

    @classmethod
    def of_row(cls, table: str, row: str, column: str) -> Self:
        return cls(
            f"The row {row[:80]!r} of the table {table!r} does not match its {column}. "
            "'thalweg verify' tells what else is damaged, and what mends it."
        )

    @classmethod
    def of_lost_row(cls, table: str, row: str) -> Self:
        return cls(
            f"The index of the table {table!r} does not find the row {row[:80]!r}, which is there. "
            "'thalweg verify' tells what is damaged, and what mends it."
        )

    @classmethod
    def of_document(cls, table: str, key: str, missing: int) -> Self:
        return cls(
            f"The table {table!r} has {abs(missing)} rows {'too few' if missing > 0 else 'too many'} of the document "
            f"{key[:80]!r}. 'thalweg verify' tells what else is damaged, and what mends it."
        )


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
