"""A document's contribution to the graph, with the similarity edges between its chunks.

`next_chunk` connects each chunk to the next, as does `similar_to` if their cosine is high; `related_to` connects
similar chunks that are not neighbours, in both directions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from indexer.documents import PreparedDocument, Section, Statement
from indexer.extraction.concepts import concept_mentions, explained_concepts
from indexer.extraction.entities import entities_by_rules
from indexer.extraction.entity_mentions import EntityMention
from indexer.resolution.own_names import OwnName, own_names
from schemas.curation import LinkingChoice
from schemas.graph_delta import (
    AboutEdge,
    ChunkEdge,
    ChunkNode,
    Contribution,
    LinkEdge,
    MentionEdge,
    RoleEdge,
    SectionNode,
    StatementNode,
)
from schemas.ids import DocumentKey, section_id, statement_id

_BLOCK_FLOATS = 4_000_000


@dataclass(frozen=True)
class LinkingRules:
    """Weights and thresholds of similarity edges; a collection may choose its own."""

    next_chunk: float = 0.85
    next_chunk_raise: float = 0.15  # share added to next_chunk at cosine 1
    similar_above: float = 0.8
    similar: float = 0.9
    related_above: float = 0.75
    related: float = 0.75
    max_related: int = 8
    similar_across: float = 0.9  # between documents: not stored, computed by searches
    max_across: int = 0

    def with_choice(self, choice: LinkingChoice) -> "LinkingRules":
        """These rules with a collection's own choices."""
        return replace(self, **choice.model_dump(exclude_none=True))


DEFAULT_RULES = LinkingRules()


def chunk_edges(
    chunks: Sequence[object], vectors: NDArray[np.float32], rules: LinkingRules = DEFAULT_RULES
) -> list[ChunkEdge]:
    """The edges between the chunks of one document, sorted by kind, source and target.

    `vectors`: (n_chunks, dim) float32, L2-normalised, in the order of `chunks`. With c the cosine of two chunks, by the
    default rules: `next_chunk` weighs min(1, .85 x (1 + .15 x max(0, c))); `similar_to`, for c > .8, .9 x c;
    `related_to`, for c > .75, .75 x c, if each is among the eight best of the other (ties: lower ordinal first). Memory
    is linear in the number of chunks. Raises ValueError unless there is one vector for each chunk.
    """
    count = len(chunks)
    if not count:
        return []
    if vectors.ndim != 2 or vectors.shape[0] != count:
        raise ValueError(f"{count} chunks need as many vectors; the array's shape is {vectors.shape}.")
    neighbours = np.einsum("ij,ij->i", vectors[:-1], vectors[1:], dtype=np.float64)
    edges = []
    for source, cosine in enumerate(neighbours.tolist()):
        weight = min(1.0, rules.next_chunk * (1 + rules.next_chunk_raise * max(0.0, cosine)))
        edges.append(ChunkEdge("next_chunk", source, source + 1, round(weight, 6)))
        if cosine > rules.similar_above:
            edges.append(ChunkEdge("similar_to", source, source + 1, round(min(1.0, rules.similar * cosine), 6)))
    edges += [
        ChunkEdge("related_to", source, target, round(min(1.0, rules.related * cosine), 6))
        for source, target, cosine in _related(vectors, rules)
    ]
    return sorted(edges, key=lambda edge: (edge.kind, edge.source, edge.target))


def contribution(
    prepared: PreparedDocument,
    vectors: NDArray[np.float32],
    rules: LinkingRules = DEFAULT_RULES,
    entities: Sequence[EntityMention] | None = None,
) -> Contribution:
    """Everything that one revision of a document adds to the graph, in a fixed order. `vectors` as in `chunk_edges`.

    `entities` are those that a model found, at most one of a name in each chunk; without one, the rules' are taken.
    They and the ends of statements go by the names that theirs stand for in the document (`own_names`).
    """
    chunked = prepared.chunked
    found = _with_concepts(prepared, entities)
    own = own_names(prepared.about, found)
    stated = (*prepared.statements, *prepared.denials)
    latest_first = sorted(stated, key=lambda statement: statement.sentence, reverse=True)
    nodes = (_statement_node(prepared, statement, own) for statement in latest_first)
    facts = (node for node in nodes if len({role.name for role in node.roles[:2]}) > 1)
    statements = {node.id: node for node in facts}  # of equal ones the first sentence's stays
    return Contribution(
        collection=prepared.key.collection,
        document_id=prepared.key.document_id,
        revision=prepared.revision,
        title=prepared.title,
        sections=_sections(prepared.key, chunked.sections),
        chunks=[
            ChunkNode(one.id, chunked.passages[one.passage].id, one.passage, one.section) for one in chunked.chunks
        ],
        about=_about(prepared, found, own),
        mentions=_mentions(prepared, found, own),
        statements=sorted(statements.values(), key=lambda node: (node.chunk, node.predicate, node.id)),
        edges=chunk_edges(chunked.chunks, vectors, rules),
        links=sorted(
            (LinkEdge(link.chunk, *link.target, link.weight) for link in prepared.links),
            key=lambda edge: (edge.chunk, edge.target_collection, edge.target_id),
        ),
        nodes=list(prepared.nodes),
        relations=list(prepared.relations),
    )


