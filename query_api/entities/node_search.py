"""The nodes of the graph by name: documents by title or id, entities and hand-made nodes by label; and entities by what
is written of them.

No vectors of entities are kept: what is near a question changes with every document.
"""

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from query_api.entities.catalogue import EntityCatalogue, begins
from query_api.index.graph.graph_segments import ViewSegment
from query_api.index.graph.hand_made_relations import made_documents, made_nodes
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.typed_mentions import typed_mentions_in
from query_api.index.graph.view import GraphView
from query_api.index.text.text_segments import Candidate
from schemas.api import GraphNode
from schemas.ids import DocumentKey

ListedKind = Literal["hand_made", "entity", "document"]  # what has a name; chunks and sections go by their documents
MAX_LABEL_CHARACTERS = 200  # by which nodes are ordered
LISTED_KINDS: tuple[ListedKind, ...] = get_args(ListedKind)


class Place(NamedTuple):
    """Position of a node in a list: number of its kind, label in small letters, what distinguishes it in its
    collection, and that collection."""

    kind: str
    label: str
    unique: str
    collection: str


class _Named(NamedTuple):
    place: Place
    node: GraphNode


class NamedNodes:
    """Those of one view and its catalogue; of one collection, or with None of all."""

    def __init__(self, view: GraphView, catalogue: EntityCatalogue, collection: str | None) -> None:
        self._view = view
        self._catalogue = catalogue
        self._collection = collection

    def page(
        self, kinds: Collection[ListedKind], prefix: str, node_type: str | None, after: Place | None, limit: int
    ) -> tuple[list[GraphNode], Place | None]:
        """At most `limit` nodes with a word of the label, or an id, that begins so, in the order of kind and label; and
        the place of the last where more follow. `node_type` is that of hand-made nodes and entities."""
        found = self._all(kinds, prefix.strip(), node_type)
        following = (each for each in found if after is None or each.place > after)
        page = heapq.nsmallest(limit + 1, following, key=lambda each: each.place)
        more = len(page) > limit
        return [each.node for each in page[:limit]], page[limit - 1].place if more else None

    def called(self, name: str) -> dict[str, GraphNode]:
        """{collection: the hand-made node or the document there of this label or title}, in any case; the first of
        several."""
        wanted = name.strip().casefold()
        found = [
            each for each in self._all(("hand_made", "document"), name, None) if each.node.label.casefold() == wanted
        ]
        return {each.place.collection: each.node for each in sorted(found, key=lambda each: each.place, reverse=True)}

    def _all(self, kinds: Collection[ListedKind], prefix: str, node_type: str | None) -> Iterator[_Named]:
        if "hand_made" in kinds:
            yield from self._hand_made(prefix, node_type)
        if "entity" in kinds:
            yield from self._entities(prefix, node_type)
        if "document" in kinds and node_type is None:
            made = made_documents(self._view.segments)
            for part in self._view.segments:
                yield from self._documents(part, prefix, made[part.documents :][: part.segment.n_documents])

    def _hand_made(self, prefix: str, node_type: str | None) -> Iterator[_Named]:
        wanted = prefix.casefold()
        for node in made_nodes(self._view.segments):
            begins = node.name.casefold().startswith(wanted) or f" {node.label.casefold()}".find(f" {wanted}") >= 0
            collection = self._view.document_key(node.document).collection
            if begins and node_type in (None, node.type) and self._collection in (None, collection):
                yield _named(collection, "hand_made", node.name, node.label, node.name, node.type)

    def _entities(self, prefix: str, node_type: str | None) -> Iterator[_Named]:
        rows = self._catalogue.rows(collection=self._collection, prefix=prefix, entity_type=node_type)
        for row in rows.tolist():
            entity = self._catalogue[row]
            yield _named(entity.collection, "entity", entity.id, entity.label, entity.name, entity.type)

    def _documents(self, part: ViewSegment, prefix: str, made: NDArray[np.bool_]) -> Iterator[_Named]:
        segment = part.segment
        keep = ~part.deleted & ~made
        if prefix:
            keep = keep & (
                begins(segment.titles.array, prefix, words=True) | begins(segment.document_ids.array, prefix)
            )
        for row in np.flatnonzero(keep).tolist():
            collection = segment.collections[row]
            if self._collection in (None, collection):
                key = DocumentKey(collection, segment.document_ids[row])
                title = segment.titles[row]
                yield _named(collection, "document", str(key), title, key.document_id, None, key.document_id)


def _named(
    collection: str,
    kind: ListedKind,
    identifier: str,
    label: str,
    unique: str,
    of_type: str | None,
    document: str | None = None,
) -> _Named:
    node = GraphNode(id=identifier, kind=kind, label=label, collection=collection, document_id=document, type=of_type)
    place = Place(str(LISTED_KINDS.index(kind)), label.casefold()[:MAX_LABEL_CHARACTERS], unique, collection)
    return _Named(place, node)


NEAREST_CHUNKS = 200
MIN_COSINE = 0.2


def entities_by_meaning(view: GraphView, catalogue: EntityCatalogue, nearest: Sequence[Candidate]) -> list[int]:
    """Rows of the catalogue, the best first: the sum of the squared cosines of the chunks that mention each, divided
    by the square root of its mentions, so that what everything mentions does not win."""
    cosines = {each.chunk_id: each.score for each in nearest if each.chunk_id and each.score >= MIN_COSINE}
    chunks = view.chunks(list(cosines))
    scores: dict[int, float] = defaultdict(float)
    seen: set[tuple[int, int]] = set()
    found = np.flatnonzero(chunks != MISSING)
    weights = np.array(list(cosines.values()))[found] ** 2
    for mention in typed_mentions_in(view.segments, chunks[found]):
        row = catalogue.row_of(mention.entity)
        if row is None or (mention.chunk, row) in seen:
            continue
        seen.add((mention.chunk, row))
        scores[row] += float(weights[mention.query_index])
    return sorted(scores, key=lambda row: (-scores[row] / float(np.sqrt(catalogue.mentions[row])), row))
