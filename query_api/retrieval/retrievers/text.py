"""The text channels: the chunks nearest to the question, and the passages that hold its words.

Equal scores stand in the order of their ids, so the same snapshot gives the same list.
"""

import numpy as np
from numpy.typing import NDArray

from query_api.index.snapshot import Candidate
from query_api.index.text.segments import Scope
from query_api.index.text.snapshot import TextSnapshot


def vector_channel(text: TextSnapshot, vector: NDArray[np.float32], limit: int, scope: Scope) -> list[Candidate]:
    """The `limit` nearest chunks, all of them, best first; `vector` is (dim,) float32, L2-normalised."""
    found = text.vector_search(vector, limit, scope)
    return [Candidate(chunk.passage_id, chunk.score, chunk.key, chunk.chunk_id) for chunk in found]


def keyword_channel(text: TextSnapshot, query: str, limit: int, scope: Scope) -> list[Candidate]:
    """The `limit` passages with the highest BM25, best first."""
    found = text.keyword_search(query, limit, scope)
    return [Candidate(passage.passage_id, passage.score, passage.key) for passage in found]
