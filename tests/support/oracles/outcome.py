"""The whole truth about ordering in twenty lines, kept apart from the code that is tested: what one reader of the log,
who reads every record once and in order, has at the end."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple


class Change(NamedTuple):
    """One record: of a document, its new text or None for a tombstone, with a version or without."""

    document: str
    text: str | None
    version: int | None


@dataclass
class Document:
    """`version` is a floor that outlives a tombstone."""

    text: str | None = None
    version: int | None = None


@dataclass
class Outcome:
    """The dictionary the stores are held against."""

    documents: dict[str, Document] = field(default_factory=lambda: defaultdict(Document))

    @classmethod
    def of(cls, changes: Iterable[Change]) -> "Outcome":
        """Of the changes that can be indexed, in the order of the log."""
        outcome = cls()
        for change in changes:
            outcome.apply(change)
        return outcome

    @property
    def live(self) -> dict[str, Document]:
        return {name: document for name, document in self.documents.items() if document.text is not None}

    def apply(self, change: Change) -> bool:
        """Whether it won."""
        known = change.document in self.documents
        held = self.documents[change.document]
        if change.version is not None and held.version is not None:
            is_late = change.version < held.version
            is_for_the_dead = known and held.text is None and change.version == held.version
            if is_late or is_for_the_dead:
                return False
        held.text = change.text
        held.version = held.version if change.version is None else change.version
        return True
