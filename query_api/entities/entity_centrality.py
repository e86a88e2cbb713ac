"""How central entities are in the graph of facts and of edges that people made."""

from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
from cachetools import cached
from numpy.typing import NDArray

from query_api.entities.catalogue import EntityCatalogue
from query_api.index.graph.hand_made_relations import made_relations
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.view import GraphView
from query_api.retrieval.retrievers.pagerank import pagerank
from schemas.predicates import predicate_strength


@cached(WeakKeyDictionary(), key=lambda catalogue: catalogue, lock=Lock())
def entity_centrality(catalogue: EntityCatalogue) -> NDArray[np.float64]:
    """(n_entities,) PageRank of each row of the catalogue, in a walk that follows facts and hand-made edges between
    entities either way, by the strengths of their predicates and their weights. Costs a pass over all statements."""
    view = catalogue.view or GraphView.empty()
    made = [
        (source.at, target.at, relation.weight)
        for relation in made_relations(view.segments)
        for source, target in [(relation.source, relation.target)]
        if source is not None and target is not None and source.kind == target.kind == "entity"
    ]
    by_people = (np.array([each[at] for each in made], dtype=np.uint64) for at in (0, 1))
    parts = [(*map(catalogue.rows_of, by_people), np.array([weight for *_, weight in made], dtype=np.float64))]
    for part in view.segments:
        statements, predicates = part.statements_in(), part.segment.predicates
        strengths = np.array([predicate_strength(each) for each in predicates.distinct().to_pylist()], np.float64)
        parts.append((*catalogue.ends_of(part, statements), strengths[predicates.codes[statements]]))
    sources, targets, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    kept = np.flatnonzero((sources != MISSING) & (targets != MISSING) & (sources != targets) & (weights > 0))
    sources, targets, weights = sources[kept], targets[kept], weights[kept]
    both_ways = np.concatenate([sources, targets]), np.concatenate([targets, sources]), np.concatenate([weights] * 2)
    return pagerank(*both_ways, len(catalogue))
