"""The nodes and edges that people made, as one snapshot shows them: found, listed, and whole."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from indexer.read.rows import joined_text
from query_api.index.graph.hand_made_relations import made_nodes, made_relations
from query_api.index.search_snapshot import Snapshot
from schemas.edits_api import HandMadeEdge, HandMadeNode
from schemas.graph_delta import decode_attributes
from schemas.graph_edits import EDGE, NODE, EditKind
from schemas.ids import DocumentKey, Position


class MadeId(NamedTuple):
    """The id that people gave something, and the collection it is in."""

    id: str
    collection: str


class HandMade:
    """Reads tables: not for the event loop."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._view = snapshot.graph

    def holding(self, collections: Iterable[str], kind: EditKind, identifier: str) -> list[str]:
        """Those of the collections in which people made a node or an edge of this id."""
        return [each for each in collections if self._found(kind, [MadeId(identifier, each)])]

    def node_ids(self, collection: str | None, node_type: str | None = None) -> Iterator[MadeId]:
        for node in made_nodes(self._view.segments):
            where = self._view.document_key(node.document).collection
            if collection in (None, where) and node_type in (None, node.type):
                yield MadeId(node.name, where)

    def edge_ids(
        self, collection: str | None, node: str | None = None, predicate: str | None = None
    ) -> Iterator[MadeId]:
        """Of those that leave or enter what is named `node`."""
        for edge in made_relations(self._view.segments):
            where = self._view.document_key(edge.document).collection
            if collection not in (None, where) or predicate not in (None, edge.predicate):
                continue
            if node is None or node in (edge.source_name, edge.target_name):
                yield MadeId(edge.name, where)

    def nodes(self, ids: Iterable[MadeId]) -> list[HandMadeNode]:
        """Those of them that are there, in their order."""
        found = self._standing(NODE, ids)
        texts = self.texts(node.document for _, node, _ in found)
        return [
            HandMadeNode(
                id=node.name,
                collection=made.collection,
                position=position,
                label=node.label,
                type=node.type,
                text=texts[node.document],
                aliases=list(node.aliases),
                **decode_attributes(node.attributes),
            )
            for made, node, position in found
        ]

    def edges(self, ids: Iterable[MadeId]) -> list[HandMadeEdge]:
        """Those of them that are there, in their order."""
        return [
            HandMadeEdge(
                id=edge.name,
                collection=made.collection,
                position=position,
                source=edge.source_name,
                target=edge.target_name,
                predicate=edge.predicate,
                weight=edge.weight,
                missing=[end for end in ("source", "target") if getattr(edge, end) is None],
                **decode_attributes(edge.attributes),
            )
            for made, edge, position in self._standing(EDGE, ids)
        ]

    def type_of(self, collection: str, identifier: str) -> str | None:
        """The type of the node of this id; None where there is none."""
        found = self._found(NODE, [MadeId(identifier, collection)])
        return next((node.type for node in found.values()), None)

    def _standing(self, kind: EditKind, ids: Iterable[MadeId]) -> list[tuple[MadeId, Any, str]]:
        """Those that both stores hold, each with the position of its record in the log."""
        found = self._found(kind, ids)
        keys = {_key(kind, each): each for each in found}
        rows = self._snapshot.text.documents(list(keys))
        positions = {keys[key]: str(Position(row.partition, row.offset)) for key, row in rows.items() if row.live}
        return [(each, made, positions[each]) for each, made in found.items() if each in positions]

    def _found(self, kind: EditKind, ids: Iterable[MadeId]) -> dict[MadeId, Any]:
        numbers = {each: self._view.document(_key(kind, each)) for each in ids}
        wanted = {number: made for made, number in numbers.items() if number is not None}
        read = made_nodes if kind == NODE else made_relations
        by_id = {wanted[each.document]: each for each in read(self._view.segments, np.array([*wanted], dtype=np.int64))}
        return {made: by_id[made] for made in numbers if made in by_id}

    def texts(self, documents: Iterable[int]) -> dict[int, str]:
        """What each document says, as far as both stores hold it."""
        wanted = {
            number: [self._view.passage_id(each) for each in self._view.passages_of_document(number)]
            for number in documents
        }
        rows = self._snapshot.text.passages([each for ids in wanted.values() for each in ids])
        return {
            number: joined_text(sorted((rows[each] for each in ids if each in rows), key=lambda row: row.ordinal))
            for number, ids in wanted.items()
        }


def _key(kind: EditKind, made: MadeId) -> DocumentKey:
    return DocumentKey(made.collection, f"{kind}:{made.id}")  # of any collection that a request may name
