"""Walking the graph by hand: what stands around a node, and a part of it small enough to draw.

A document goes by its record key, a chunk and an entity by their computed ids of 32 hex digits. Statements are shown as
edges between the entities that have a part in them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from query_api.index.graph.columns import CHUNK_EDGE_KINDS, key_of
from query_api.index.graph.identifiers import MISSING
from schemas.api import EdgeKind, GraphEdge, GraphNode, Neighbour, NodeDetail, NodeKind, Subgraph
from schemas.errors import MalformedEvent
from schemas.ids import DocumentKey, entity_id, normalise_name

if TYPE_CHECKING:
    from query_api.index.graph.rows import Statement
    from query_api.index.graph.view import GraphView

ID_DIGITS = 32
BOTH_WAYS = ("related_to",)
MOST_FROM_ONE_NODE = 2_000


@dataclass(frozen=True)
class Place:
    """A node of a view: its kind, and the number (document, chunk) or key (entity) it has there."""

    kind: NodeKind
    at: int


Labels = Callable[[Sequence[str]], dict[str, str]]
"""Chunk ids → what to show for each; asked once for all chunks of an answer."""


class Explorer:
    """Looks around in one graph view. `chunk_labels` reads the beginnings of chunks; it may block."""

    def __init__(self, view: "GraphView", chunk_labels: Labels) -> None:
        self._view = view
        self._chunk_labels = chunk_labels
        self._entity_ids: dict[int, str] = {}

    def find(self, identifier: str, collection: str) -> Place | None:
        """The node of a chunk's or entity's id, of a document's key, of a document's id in `collection`, or the entity
        of that name there; tried in this order."""
        view = self._view
        if len(identifier) == ID_DIGITS and all(digit in "0123456789abcdef" for digit in identifier):
            chunk = int(view.chunks([identifier])[0])
            if chunk != MISSING:
                return Place("chunk", chunk)
            entity = key_of(identifier)
            if view.entity_names([entity]):
                return Place("entity", entity)
        for key in _possible_keys(identifier, collection):
            document = view.document(key)
            if document is not None:
                return Place("document", document)
        named = view.entity(collection, normalise_name(identifier))
        return None if named is None else Place("entity", named)

    def around(self, place: Place, kinds: frozenset[EdgeKind] | None, limit: int) -> NodeDetail:
        """The node with at most `limit` neighbours, the heaviest edges first; equal ones in the order of the text."""
        edges, truncated = self._heaviest(place, kinds, limit)
        others = [other for other, _ in edges]
        nodes = self._nodes([place, *others])
        return NodeDetail(
            node=nodes[place],
            neighbours=[Neighbour(node=nodes[other], edge=edge) for other, edge in edges],
            truncated=truncated,
            graph_position=self._view.position,
        )

    def subgraph(
        self, place: Place, kinds: frozenset[EdgeKind] | None, depth: int, limit: int, *, outward: bool = False
    ) -> Subgraph:
        """What is within `depth` edges of the node, breadth first, of at most `limit` nodes; with `outward` only over
        edges that leave the node they are looked at from."""
        places: dict[Place, None] = {place: None}
        edges: dict[tuple[str, str, str, str | None], GraphEdge] = {}
        frontier, truncated = [place], False
        for _ in range(depth):
            following: list[Place] = []
            for here in frontier:
                found, more = self._heaviest(here, kinds, limit, outward=outward)
                truncated |= more
                for other, edge in found:
                    if other not in places:
                        if len(places) >= limit:
                            truncated = True
                            continue  # an edge to a node that is already here may still follow
                        places[other] = None
                        following.append(other)
                    edges[edge.source, edge.target, edge.kind, edge.label] = edge
            frontier = following
        return Subgraph(
            nodes=list(self._nodes(places).values()),
            edges=list(edges.values()),
            truncated=truncated,
            graph_position=self._view.position,
        )

    def _heaviest(
        self, place: Place, kinds: frozenset[EdgeKind] | None, limit: int, *, outward: bool = False
    ) -> tuple[list[tuple[Place, GraphEdge]], bool]:
        edges = [each for each in self._edges(place) if kinds is None or each[1].kind in kinds]
        if outward:
            here = self.node_id(place)
            edges = [each for each in edges if each[1].source == here]
        edges.sort(key=_by_weight)
        return edges[:limit], len(edges) > limit

    def _edges(self, place: Place) -> Iterator[tuple[Place, GraphEdge]]:
        match place.kind:
            case "document":
                yield from self._of_document(place)
            case "chunk":
                yield from self._of_chunk(place)
            case _:
                yield from self._of_entity(place)

    def _of_document(self, place: Place) -> Iterator[tuple[Place, GraphEdge]]:
        view, here = self._view, self.node_id(place)
        for passage in view.passages_of_document(place.at):
            for chunk in view.chunks_of_passage(passage):
                other = Place("chunk", chunk)
                yield other, _edge(here, self.node_id(other), "has_chunk")
        about = view.about_of(np.array([place.at]))
        for entity, weight in zip(about.entity.tolist(), about.weight.tolist(), strict=True):
            other = Place("entity", entity)
            yield other, _edge(here, self.node_id(other), "about", weight=weight)
        links = view.links_to(np.array([place.at]))
        for chunk, weight in zip(links.chunk.tolist(), links.weight.tolist(), strict=True):
            other = Place("chunk", chunk)
            yield other, _edge(self.node_id(other), here, "links_to", weight=weight)

    def _of_chunk(self, place: Place) -> Iterator[tuple[Place, GraphEdge]]:
        view, here = self._view, self.node_id(place)
        passage = np.array([view.passage_of_chunk(place.at)])
        document = Place("document", view.document_of_passage(int(passage[0])))
        yield document, _edge(self.node_id(document), here, "has_chunk")
        around = view.chunk_edges(np.array([place.at]))
        rows = zip(around.other.tolist(), around.kind.tolist(), around.weight.tolist(), strict=True)
        for other_chunk, kind, weight in dict.fromkeys(rows):  # one that leads both ways is there twice
            other, name = Place("chunk", other_chunk), CHUNK_EDGE_KINDS[kind]
            there = self.node_id(other)
            leaves = name in BOTH_WAYS or place.at < other_chunk  # the others lead on in the text
            yield other, _edge(here, there, name, weight) if leaves else _edge(there, here, name, weight)
        mentions = view.mentions_in(passage)
        for chunk, entity, count in zip(
            mentions.chunk.tolist(), mentions.entity.tolist(), mentions.times.tolist(), strict=True
        ):
            if chunk == place.at:
                other = Place("entity", entity)
                yield other, _edge(here, self.node_id(other), "mentions", weight=count)
        links = view.links_from(passage)
        for chunk, target, weight in zip(
            links.chunk.tolist(), links.document.tolist(), links.weight.tolist(), strict=True
        ):
            if chunk == place.at:
                other = Place("document", target)
                yield other, _edge(here, self.node_id(other), "links_to", weight=weight)
        yield from self._stated(here, (each for each in view.statements_in(passage) if each.chunk == place.at))

    def _of_entity(self, place: Place) -> Iterator[tuple[Place, GraphEdge]]:
        view, here = self._view, self.node_id(place)
        entity = np.array([place.at], dtype=np.uint64)
        about = view.about(entity)
        for document, weight in zip(about.document.tolist(), about.weight.tolist(), strict=True):
            other = Place("document", document)
            yield other, _edge(self.node_id(other), here, "about", weight=weight)
        mentions = view.mentions_of(entity)
        for chunk, count in list(zip(mentions.chunk.tolist(), mentions.times.tolist(), strict=True))[
            :MOST_FROM_ONE_NODE
        ]:
            other = Place("chunk", chunk)
            yield other, _edge(self.node_id(other), here, "mentions", weight=count)
        yield from self._stated(here, view.statements_with(entity))

    def _stated(self, here: str, statements: Iterable["Statement"]) -> Iterator[tuple[Place, GraphEdge]]:
        """A statement is shown as edges to each other entity that has a part in it, named by its predicate."""
        for statement in statements:
            for role in statement.roles:
                other = Place("entity", role.entity)
                if self.node_id(other) != here:
                    yield (
                        other,
                        _edge(
                            here,
                            self.node_id(other),
                            "states",
                            weight=statement.confidence,
                            label=f"{statement.predicate} ({role.name})",
                        ),
                    )

    def node_id(self, place: Place) -> str:
        if place.kind == "document":
            return str(self._view.document_key(place.at))
        if place.kind == "chunk":
            return self._view.chunk_id(place.at)
        if place.at not in self._entity_ids:
            names = self._view.entity_names([place.at])
            self._entity_ids[place.at] = entity_id(*names[place.at]) if names else f"{place.at:016x}"
        return self._entity_ids[place.at]

    def _nodes(self, places: Iterable[Place]) -> dict[Place, GraphNode]:
        wanted = dict.fromkeys(places)
        chunks = {place: self._view.chunk_id(place.at) for place in wanted if place.kind == "chunk"}
        beginnings = self._chunk_labels(list(chunks.values())) if chunks else {}
        entities = [place.at for place in wanted if place.kind == "entity"]
        names = self._view.entity_names(entities)
        labels = self._view.labels({entity: name for entity, (_, name) in names.items()})
        nodes = {}
        for place in wanted:
            if place.kind == "entity":
                collection, name = names.get(place.at, (None, ""))
                node = GraphNode(
                    id=self.node_id(place), kind="entity", label=labels.get(place.at, name), collection=collection
                )
            else:
                document = place.at if place.kind == "document" else self._document_of_chunk(place.at)
                key = self._view.document_key(document)
                title = self._view.title(document)
                node = GraphNode(
                    id=self.node_id(place),
                    kind=place.kind,
                    label=title if place.kind == "document" else beginnings.get(chunks[place], title),
                    collection=key.collection,
                    document_id=key.document_id,
                )
            nodes[place] = node
        return nodes

    def _document_of_chunk(self, chunk: int) -> int:
        return self._view.document_of_passage(self._view.passage_of_chunk(chunk))


def _by_weight(each: tuple[Place, GraphEdge]) -> tuple[float, str, int, str, str]:
    """The heaviest first, then by kind; what leads to chunks in the order of their text."""
    other, edge = each
    return -edge.weight, edge.kind, other.at if other.kind == "chunk" else 0, edge.source, edge.target


def _possible_keys(identifier: str, collection: str) -> Iterator[DocumentKey]:
    """The identifier as a record key, and as an id in the collection, where it can be one."""
    for parts in (identifier.split("/", 1), (collection, identifier)):
        if len(parts) == 2:
            with suppress(MalformedEvent):
                yield DocumentKey.checked(*parts)


def _edge(source: str, target: str, kind: str, weight: float = 1.0, label: str | None = None) -> GraphEdge:
    return GraphEdge.model_validate({"from": source, "to": target, "kind": kind, "weight": weight, "label": label})
