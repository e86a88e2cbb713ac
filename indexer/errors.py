"""Errors of indexing, named by what to do about them."""

from typing import Self

from schemas.errors import Exit, Failure, MalformedEvent

HEALING = (
    "A worker makes the stores again from the log automatically, beside these: 'thalweg generations list' shows "
    "that is. Where none runs, start one with 'thalweg up'."
)


class TransientStoreError(Exception):
    """A store could not be read or written (disk full, file locked, I/O error): retry the call. What becomes one is
    decided in `lance_connection.store_errors` and `read_errors`; `StoreThread` retries."""


class IncompatibleGeneration(Exception):
    """Model mismatch: the stores were made with another model or pipeline. Rebuild, or restore the settings."""


class OtherFormat(Failure):
    """The stores have a format that this version does not read: nothing is read or written."""

    exit_code = Exit.USAGE


class DamagedStore(Failure):
    """Data on disk does not match its checksum: the message states which, and how to repair it. Do not retry."""

    exit_code = Exit.DAMAGED

    @classmethod
    def of_table(cls, table: str, error: Exception) -> Self:
        return cls(
            f"The table {table!r} cannot be decoded: {str(error)[:200]}. "
            "'thalweg verify' shows what is damaged, and what repairs it."
        )

    @classmethod
    def of_row(cls, table: str, row: str, column: str) -> Self:
        return cls(
            f"The row {row[:80]!r} of the table {table!r} does not match its {column}. "
            "'thalweg verify' shows what else is damaged, and what repairs it."
        )

    @classmethod
    def of_lost_row(cls, table: str, row: str) -> Self:
        return cls(
            f"The index of the table {table!r} does not find the row {row[:80]!r}, which is there. "
            "'thalweg verify' shows what is damaged, and what repairs it."
        )

    @classmethod
    def of_document(cls, table: str, key: str, missing: int) -> Self:
        return cls(
            f"The table {table!r} has {abs(missing)} rows {'too few' if missing > 0 else 'too many'} of the document "
            f"{key[:80]!r}. 'thalweg verify' shows what else is damaged, and what repairs it."
        )


class AnswersLater(Exception):
    """A model cannot answer now: retry, not before `retry_after_seconds` if given."""

    def __init__(self, message: str, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class EncoderFailure(Exception):
    """The encoder returned no vectors. The message is for people, without any text or secret."""


class EncoderUnavailable(EncoderFailure, AnswersLater):
    """The encoder cannot answer now."""


class EncoderBusy(EncoderUnavailable):
    """It is overloaded or rate-limited, whatever the text."""


class EncoderRefused(EncoderFailure):
    """It does not accept this key or model, or its vectors are not those stored: correct the settings."""


class TextNotEncoded(EncoderFailure):
    """It answered without a vector for each text: one of them may be what it cannot encode."""


class ExtractorFailure(Exception):
    """An extractor that a collection chose gave no entities. The message is for people, without any text or secret."""


class ExtractorUnavailable(ExtractorFailure, AnswersLater):
    """The extractor cannot answer now."""


class ExtractorRefused(ExtractorFailure):
    """It does not accept this key or model: correct the settings."""


class UnusableAnswer(ExtractorFailure):
    """It answered something else than was asked for: asked again, it may answer better."""


class ChatModelFailure(Exception):
    """The language model gave no answer, or a part of one. The message is for people, without any text or secret."""


class UnparsableDocument(MalformedEvent):
    """The content does not match its media type, or has no readable text: a dead letter."""
