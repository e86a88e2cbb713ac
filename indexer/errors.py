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


class UnparsableDocument(MalformedEvent):
    """The content is not what its media type says, or nothing readable is in it: a dead letter."""


class MalformedCursor(ValueError):
    """A list cursor that no page gave out: leave it away to start from the first page."""
