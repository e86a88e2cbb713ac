"""What the answer of a search is about: entities and hand-made nodes, and the facts among them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from query_api.entities.catalogue import EntityCatalogue, EntityCatalogues
from query_api.entities.description import EntityDescriber
from query_api.entities.entity_centrality import entity_centrality
from query_api.entities.entity_facts import End, Identity
from query_api.index.graph.hand_made_relations import made_nodes
from query_api.index.graph.identifiers import MISSING, key_of
from query_api.index.graph.typed_mentions import typed_mentions_in
from query_api.index.graph.view import GraphView
from query_api.index.search_snapshot import Snapshot
from schemas.entities import AnswerNode, AnswerSubgraph
from schemas.graph_delta import LITERAL_TYPES
from schemas.hits import Hit, Understanding
from schemas.ids import DocumentKey

MOST_ENTITIES, MOST_RELATIONS = 20, 40


def answer_subgraph(
    catalogues: EntityCatalogues, snapshot: Snapshot, understanding: Understanding | None, hits: Sequence[Hit]
) -> AnswerSubgraph:
    """What the question names, and what chunks of hits mention or their documents are called. Literals, such as dates,
    are left out. Reads texts: not for the event loop."""
    view, catalogue = snapshot.graph, catalogues.of(snapshot.graph, snapshot.curation)
    names = understanding.names if understanding else ()
    titled = [DocumentKey(each.collection, each.document_id) for each in names if each.document_id]
    named = _ends(view, catalogue, [key_of(each.node) for each in names], titled)
    chunks = [view.chunks([hit.chunk_id, *(each.chunk_id for each in hit.passages)]) for hit in hits]
    about = Counter(dict.fromkeys(named, 0))
    for hit, numbers in zip(hits, chunks, strict=True):
        mentions = typed_mentions_in(view.segments, numbers[numbers != MISSING])
        mentioned = [each.entity for each in mentions if each.type not in LITERAL_TYPES]
        about.update(_ends(view, catalogue, mentioned, [DocumentKey(hit.collection, hit.document_id)]))
    ranks = entity_centrality(catalogue)
    ranks = ranks / ranks.max(initial=np.finfo(float).tiny)
    central = {(kind, at): round(float(ranks[at]), 4) for kind, at in about if kind == "entity"}
    ends = sorted(about, key=lambda end: (end not in named, -about[end], -central.get(end, 1.0), end))
    describer = EntityDescriber(view, catalogue, snapshot.text.chunks, snapshot.text.documents)
    facts, shown = describer.facts.among(ends[:MOST_ENTITIES]), set(np.concatenate([*chunks, [MISSING]]).tolist())
    relations = [
        replace(fact, statements=tuple(sorted(fact.statements, key=lambda each: each.chunk not in shown)))
        for fact in facts[:MOST_RELATIONS]
    ]
    entities = []
    for kind, at in ends[:MOST_ENTITIES]:
        is_node = kind == "node"
        shown_as = describer.reference(End(None, 0, "", at) if is_node else End(at, 0, "")).model_dump()
        where = view.document_key(at).collection if is_node else catalogue[at].collection
        of = {"named": (kind, at) in named, "hits": about[kind, at], "centrality": central.get((kind, at))}
        entities.append(AnswerNode(**shown_as, collection=where, **of))
    truncated = len(ends) > MOST_ENTITIES or len(facts) > MOST_RELATIONS
    return AnswerSubgraph(entities=entities, relations=describer.details(relations, 1), truncated=truncated)


def _ends(
    view: GraphView, catalogue: EntityCatalogue, entities: Sequence[int], documents: Sequence[DocumentKey]
) -> set[Identity]:
    """The entities with these keys, the nodes that are these documents, and what these are called."""
    numbers = np.array([at for key in documents if (at := view.document(key)) is not None], dtype=np.int64)
    rows = catalogue.rows_of(np.array([*entities, *view.about_of(numbers).entity.tolist()], dtype=np.uint64))
    nodes = {("node", each.document) for each in made_nodes(view.segments, numbers)}
    return nodes | {("entity", row) for row in rows[rows != MISSING].tolist()}
