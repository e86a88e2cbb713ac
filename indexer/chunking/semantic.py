"""Where a text turns to something else: the gaps between sentences over which the meaning drops.

As TextTiling does it (Hearst 1997, "TextTiling: Segmenting Text into Multi-paragraph Subtopic Passages", Computational
Linguistics 23:1), with the similarity of sentence vectors in the place of shared words.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WINDOW = 2  # sentences on either side of a gap: one alone says too little, more blur the turn
LEAST_DEPTH = 0.1  # of cosine; a text that stays with its subject is not cut where it drops least


def turns(sections: Sequence[int], vectors: NDArray[np.float32]) -> list[int]:
    """The numbers of the sentences with which something else begins, ascending; never the first of a section.

    `sections` counts the sentences of each section; `vectors` are those of all sentences in order, (n, dim) float32,
    L2-normalised. The similarity at a gap is the cosine of the means of the WINDOW sentences on either side. Its depth
    is how far it lies below the nearest peak on the left, plus the same on the right. A gap is a turn where its
    similarity is a local minimum and its depth exceeds LEAST_DEPTH and the document's mean depth by half a standard
    deviation. Raises ValueError when there is not one vector for each sentence.
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
    bound = max(LEAST_DEPTH, float(known.mean() + known.std() / 2))
    return [number for number, depth in depths.items() if depth > bound]


def _similarities(vectors: NDArray[np.float32]) -> list[float]:
    """The cosine over each gap; in double precision and without BLAS, so that it is the same wherever it is made."""
    found = []
    exact = vectors.astype(np.float64)
    for gap in range(1, len(exact)):
        left = exact[max(0, gap - WINDOW) : gap].mean(axis=0)
        right = exact[gap : gap + WINDOW].mean(axis=0)
        norms = float(np.sqrt(np.einsum("i,i", left, left) * np.einsum("i,i", right, right)))
        found.append(float(np.einsum("i,i", left, right)) / norms if norms else 0.0)
    return found


def _depths(similarities: Sequence[float]) -> list[float]:
    """How deep each gap lies; 0 for one that is no local minimum."""
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
    """The height reached by climbing along the path for as long as it rises."""
    top = here
    for gap in path:
        if similarities[gap] < top:
            break
        top = similarities[gap]
    return top
