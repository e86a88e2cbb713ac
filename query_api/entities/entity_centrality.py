"""How central entities are in the graph of facts and of edges that people made."""

import numpy as np
from numpy.typing import NDArray

from query_api.entities.catalogue import EntityCatalogue
from query_api.index.graph.graph_segments import ViewSegment
from query_api.index.graph.hand_made_relations import made_relations
from query_api.index.graph.identifiers import MISSING, Keys, find
from query_api.index.graph.view import GraphView
from query_api.retrieval.retrievers.pagerank import pagerank
from schemas.predicates import predicate_strength


def entity_centrality(view: GraphView, catalogue: EntityCatalogue) -> NDArray[np.float64]:
    """(n_entities,) PageRank of each row of the catalogue, in a walk that follows facts and hand-made edges between
    entities either way, by the strengths of their predicates and their weights. Costs a pass over all statements."""
    parts = [_stated(part) for part in view.segments]
    relations = ((each.source, each.target, each.weight) for each in made_relations(view.segments))
    joined = [
        (source.at, target.at, weight)
        for source, target, weight in relations
        if source is not None and target is not None and source.kind == target.kind == "entity"
    ]
    by_people = [np.array([each[at] for each in joined], dtype=np.uint64) for at in (0, 1)]
    parts.append((by_people[0], by_people[1], np.array([weight for *_, weight in joined], dtype=np.float64)))
    subjects, objects, weights = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    sources, targets = (_rows(catalogue, keys) for keys in (subjects, objects))
    kept = np.flatnonzero((sources != MISSING) & (targets != MISSING) & (sources != targets) & (weights > 0))
    sources, targets, weights = sources[kept], targets[kept], weights[kept]
    both_ways = np.concatenate([sources, targets]), np.concatenate([targets, sources]), np.concatenate([weights] * 2)
    return pagerank(*both_ways, len(catalogue))


def _stated(part: ViewSegment) -> tuple[Keys, Keys, NDArray[np.float64]]:
    """The subject and the object of each live statement that has both, and its predicate's strength."""
    segment = part.segment
    statements, entities = segment.roles.ends()
    count = len(segment.statement_keys)
    ends = []
    for name in ("subject", "object"):
        of_role = np.flatnonzero(np.array(segment.role_names.of(np.arange(len(entities)))) == name)
        end = np.full(count, MISSING, dtype=np.int64)
        end[statements[of_role]] = entities[of_role]
        ends.append(end)
    chunks = segment.statements.of_entries(np.arange(count))
    kept = np.flatnonzero((ends[0] != MISSING) & (ends[1] != MISSING) & part.live(segment.passages_of(chunks)))
    strengths = np.array([predicate_strength(each) for each in segment.predicates.of(kept)], dtype=np.float64)
    return segment.entity_keys[ends[0][kept]], segment.entity_keys[ends[1][kept]], strengths


def _rows(catalogue: EntityCatalogue, keys: Keys) -> NDArray[np.int64]:
    found = find(catalogue.keys, keys)
    rows = np.full(len(keys), MISSING, dtype=np.int64)
    known = found != MISSING
    rows[known] = catalogue.groups[found[known]]
    return rows
