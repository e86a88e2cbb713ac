"""Hits that say what a hit before them says: left out, and listed on the one that stays.

Each place is compared with those before it, so the first places are the same whatever page they are made for.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from query_api.index.snapshot import PassageReader
from query_api.index.text.snapshot import TextSnapshot
from query_api.query.analysis import Question
from query_api.retrieval.fusion import RankedPassage
from query_api.retrieval.results.hits import best_child
from schemas.hits import DuplicateHit
from schemas.ids import DocumentKey
from schemas.search import DUPLICATE_THRESHOLD, SearchRequest

MOST_COMPARED = 1_000  # hits that a later one's vector is compared with
_DECIMALS = 4


class ShownText(NamedTuple):
    """What stands at a place: the document, and the text that the hit shows."""

    key: DocumentKey
    text: str
    chunk_id: str


def without_duplicates(
    places: Sequence[RankedPassage],
    said: Mapping[int, ShownText],
    vectors: Mapping[str, NDArray[np.float32]],
    threshold: float | None,
) -> list[RankedPassage]:
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


def distinct(
    places: Sequence[RankedPassage],
    request: SearchRequest,
    question: Question,
    text: TextSnapshot,
    passages: PassageReader,
) -> list[RankedPassage]:
    """The places without duplicates, by what their hits will show: a passage's text, or a chunk's. Blocks: for a
    thread. Raises TransientStoreError."""
    semantic = request.duplicates == "semantic"
    wanted = list(dict.fromkeys(place.passage_id for place in places))
    rows = passages.read(wanted)
    chunks = text.chunks_of_passages(wanted) if semantic or request.group == "chunk" else {}
    said: dict[int, ShownText] = {}
    for at, place in enumerate(places):
        row, of_passage = rows.get(place.passage_id), chunks.get(place.passage_id)
        if row is None:
            continue
        child = best_child(question, of_passage, place.chunk_id) if of_passage else None
        shown = child.text if child is not None and request.group == "chunk" else row.text
        said[at] = ShownText(row.key, shown, "" if child is None else child.id)
    vectors = text.vectors(list(dict.fromkeys(each.chunk_id for each in said.values()))) if semantic else {}
    threshold = (request.duplicate_threshold or DUPLICATE_THRESHOLD) if semantic else None
    return without_duplicates(places, said, vectors, threshold)
