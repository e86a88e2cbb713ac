"""Exploring the graph: the neighbours of a node, and a subgraph small enough to draw.

A document goes by its record key, a chunk and an entity by their computed ids of 32 hex digits, a hand-made node by the
id that people gave it: it represents the document that states it, the chunks of that, and entities that have its names
alone. A fact is one edge, from the subject to the object, however many statements say so; hand-made edges are what they
are. A term of the ranking that is not an entity is shown only where a fact or an edge of people ends in it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, product
from typing import NamedTuple

import numpy as np

from query_api.index.graph.builder import CHUNK_EDGE_KINDS
from query_api.index.graph.edges import rows_of
from query_api.index.graph.hand_made_relations import (
    End,
    MadeNode,
    made_nodes,
    made_relations,
    node_named,
    relations_of,
)
from query_api.index.graph.identifiers import MISSING, Keys, key_of
from query_api.index.graph.typed_mentions import typed_mentions_in, typed_mentions_of
from query_api.index.graph.view import GraphView
from schemas.api import GraphEdge, GraphNode, Neighbour, NodeDetail, NodeKind, Subgraph
from schemas.choices import EdgeKind
from schemas.errors import MalformedEvent
from schemas.ids import COMPUTED_ID, DocumentKey, bare_name, entity_id
from schemas.predicates import fact_strength, predicate_strength

BOTH_WAYS = ("related_to",)
EXPLAINS = "explains"
DOCUMENTS = ("document", "hand_made")
MAX_MENTIONS = 2_000


@dataclass(frozen=True)
class NodeRef:
    """A node of a view: its kind, and the number (document, chunk) or key (entity) it has there; of a hand-made one
    that of its document."""

    kind: NodeKind
    at: int


Labels = Callable[[Sequence[str]], dict[str, str]]
"""Chunk ids → what to show for each; asked once for all chunks of an answer."""


class KnownEntity(NamedTuple):
    """As a catalogue has it: `members` are the keys of its names, the first stands for all of them."""

    label: str = ""
    type: str | None = None
    members: tuple[int, ...] = ()


EntityNames = Callable[[int], KnownEntity | None]
"""Key of an entity → what it is in the catalogue, without a label to go by its own name; None for another name."""


class _Edge(NamedTuple):
    """From a node to another, or with `inverse` from that one."""

    other: NodeRef
    kind: str
    weight: float = 1.0
    label: str | None = None
    inverse: bool = False


class Explorer:
    """Explores one graph view. `chunk_labels` reads the beginnings of chunks; it may block."""

    def __init__(self, view: GraphView, chunk_labels: Labels, names: EntityNames = lambda _: KnownEntity()) -> None:
        self._view = view
        self._chunk_labels = chunk_labels
        self._entity_names = names
        self._entity_ids: dict[int, str] = {}
        self._wholes: dict[NodeRef, NodeRef] = {}
        self._made: dict[int, MadeNode | None] = {}
        self._has_made = any(len(part.segment.node_keys.keys) for part in view.segments)

    def find(self, identifier: str, collection: str) -> NodeRef | None:
        """The hand-made node of this id in `collection`, the node of a chunk's or entity's id, of a document's key, of
        a document's id in `collection`, or the entity of that name there; tried in this order."""
        view = self._view
        made = node_named(view.segments, collection, identifier)
        if made is not None:
            return NodeRef("hand_made", made)
        if COMPUTED_ID.fullmatch(identifier):
            chunk = int(view.chunks([identifier])[0])
            if chunk != MISSING:
                return self._whole(NodeRef("chunk", chunk))
            entity = key_of(identifier)
            if view.entity_names([entity]):
                return self._whole(NodeRef("entity", entity))
        for key in _possible_keys(identifier, collection):
            document = view.document(key)
            if document is not None and next(made_relations(view.segments, np.array([document])), None) is None:
                return self._document_ref(document)
        named = view.entity(collection, bare_name(identifier))
        return None if named is None else self._whole(NodeRef("entity", named))

    def around(self, ref: NodeRef, kinds: frozenset[EdgeKind] | None, limit: int) -> NodeDetail:
        """The node with at most `limit` neighbours, the heaviest edges first; equal ones in the order of the text."""
        edges, truncated = self._heaviest(ref, kinds, limit)
        others = [other for other, _ in edges]
        nodes = self.nodes([ref, *others])
        return NodeDetail(
            node=nodes[ref],
            neighbours=[Neighbour(node=nodes[other], edge=edge) for other, edge in edges],
            truncated=truncated,
            graph_position=self._view.position,
        )

    def subgraph(
        self, ref: NodeRef, kinds: frozenset[EdgeKind] | None, depth: int, limit: int, *, outward: bool = False
    ) -> Subgraph:
        """What is within `depth` edges of the node, breadth first, of at most `limit` nodes; with `outward` only over
        edges that leave the node they are looked at from."""
        refs: dict[NodeRef, None] = {ref: None}
        edges: dict[tuple[str, str, str, str | None], GraphEdge] = {}
        frontier, truncated = [ref], False
        for _ in range(depth):
            following: list[NodeRef] = []
            for here in frontier:
                found, more = self._heaviest(here, kinds, limit, outward=outward)
                truncated |= more
                for other, edge in found:
                    if other not in refs:
                        if len(refs) >= limit:
                            truncated = True
                            continue  # an edge to a node that is already here may still follow
                        refs[other] = None
                        following.append(other)
                    edges[edge.source, edge.target, edge.kind, edge.label] = edge
            frontier = following
        return Subgraph(
            nodes=list(self.nodes(refs).values()),
            edges=list(edges.values()),
            truncated=truncated,
            graph_position=self._view.position,
        )

    def heaviest(self, ref: NodeRef, limit: int) -> tuple[dict[NodeRef, GraphEdge], bool]:
        """The heaviest edge to each of at most `limit` other nodes, and whether there are more."""
        best: dict[NodeRef, GraphEdge] = {}
        for other, edge in sorted(self._edges(ref), key=_by_weight):
            if other != ref:
                best.setdefault(other, edge)
        return dict(islice(best.items(), limit)), len(best) > limit

    def document_of(self, ref: NodeRef) -> int | None:
        """The number of the document that a node is or is a chunk of; None for an entity."""
        if ref.kind in DOCUMENTS:
            return ref.at
        return self._document_of_chunk(ref.at) if ref.kind == "chunk" else None

    def _heaviest(
        self, ref: NodeRef, kinds: frozenset[EdgeKind] | None, limit: int, *, outward: bool = False
    ) -> tuple[list[tuple[NodeRef, GraphEdge]], bool]:
        edges = [each for each in self._edges(ref) if kinds is None or each[1].kind in kinds]
        if outward:
            here = self.node_id(ref)
            edges = [each for each in edges if each[1].source == here]
        edges.sort(key=_by_weight)
        return edges[:limit], len(edges) > limit

    def _edges(self, ref: NodeRef) -> Iterator[tuple[NodeRef, GraphEdge]]:
        """Those of all that the node represents, but for what joins that itself."""
        here, parts = self.node_id(ref), list(self._parts(ref))
        names = np.array([each.at for each in parts if each.kind == "entity"], dtype=np.uint64)
        of_parts = ((part, edge) for part in parts for edge in self._edges_of(part))
        for part, edge in chain(((ref, fact) for fact in self._facts(ref, names)), of_parts):
            whole = self._whole(edge.other)
            is_within = whole == ref and (part, edge.other) != (ref, ref)
            is_twice = part != ref and (part.kind, edge.kind) == ("chunk", "states")  # the entities' facts are here
            is_term = whole.kind == "entity" and self._entity_names(whole.at) is None
            if not (is_within or is_twice or (is_term and edge.kind not in ("states", "hand_made"))):
                there = self.node_id(whole)
                source, target = (there, here) if edge.inverse else (here, there)
                fields = {"from": source, "to": target, "kind": edge.kind, "weight": edge.weight, "label": edge.label}
                yield whole, GraphEdge.model_validate(fields)

    def _parts(self, ref: NodeRef) -> Iterator[NodeRef]:
        yield ref
        named = [ref.at] if ref.kind == "entity" else []
        if ref.kind == "hand_made":
            passages = self._view.passages_of_document(ref.at)
            yield from (NodeRef("chunk", chunk) for each in passages for chunk in self._view.chunks_of_passage(each))
            named = self._view.about_of(np.array([ref.at])).entity.tolist()
        members = dict.fromkeys(NodeRef("entity", each) for key in named for each in self._members(key))
        yield from (each for each in members if each != ref and self._whole(each) == ref)

    def _members(self, key: int) -> tuple[int, ...]:
        known = self._entity_names(key)
        return (known and known.members) or (key,)

    def _whole(self, ref: NodeRef) -> NodeRef:
        """The node that represents this one: a hand-made one, the first of an entity's names, or itself."""
        if ref in self._wholes:
            return self._wholes[ref]
        whole, said_by = ref, list[int]()
        if ref.kind == "entity":
            names = self._members(ref.at)
            whole = NodeRef("entity", names[0])
            if self._has_made:
                said_by = np.unique(self._view.about(np.array(names, dtype=np.uint64)).document).tolist()
        elif ref.kind == "chunk" and self._has_made:
            said_by = [self._document_of_chunk(ref.at)]
        made = [each for each in map(self._document_ref, said_by) if each.kind == "hand_made"]
        self._wholes[ref] = made[0] if len(made) == 1 else whole
        return self._wholes[ref]

    def _edges_of(self, ref: NodeRef) -> Iterator[_Edge]:
        match ref.kind:
            case "document" | "hand_made":
                yield from self._of_document(ref)
            case "chunk":
                yield from self._of_chunk(ref)
            case "entity":
                yield from self._of_entity(ref)
        end = self.end_of(ref)  # of edges that people made, in the order of their ids
        for relation in sorted(relations_of(self._view.segments, [end]), key=lambda each: each.name):
            for other, inverse in relation.others(end):
                yield _Edge(self.ref_of(other), "hand_made", relation.weight, relation.predicate, inverse)

    def _of_document(self, ref: NodeRef) -> Iterator[_Edge]:
        view = self._view
        for passage in view.passages_of_document(ref.at):
            for chunk in view.chunks_of_passage(passage):
                yield _Edge(NodeRef("chunk", chunk), "has_chunk")
        about = view.about_of(np.array([ref.at]), least=0.0)
        for entity, weight in rows_of(about.entity, about.weight):
            yield _Edge(NodeRef("entity", entity), "about", weight, EXPLAINS)
        links = view.links_to(np.array([ref.at]))
        for chunk, weight in rows_of(links.chunk, links.weight):
            yield _Edge(NodeRef("chunk", chunk), "links_to", weight, inverse=True)

    def _of_chunk(self, ref: NodeRef) -> Iterator[_Edge]:
        view, passage = self._view, np.array([self._view.passage_of_chunk(ref.at)])
        yield _Edge(self._document_ref(view.document_of_passage(int(passage[0]))), "has_chunk", inverse=True)
        around = view.chunk_edges(np.array([ref.at]))
        rows = rows_of(around.other, around.kind, around.weight)
        for other, kind, weight in dict.fromkeys(rows):  # one that leads both ways is there twice
            leaves = CHUNK_EDGE_KINDS[kind] in BOTH_WAYS or ref.at < other  # the others lead on in the text
            yield _Edge(NodeRef("chunk", other), CHUNK_EDGE_KINDS[kind], weight, inverse=not leaves)
        for mention in typed_mentions_in(view.segments, np.array([ref.at])):
            yield _Edge(NodeRef("entity", mention.entity), "mentions", mention.times)
        links = view.links_from(passage)
        for chunk, target, weight in rows_of(links.chunk, links.document, links.weight):
            if chunk == ref.at:
                yield _Edge(self._document_ref(target), "links_to", weight)
        for statement in view.statements_in(passage):
            for role in statement.roles if statement.chunk == ref.at else ():
                label = f"{statement.predicate} ({role.name})"
                yield _Edge(NodeRef("entity", role.entity), "states", statement.confidence, label)

    def _of_entity(self, ref: NodeRef) -> Iterator[_Edge]:
        view, entity = self._view, np.array([ref.at], dtype=np.uint64)
        about = view.about(entity, least=0.0)
        for document, weight in rows_of(about.document, about.weight):
            yield _Edge(self._document_ref(document), "about", weight, EXPLAINS, inverse=True)
        for mention in islice(typed_mentions_of(view.segments, entity), MAX_MENTIONS):
            yield _Edge(NodeRef("chunk", mention.chunk), "mentions", mention.times, inverse=True)

    def _facts(self, here: NodeRef, names: Keys) -> Iterator[_Edge]:
        """The facts that a node of these names has a part in: one edge from the subject to the object, or to what else
        has a part, which is then named with its role. It weighs more for each further statement."""
        facts: Counter[tuple[NodeRef, str, NodeRef]] = Counter()
        for statement in {each.key: each for each in self._view.statements_with(names)}.values():
            subjects = [role.entity for role in statement.roles if role.name == "subject"]
            for subject, role in product(subjects[:1], statement.roles):
                source, target = (self._whole(NodeRef("entity", each)) for each in (subject, role.entity))
                if role.name != "subject" and here in (source, target) and source != target:
                    further = "" if role.name == "object" else f" ({role.name})"
                    facts[source, f"{statement.predicate}{further}", target] += 1
        for (source, label, target), stated in facts.items():
            strength = fact_strength(predicate_strength(label.partition(" ")[0]), stated)
            yield _Edge(target if here == source else source, "states", strength, label, here != source)

    @staticmethod
    def end_of(ref: NodeRef) -> End:
        """As an end of a relation."""
        return End("document" if ref.kind == "hand_made" else ref.kind, ref.at)

    def ref_of(self, end: End) -> NodeRef:
        """The node that an end of a relation is."""
        return self._document_ref(end.at) if end.kind == "document" else NodeRef(end.kind, end.at)

    def _document_ref(self, document: int) -> NodeRef:
        if document not in self._made:
            self._made[document] = next(made_nodes(self._view.segments, np.array([document])), None)
        return NodeRef("document" if self._made[document] is None else "hand_made", document)

    def _node(self, document: int) -> MadeNode:
        self._document_ref(document)
        made = self._made[document]
        if made is None:
            raise LookupError(f"The document {document} is not a hand-made node.")
        return made

    def collection_of(self, ref: NodeRef) -> str:
        """ "" for an entity that no live document names."""
        if ref.kind == "entity":
            return self._view.entity_names([ref.at]).get(ref.at, ("", ""))[0]
        document = ref.at if ref.kind in DOCUMENTS else self._document_of_chunk(ref.at)
        return self._view.document_key(document).collection

    def node_id(self, ref: NodeRef) -> str:
        if ref.kind == "hand_made":
            return self._node(ref.at).name
        if ref.kind == "document":
            return str(self._view.document_key(ref.at))
        if ref.kind == "chunk":
            return self._view.chunk_id(ref.at)
        if ref.at not in self._entity_ids:
            names = self._view.entity_names([ref.at])
            self._entity_ids[ref.at] = entity_id(*names[ref.at]) if names else f"{ref.at:016x}"
        return self._entity_ids[ref.at]

    def nodes(self, refs: Iterable[NodeRef]) -> dict[NodeRef, GraphNode]:
        """What is shown for each of them."""
        wanted = dict.fromkeys(refs)
        chunks = {ref: self._view.chunk_id(ref.at) for ref in wanted if ref.kind == "chunk"}
        beginnings = self._chunk_labels(list(chunks.values())) if chunks else {}
        entities = [ref.at for ref in wanted if ref.kind == "entity"]
        names = self._view.entity_names(entities)
        labels = self._view.labels({entity: name for entity, (_, name) in names.items()})
        nodes = {}
        for ref in wanted:
            known = KnownEntity()
            if ref.kind == "entity":
                known = self._entity_names(ref.at) or known
                (collection, label), document_id = names.get(ref.at, (None, "")), None
                label = labels.get(ref.at, label)
            else:
                document = self._document_of_chunk(ref.at) if ref.kind == "chunk" else ref.at
                collection, document_id = self._view.document_key(document)
                label = beginnings.get(chunks.get(ref, ""), self._view.title(document))
            if ref.kind == "hand_made":
                known = KnownEntity(self._node(ref.at).label, self._node(ref.at).type)
            shown = {"label": known.label or label, "type": known.type, "document_id": document_id}
            nodes[ref] = GraphNode(id=self.node_id(ref), kind=ref.kind, collection=collection, **shown)
        return nodes

    def _document_of_chunk(self, chunk: int) -> int:
        return self._view.document_of_passage(self._view.passage_of_chunk(chunk))


def _by_weight(each: tuple[NodeRef, GraphEdge]) -> tuple[float, str, int, str, str]:
    """The heaviest first, then by kind; what leads to chunks in the order of their text."""
    other, edge = each
    return -edge.weight, edge.kind, other.at if other.kind == "chunk" else 0, edge.source, edge.target


def _possible_keys(identifier: str, collection: str) -> Iterator[DocumentKey]:
    """The identifier as a record key, and as an id in the collection, where it can be one."""
    for parts in (identifier.split("/", 1), (collection, identifier)):
        if len(parts) == 2:
            with suppress(MalformedEvent):
                yield DocumentKey.checked(*parts)
