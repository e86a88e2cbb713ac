"""Semantic chunking: topic boundaries at the gaps between sentences where their similarity drops.

TextTiling (Hearst 1997, "TextTiling: Segmenting Text into Multi-paragraph Subtopic Passages", Computational Linguistics
23:1), with the similarity of sentence vectors instead of shared words.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WINDOW = 2  # sentences on either side of a gap
MIN_DEPTH = 0.1  # of cosine; keeps a text on one topic whole


def topic_boundaries(sections: Sequence[int], vectors: NDArray[np.float32]) -> list[int]:
    """The numbers of the sentences that begin a new topic, ascending; never the first of a section.

    `sections`: the number of sentences of each section; `vectors`: those of all sentences in order, (n, dim) float32,
    L2-normalised. The similarity at a gap is the cosine of the means of the WINDOW sentences on either side; its depth
    is its distance below the nearest peak on the left, plus the same on the right. A gap is a boundary if its
    similarity is a local minimum and its depth exceeds MIN_DEPTH and the document's mean depth by half a standard
    deviation. Raises ValueError unless there is one vector for each sentence.
    """
    if vectors.ndim != 2 or vectors.shape[0] != sum(sections):
        raise ValueError(f"{sum(sections)} sentences need as many vectors; the array's shape is {vectors.shape}.")
    depths: dict[int, float] = {}
    first = 0
    for count in sections:
        similarities = _similarities(vectors[first : first + count])
        depths |= {first + 1 + gap: depth for gap, depth in enumerate(_depths(similarities))}
        first += count
    if not depths:
        return []
    known = np.fromiter(depths.values(), np.float64)
    bound = max(MIN_DEPTH, float(known.mean() + known.std() / 2))
    return [number for number, depth in depths.items() if depth > bound]


def _similarities(vectors: NDArray[np.float32]) -> list[float]:
    """The cosine at each gap; in double precision and without BLAS, so that it is the same on every machine."""
    found = []
    exact = vectors.astype(np.float64)
    for gap in range(1, len(exact)):
        left = exact[max(0, gap - WINDOW) : gap].mean(axis=0)
        right = exact[gap : gap + WINDOW].mean(axis=0)
        norms = float(np.sqrt(np.einsum("i,i", left, left) * np.einsum("i,i", right, right)))
        found.append(float(np.einsum("i,i", left, right)) / norms if norms else 0.0)
    return found


def _depths(similarities: Sequence[float]) -> list[float]:
    """The depth of each gap; 0 for one that is not a local minimum."""
    depths = []
    for gap, here in enumerate(similarities):
        left = _peak(similarities, range(gap - 1, -1, -1), here)
        right = _peak(similarities, range(gap + 1, len(similarities)), here)
        before = similarities[gap - 1] if gap else here
        behind = similarities[gap + 1] if gap + 1 < len(similarities) else here
        is_minimum = here <= before and here <= behind
        depths.append(left - here + right - here if is_minimum else 0.0)
    return depths


def _peak(similarities: Sequence[float], path: range, here: float) -> float:
    """The value reached by climbing along the path while it rises."""
    top = here
    for gap in path:
        if similarities[gap] < top:
            break
        top = similarities[gap]
    return top
