"""Passages of other documents that say much the same: nothing of this is stored, it is looked up in the vectors."""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from indexer.linking import DEFAULT_RULES
from query_api.index.graph.identifiers import MISSING
from query_api.index.graph.view import GraphView
from query_api.index.text.segments import Scope
from query_api.index.text.snapshot import TextSnapshot
from query_api.retrieval.retrievers.graph_edges import Parent, Reach, Reason
from schemas.curation import LinkingChoice

SPARE = 4  # chunks looked at for each passage wanted: several may be of one


def similar_across(
    view: GraphView, text: TextSnapshot, linking: Mapping[str, LinkingChoice], parents: Iterable[Parent]
) -> Iterator[Reach]:
    """The passages of other documents nearest to each parent, where its collection chose to join such: weight x c.

    c is the cosine of a passage's nearest chunk with the mean of the parent's. Raises TransientStoreError.
    """
    for at, parent in enumerate(parents):
        key = view.document_key(parent.document)
        rules = DEFAULT_RULES.with_choice(linking.get(key.collection, LinkingChoice()))
        if not rules.max_across:
            continue
        chunks = [view.chunk_id(chunk) for chunk in view.chunks_of_passage(parent.passage)]
        vectors = list(text.vectors(chunks).values())
        if not vectors:
            continue
        mean = np.mean(vectors, axis=0)
        own = sum(len(view.chunks_of_passage(passage)) for passage in view.passages_of_document(parent.document))
        nearest = text.vector_search(mean / np.linalg.norm(mean), own + SPARE * rules.max_across, Scope(key.collection))
        near = {
            found.passage_id: found
            for found in reversed(nearest)
            if found.key != key and found.score > rules.similar_above
        }
        best = sorted(near.values(), key=lambda found: (-found.score, found.chunk_id))[: rules.max_across]
        for found, chunk in zip(best, view.chunks([each.chunk_id for each in best]).tolist(), strict=True):
            if chunk != MISSING:
                score = min(1.0, rules.similar_across * found.score)
                yield Reach(view.passage_of_chunk(chunk), score, Reason("similar_across", at, chunk=chunk))
