"""Hits that say what a hit before them says: left out, and told on the one that stays. Pure.

Each place is compared with those before it, so the first places are the same whatever page they are made for.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.retrieval.fusion import Place
from schemas.hits import DuplicateHit
from schemas.ids import DocumentKey

MOST_COMPARED = 1_000  # hits that a later one's vector is compared with
_DECIMALS = 4


class Said(NamedTuple):
    """What stands at a place: the document, and the text that the hit shows."""

    key: DocumentKey
    text: str
    chunk_id: str


def without_duplicates(
    places: Sequence[Place],
    said: Mapping[int, Said],
    vectors: Mapping[str, NDArray[np.float32]],
    threshold: float | None,
) -> list[Place]:
    """The places that say something new; each with the duplicates that were left out for it.

    `said` is {index in `places`: what stands there}; a place of which nothing is known stays. Texts are the same if
    they differ by blanks and case only. With a `threshold`, chunks of that cosine and above are duplicates too;
    `vectors`, {chunk id: (dimension,) float32, L2-normalised}, may lack some.
    """
    kept: list[int] = []
    left_out: dict[int, list[DuplicateHit]] = {}
    seen: dict[str, int] = {}
    compared: list[int] = []
    matrix = np.zeros((0, 0), dtype=np.float32)
    for at, place in enumerate(places):
        here = said.get(at)
        if here is None:
            kept.append(at)
            continue
        text = " ".join(here.text.split()).casefold()
        original, similarity = seen.get(text), 1.0
        vector = None if threshold is None else vectors.get(here.chunk_id)
        if original is None and vector is not None and compared:
            cosines = matrix[: len(compared)] @ vector
            nearest = int(cosines.argmax())
            if threshold is not None and cosines[nearest] >= threshold:
                original, similarity = compared[nearest], round(min(1.0, float(cosines[nearest])), _DECIMALS)
        if original is not None:
            left_out.setdefault(original, []).append(
                DuplicateHit(
                    document_id=here.key.document_id,
                    collection=here.key.collection,
                    passage_id=place.passage_id,
                    similarity=similarity,
                )
            )
            continue
        kept.append(at)
        seen[text] = at
        if vector is not None and len(compared) < MOST_COMPARED:
            if len(compared) == len(matrix):
                more = np.zeros((max(64, len(matrix)), len(vector)), dtype=np.float32)
                matrix = more if not compared else np.concatenate([matrix, more])
            matrix[len(compared)] = vector
            compared.append(at)
    return [places[at]._replace(duplicates=tuple(left_out.get(at, ()))) for at in kept]
