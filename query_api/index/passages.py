"""The passages a search has read: each is read from the store once, ahead of need where there is time to."""

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from query_api.index.snapshot import TextSnapshot

if TYPE_CHECKING:
    from indexer.read.rows import PassageRow


class PassageReader:
    """Reads passages of one snapshot and keeps them for the rest of the search. Safe to call from several threads.

    What it gives does not depend on what was read before, only how soon it does.
    """

    def __init__(self, text: TextSnapshot) -> None:
        self._text = text
        self._held: dict[str, PassageRow | None] = {}
        self._lock = threading.Lock()

    def read(self, passage_ids: Iterable[str]) -> "dict[str, PassageRow]":
        """The passages that are there, one call to the store for those not yet read. Raises TransientStoreError."""
        wanted = dict.fromkeys(passage_ids)
        with self._lock:
            unread = [identifier for identifier in wanted if identifier not in self._held]
            if unread:
                found = self._text.passages(unread)
                self._held.update((identifier, found.get(identifier)) for identifier in unread)
            rows = {identifier: self._held[identifier] for identifier in wanted}
        return {identifier: row for identifier, row in rows.items() if row is not None}
