"""What people made, in the segments of a view: nodes, and relations between what their ends name.

An end names the id of a hand-made node, a chunk's or an entity's id, or a document's key or id in its collection; what
is there by the first of these is meant. It is looked up when it is read: nothing is there before it arrives or after it
is deleted.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from query_api.index.graph.edges import Numbers, rows_of
from query_api.index.graph.graph_segments import ViewSegment, ViewSegments
from query_api.index.graph.identifiers import MISSING, N_CANDIDATES, Keys, key_of
from schemas.ids import hand_made_node_id

EndKind = Literal["document", "chunk", "entity"]
END_KINDS: tuple[EndKind, ...] = get_args(EndKind)
DOCUMENT, CHUNK, ENTITY = range(3)


class End(NamedTuple):
    """A document or a chunk by its number in the view, an entity by its key. A hand-made node is its document."""

    kind: EndKind
    at: int


class MadeNode(NamedTuple):
    """`document` is the number of the document that people wrote of it, `attributes` JSON of `properties` and `by`."""

    document: int
    name: str
    label: str
    type: str
    aliases: tuple[str, ...]
    attributes: str


class MadeRelation(NamedTuple):
    """`document` says it; `attributes` is JSON of `note`, `properties` and `by`. An end is None where nothing is there
    by what it names."""

    query_index: int
    document: int
    name: str
    predicate: str
    weight: float
    source_name: str
    target_name: str
    source: End | None
    target: End | None
    attributes: str

    def others(self, end: End) -> Iterator[tuple[End, bool]]:
        """The end at the other side of this one, and whether the relation leads here from there."""
        if self.source == end and self.target is not None:
            yield self.target, False
        elif self.target == end and self.source is not None:
            yield self.source, True


def has_relations(segments: ViewSegments) -> bool:
    return any(len(part.segment.relation_weights) for part in segments)


def made_nodes(segments: ViewSegments, documents: Numbers | None = None) -> Iterator[MadeNode]:
    """The nodes of these documents, or all."""
    for part, _, local in _with_documents(segments, documents):
        segment = part.segment
        which, nodes = segment.nodes.entries(local)
        columns = (
            (local[which] + part.documents).tolist(),
            segment.node_names.of(nodes),
            segment.node_labels.of(nodes),
            segment.node_types.of(nodes),
            map(tuple, segment.node_aliases.of(nodes)),
            segment.node_attributes.of(nodes),
        )
        for row in zip(*columns, strict=True):
            yield MadeNode(*row)


def made_relations(segments: ViewSegments, documents: Numbers | None = None) -> Iterator[MadeRelation]:
    """The relations that these documents say, or all; `query_index` is the index into the documents."""
    for part, rows, local in _with_documents(segments, documents):
        which, relations = part.segment.relations.entries(local)
        yield from _relations(segments, part, rows[which], relations)


def relations_with(segments: ViewSegments, predicates: Iterable[str]) -> Iterator[MadeRelation]:
    """Those with these predicates."""
    for part in segments:
        relations = np.flatnonzero(part.segment.relation_predicates.among(predicates))
        relations = relations[~part.deleted[part.segment.relations.of_entries(relations)]]
        yield from _relations(segments, part, np.zeros_like(relations), relations)


def _with_documents(
    segments: ViewSegments, documents: Numbers | None
) -> Iterable[tuple[ViewSegment, Numbers, Numbers]]:
    if documents is not None:
        return segments.with_nodes(documents, "documents")
    live = ((part, np.flatnonzero(~part.deleted)) for part in segments)
    return ((part, local + part.documents, local) for part, local in live)


def made_documents(segments: ViewSegments) -> NDArray[np.bool_]:
    """By document number: whether it says a hand-made node or relation."""
    made = [
        np.union1d(each.of_entries(np.arange(count)), other) + part.documents
        for part in segments
        for each, count in [(part.segment.relations, len(part.segment.relation_weights))]
        for other in [part.segment.nodes.of_entries(np.arange(len(part.segment.node_keys.keys)))]
    ]
    found = np.zeros(sum(part.segment.n_documents for part in segments), dtype=bool)
    found[np.concatenate(made).astype(np.int64)] = True
    return found


def node_named(segments: ViewSegments, collection: str, name: str) -> int | None:
    """The number of the document of the hand-made node of this id."""
    keys = np.array([key_of(hand_made_node_id(collection, name))], dtype=np.uint64)
    found = int(_documents_of_nodes(segments, keys)[0])
    return None if found == MISSING else found


def relations_of(segments: ViewSegments, ends: Sequence[End], most: int | None = None) -> list[MadeRelation]:
    """The relations that join something to these; each once for every end it has among them. Of each end at most so
    many in each segment, the heaviest; equal ones in the order of the segment."""
    if not ends or not has_relations(segments):
        return []
    owners, wanted = _keys_of(segments, ends)
    kinds = np.array([END_KINDS.index(end.kind) for end in ends])
    numbers = np.array([end.at for end in ends], dtype=np.uint64)
    found: list[MadeRelation] = []
    for part in segments:
        segment = part.segment
        at, positions = segment.reference_keys.find(wanted)
        references, owner = positions // N_CANDIDATES, owners[at]
        leads = _resolved(segments, part, references)
        keep = (leads.kinds == kinds[owner]) & (leads.numbers == numbers[owner])
        references, owner = references[keep], owner[keep]
        which, _, relations = segment.ends.entering(references)
        live = ~part.deleted[segment.relations.of_entries(relations)]
        pairs = np.unique(np.stack((owner[which][live], relations[live])), axis=1)
        if most is not None and pairs.shape[1] > most:
            pairs = _heaviest(pairs, segment.relation_weights[pairs[1]], most)
        found.extend(_relations(segments, part, pairs[0], pairs[1]))
    return found


def _heaviest(pairs: Numbers, weights: NDArray[np.float64], most: int) -> Numbers:
    """(2, n) the columns of `pairs`, (2, m) with ascending owners, of at most so many for each owner."""
    order = np.lexsort((pairs[1], -weights, pairs[0]))
    firsts = np.searchsorted(pairs[0], pairs[0])
    return pairs[:, order[np.arange(len(order)) - firsts < most]]


class _Ends(NamedTuple):
    """Of several references: a number in END_KINDS, MISSING for what leads nowhere, and the number or key."""

    kinds: Numbers
    numbers: Keys


def _resolved(segments: ViewSegments, part: ViewSegment, references: Numbers) -> _Ends:
    keys = part.segment.reference_keys.keys.reshape(-1, N_CANDIDATES)[references]
    ends = _Ends(np.full(len(references), MISSING), np.zeros(len(references), dtype=np.uint64))

    def put(rows: Numbers, kind: int, numbers: NDArray[np.integer]) -> None:
        ends.kinds[rows], ends.numbers[rows] = kind, numbers

    nodes = _documents_of_nodes(segments, keys[:, 0])
    put(np.flatnonzero(nodes != MISSING), DOCUMENT, nodes[nodes != MISSING])
    named = np.flatnonzero((ends.kinds == MISSING) & (keys[:, 1] != 0))
    collections = dict(zip(named.tolist(), part.segment.reference_collections.of(references[named]), strict=True))
    for each in segments if len(named) else ():
        segment = each.segment
        chunks = segment.chunk_ids.positions(keys[named, 1])
        for row, chunk in rows_of(named[chunks != MISSING], chunks[chunks != MISSING]):
            document = int(segment.passage_documents[segment.chunk_passages[chunk]])
            if not each.deleted[document] and segment.collections[document] == collections[row]:
                put(row, CHUNK, chunk + each.chunks)
        entities = segment.find_entities(keys[named, 1])
        for row, entity in rows_of(named[entities != MISSING], entities[entities != MISSING]):
            is_there = not each.n_deleted or each.is_named(entity)
            if is_there and segment.entity_collections[entity] == collections[row]:
                put(row, ENTITY, segment.entity_keys[entity])
    for column in (2, 3):
        rows = np.flatnonzero((ends.kinds == MISSING) & (keys[:, column] != 0))
        documents = segments.documents_of_keys(keys[rows, column])
        put(rows[documents != MISSING], DOCUMENT, documents[documents != MISSING])
    return ends


def _documents_of_nodes(segments: ViewSegments, keys: Keys) -> Numbers:
    """The live documents of the nodes with these keys, MISSING where there is none."""
    found = np.full(len(keys), MISSING, dtype=np.int64)
    for part in segments:
        which, nodes = part.segment.node_keys.find(keys)
        documents = part.segment.nodes.of_entries(nodes)
        live = ~part.deleted[documents]
        found[which[live]] = documents[live] + part.documents
    return found


def _keys_of(segments: ViewSegments, ends: Sequence[End]) -> tuple[Numbers, Keys]:
    """By which keys references may name these ends: (index into `ends`, key)."""
    numbers = {kind: np.array([at for at, end in enumerate(ends) if end.kind == kind], np.int64) for kind in END_KINDS}
    at = np.array([end.at for end in ends], dtype=np.uint64)
    owners, keys = [numbers["entity"]], [at[numbers["entity"]]]
    for kind in ("document", "chunk"):
        for part, rows, local in segments.with_nodes(at[numbers[kind]].astype(np.int64), f"{kind}s"):
            segment = part.segment
            owner = numbers[kind][rows]
            owners.append(owner)
            keys.append(segment.document_keys[local] if kind == "document" else segment.chunk_ids.firsts[local])
            if kind == "document":
                which, nodes = segment.nodes.entries(local)
                owners.append(owner[which])
                keys.append(segment.node_keys.keys[nodes])
    return np.concatenate(owners), np.concatenate(keys)


def _relations(
    segments: ViewSegments, part: ViewSegment, query_index: Numbers, relations: Numbers
) -> Iterator[MadeRelation]:
    segment = part.segment
    which, edges, references = segment.ends.leaving(relations)
    leads = _resolved(segments, part, references)
    ends: list[dict[str, tuple[str, End | None]]] = [{} for _ in relations]
    names = segment.reference_names.of(references)
    for at, role, name, kind, number in zip(
        which.tolist(), segment.end_roles.of(edges), names, leads.kinds.tolist(), leads.numbers.tolist(), strict=True
    ):
        ends[at][role] = name, None if kind == MISSING else End(END_KINDS[kind], number)
    columns = (
        query_index.tolist(),
        (segment.relations.of_entries(relations) + part.documents).tolist(),
        segment.relation_names.of(relations),
        segment.relation_predicates.of(relations),
        segment.relation_weights[relations].tolist(),
        segment.relation_attributes.of(relations),
        ends,
    )
    for at, document, name, predicate, weight, attributes, joined in zip(*columns, strict=True):
        (source_name, source), (target_name, target) = joined["source"], joined["target"]
        yield MadeRelation(at, document, name, predicate, weight, source_name, target_name, source, target, attributes)
