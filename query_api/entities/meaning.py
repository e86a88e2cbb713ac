"""Entities by what is written of them: those that the passages nearest to a question mention.

No vectors of entities are kept: what is near a question changes with every document.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from query_api.entities.catalogue import EntityCatalogue
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.typed_mentions import typed_mentions_in
from query_api.index.graph.view import GraphView
from query_api.index.text.text_segments import Candidate

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