def _with_concepts(prepared: PreparedDocument, entities: Sequence[EntityMention] | None) -> list[EntityMention]:
    found = list(entities_by_rules(prepared.mentions) if entities is None else entities)
    return [*found, *concept_mentions(prepared, {one.name for one in found})]


def _about(
    prepared: PreparedDocument, entities: Sequence[EntityMention], own: Mapping[str, OwnName]
) -> list[AboutEdge]:
    """What the document is named by, and the entities that it explains."""
    named = {about.name: AboutEdge(about.name, about.surface, about.weight) for about in prepared.about}
    for entity, relevance in explained_concepts(prepared, entities):
        name, surface, _ = own.get(entity.name) or OwnName(entity.name, entity.surface, "")
        named.setdefault(name, AboutEdge(name, surface, relevance))
    return sorted(named.values(), key=lambda edge: edge.name)


def _mentions(
    prepared: PreparedDocument, entities: Sequence[EntityMention], own: Mapping[str, OwnName]
) -> list[MentionEdge]:
    """An edge for each name in each chunk: a term, an entity, or both. What stands for an entity is counted as it, but
    beside a concept, which is counted wherever its words are."""
    edges = {
        (one.chunk, one.name): MentionEdge(one.chunk, one.name, one.surface, one.kind, one.count, list(one.sentences))
        for one in prepared.mentions
    }
    for entity in sorted(entities, key=lambda one: one.name in own):
        name, surface, kind = own.get(entity.name) or OwnName(entity.name, entity.surface, entity.entity_type)
        known = edges.get((entity.chunk, name))
        count, sentences = (known.count, known.sentences) if known else (entity.count, list(entity.sentences))
        if known and entity.name in own:
            count = max(count, entity.count) if known.entity_type == "concept" else count + entity.count
            sentences = sorted({*sentences, *entity.sentences})
        confidence = round(max(entity.confidence, known.confidence if known else 0.0), 3)
        named = entity.chunk, name, surface, known.kind if known else ""
        edges[entity.chunk, name] = MentionEdge(*named, count, sentences, kind, confidence)
    return [edges[key] for key in sorted(edges)]


def _related(vectors: NDArray[np.float32], rules: LinkingRules) -> Iterator[tuple[int, int, float]]:
    """(source, target, cosine) in both directions for non-neighbours that are among each other's best."""
    best: dict[tuple[int, int], float] = {}
    count = len(vectors)
    rows = max(1, _BLOCK_FLOATS // max(1, count))
    for low in range(0, count, rows):
        cosines = vectors[low : low + rows] @ vectors.T
        for row in np.flatnonzero(np.count_nonzero(cosines > rules.related_above, axis=1) > 1).tolist():
            source = low + row
            targets = np.flatnonzero(cosines[row] > rules.related_above)
            targets = targets[np.abs(targets - source) > 1]
            order = np.argsort(-cosines[row, targets], kind="stable")[: rules.max_related]
            best.update(((source, int(target)), float(cosines[row, target])) for target in targets[order])
    for source, target in sorted(best):
        if (target, source) in best:
            yield source, target, best[min(source, target), max(source, target)]


def _sections(key: DocumentKey, sections: Sequence[Section]) -> list[SectionNode]:
    nodes: list[SectionNode] = []
    last_with: dict[tuple[str, ...], int] = {}
    occurrences: dict[tuple[str, ...], int] = {}
    for index, section in enumerate(sections):
        headings = section.headings
        parent = next(
            (last_with[headings[:size]] for size in range(len(headings) - 1, 0, -1) if headings[:size] in last_with), -1
        )
        occurrence = occurrences.get(headings, 0)
        occurrences[headings] = occurrence + 1
        last_with[headings] = index
        nodes.append(
            SectionNode(section_id(key, headings, occurrence), headings[-1] if headings else "", len(headings), parent)
        )
    return nodes


def _statement_node(prepared: PreparedDocument, statement: Statement, own: Mapping[str, OwnName]) -> StatementNode:
    chunk = prepared.chunked.chunks[statement.chunk].id
    roles = [RoleEdge(role, own[name].name if name in own else name, way) for role, name, way in statement.roles]
    predicate, extractor = statement.predicate, statement.extractor
    identity = statement_id(chunk, predicate, [(role.role, role.name) for role in roles], extractor)
    how = statement.confidence, extractor, statement.sentence
    return StatementNode(identity, statement.chunk, predicate, *how, roles)
