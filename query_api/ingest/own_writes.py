"""What this service wrote of nodes and edges, until its snapshots show it: the next write is checked against it too."""

from collections.abc import Callable, Mapping

from schemas.ids import DocumentKey

Positions = Mapping[int, int]


class OwnWrites:
    def __init__(self) -> None:
        self._positions: dict[DocumentKey, Positions] = {}

    def add(self, key: DocumentKey, positions: Positions) -> None:
        """`positions` are those of its newest record, {partition: offset}."""
        self._positions[key] = positions

    def unseen(self, is_shown: Callable[[Positions], bool], document_id: str | None = None) -> dict[int, int]:
        """The positions of all that is not shown yet, or of documents of this id; what is shown is forgotten."""
        self._positions = {key: each for key, each in self._positions.items() if not is_shown(each)}
        found: dict[int, int] = {}
        for key, positions in self._positions.items():
            if document_id in (None, key.document_id):
                for partition, offset in positions.items():
                    found[partition] = max(found.get(partition, -1), offset)
        return found
